// SPDX-License-Identifier: Apache-2.0
// Single results as literal bits: edge cases of an H100's arithmetic, as recorded.
#include "tests/matrix/warp.h"

namespace tartan::emulator {
namespace {

// Powers of two.
std::uint64_t bf16_power(int e) { return static_cast<std::uint64_t>(e + 127) << 7; }
std::uint64_t f32_power(int e) { return static_cast<std::uint64_t>(e + 127) << 23; }
std::uint64_t f16_power(int e) {
  return e < -14 ? std::uint64_t{1} << (e + 24) : static_cast<std::uint64_t>(e + 15) << 10;
}

struct Factors {
  std::uint64_t a, b;
};

constexpr const char* bf16_product = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
constexpr const char* f16_product = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16";
constexpr const char* mixed_product = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";

// One element of D, on every path: from the products, in the order of k, and C.
void expect_sum(const char* mnemonic, const std::vector<Factors>& products, std::uint64_t c,
                std::uint64_t expected, Hardware hardware = Hardware::sm_90) {
  for (const Path path : all_paths)
    for (const int row : {0, 7}) {
      const int col = row ? 5 : 0;
      Warp warp(mnemonic);
      for (std::size_t k = 0; k < products.size(); ++k) {
        warp.a.set(row, static_cast<int>(k), products[k].a);
        warp.b.set(static_cast<int>(k), col, products[k].b);
      }
      warp.c.set(row, col, c);
      warp.run(hardware, path);
      EXPECT_EQ(warp.d.get(row, col), expected)
          << mnemonic << ", path " << static_cast<int>(path) << std::hex << ", got "
          << warp.d.get(row, col) << ", expected " << expected;
    }
}

TEST(MatrixEdges, ExponentClampOfSingle) {
  const Factors b{bf16_power(-74) | 0x7E, bf16_power(-76)};  // 127 * 2^-80, 2^-76
  expect_sum(bf16_product, std::vector(16, Factors{bf16_power(-76), bf16_power(-76)}), 0, 2);
  const auto with = [&](int count, int e) {
    std::vector products(1, b);
    products.insert(products.end(), static_cast<std::size_t>(count),
                    Factors{bf16_power(-80), bf16_power(e)});
    return products;
  };
  expect_sum(bf16_product, with(8, -79), 0, 0);
  expect_sum(bf16_product, with(4, -78), 0, 1);
  expect_sum(bf16_product, with(2, -77), 0, 1);
}

TEST(MatrixEdges, ExponentClampOfHalf) {
  const std::uint64_t expected[] = {0, 0, 1, 1};
  for (int i = 0; i < 4; ++i)  // 2^-25, which ties between 0 and 2^-24, and 2^-48 to 2^-45
    expect_sum(
        f16_product,
        {{f16_power(-12), f16_power(-13)}, {f16_power(-24 + (i + 1) / 2), f16_power(-24 + i / 2)}},
        0, expected[i]);
}

TEST(MatrixEdges, SubnormalsAreNotNormalised) {
  expect_sum(f16_product, {{f16_power(-12), f16_power(-13)}, {f16_power(-20), f16_power(-23)}},
             0x0002, 0x0002);
  expect_sum(bf16_product, {{0x0001, bf16_power(120)}, {bf16_power(-20), bf16_power(-13)}}, 0,
             0x39000000);
}

TEST(MatrixEdges, ZerosArePositive) {
  const std::uint64_t minus_one = 0xBC00;
  expect_sum(mixed_product, std::vector(16, Factors{0x8000, 0x3C00}), 0x80000000, 0);
  expect_sum(mixed_product, {{0x0000, minus_one}}, 0x80000000, 0);
  expect_sum(f16_product, std::vector(16, Factors{0x8000, 0x3C00}), 0x8000, 0);
  // Underflow loses its sign too.
  expect_sum(f16_product, {{f16_power(-20) | 0x8000, f16_power(-20)}}, 0, 0);
  expect_sum(bf16_product, {{bf16_power(-80) | 0x8000, bf16_power(-80)}}, 0, 0);
  expect_sum("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
             std::vector(4, Factors{0x8000, 0x3C00}), 0x80000000, 0);
}

TEST(MatrixEdges, Tf32DropsItsLowBitsFirst) {
  constexpr const char* product = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32";
  expect_sum(product, {{0x7F800001, f32_power(0)}}, 0, 0x7F800000);
  expect_sum(product, {{0x7F802000, f32_power(0)}}, 0, 0x7FFFFFFF);
  expect_sum(product, {{f32_power(0) | 0x1FFF, f32_power(0)}}, 0, f32_power(0));
}

TEST(MatrixEdges, Overflow) {
  expect_sum(bf16_product, {{bf16_power(51), bf16_power(52)}}, 0x7F7FFFFF, 0x7F7FFFFF);
  expect_sum(bf16_product, {{bf16_power(52), bf16_power(52)}}, 0x7F7FFFFF, 0x7F800000);
  expect_sum(f16_product, {{f16_power(4), f16_power(0)}}, 0x7BFF, 0x7C00);
  // A product beyond the range is not an infinity by itself.
  expect_sum(bf16_product,
             {{bf16_power(100), bf16_power(100)}, {bf16_power(100) | 0x8000, bf16_power(100)}}, 0,
             0);
  expect_sum(bf16_product,
             {{bf16_power(100), bf16_power(100)}, {bf16_power(100) | 0x8000, bf16_power(99)}}, 0,
             0x7F800000);
}

TEST(MatrixEdges, Specials) {
  constexpr std::uint64_t infinity = 0x7C00, nan = 0xFE01, one = 0x3C00, zero = 0;
  expect_sum(mixed_product, {{nan, one}}, 0, 0x7FFFFFFF);
  expect_sum(mixed_product, {{nan, zero}}, 0, 0x7FFFFFFF);
  expect_sum(mixed_product, {{infinity, zero}}, 0, 0x7FFFFFFF);
  expect_sum(mixed_product, {{infinity, one}, {infinity | 0x8000, one}}, 0, 0x7FFFFFFF);
  expect_sum(mixed_product, {{infinity | 0x8000, one}}, 0x7F7FFFFF, 0xFF800000);
  expect_sum(mixed_product, {{infinity, one}}, 0xFF800000, 0x7FFFFFFF);
  expect_sum(mixed_product, {{one, one}}, 0xFFC00001, 0x7FFFFFFF);
  expect_sum(f16_product, {{infinity | 0x8000, one}}, 0, 0xFC00);
  expect_sum(f16_product, {{one, one}}, 0xFE00, 0x7FFF);
}

// E - 25 is where terms are truncated: 1 + 2^-25 keeps its last bit for the sum, 2^-26 is lost;
// then the result is truncated to 24 bits.
TEST(MatrixEdges, TwentyFiveFractionBits) {
  constexpr std::uint64_t one = 0x3C00;
  const Factors tiny{f16_power(-12), f16_power(-13)}, smaller{f16_power(-13), f16_power(-13)};
  const std::vector<Factors> four{{one, one}, tiny, tiny, tiny, tiny};
  expect_sum(mixed_product, four, 0, 0x3F800001);
  expect_sum(mixed_product,
             {{one, one}, smaller, smaller, smaller, smaller, smaller, smaller, smaller, smaller},
             0, 0x3F800000);
  // sm_80 keeps 24 bits, and adds eight products at a time.
  expect_sum(mixed_product, four, 0, 0x3F800000, Hardware::sm_80);
  // Its second half starts from the rounded result of the first.
  std::vector<Factors> apart(16, Factors{0, 0});
  apart[0] = apart[8] = {f16_power(-12), f16_power(-12)};
  expect_sum(mixed_product, apart, f32_power(0), 0x3F800001);
  expect_sum(mixed_product, apart, f32_power(0), 0x3F800000, Hardware::sm_80);
}

// mma adds all eight products of k8 at once, wmma four and four.
TEST(MatrixEdges, Tf32Chains) {
  std::vector<Factors> products(8, Factors{0, 0});
  products[0] = products[4] = {f32_power(-12), f32_power(-12)};
  expect_sum("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", products, f32_power(0),
             0x3F800001);
  expect_sum("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", products, f32_power(0),
             0x3F800000);
}

TEST(MatrixEdges, WmmaConversions) {
  // C is f16 and subnormal: as f32 it has exponent -24, with 25 bits below that.
  constexpr const char* widening = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16";
  expect_sum(widening, {{f16_power(-23), f16_power(-24)}}, 0x0001, f32_power(-24) | 1);
  // D is f16: 1 + 2^-11 + 2^-25 is truncated to f32 first, and then ties to even.
  constexpr const char* narrowing = "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32";
  expect_sum(narrowing, {{f16_power(-12), f16_power(-13)}}, f32_power(0) | 0x1000, 0x3C00);
  expect_sum(narrowing, {{f16_power(-24) | 0x8000, f16_power(-2)}}, 0,
             0x8000);  // a tiny negative result is -0 here
}

TEST(MatrixEdges, EightBitFloatsAddCLast) {
  constexpr const char* product = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";
  constexpr std::uint64_t one = 0x38, nan = 0x7F, tiny = 0x01;  // tiny: 2^-9
  // C = 2^24 and two products of 1.5 in different steps: their sum, 3, is rounded to even with C.
  std::vector<Factors> products(32, Factors{0, 0});
  products[0] = products[2] = {0x3C, one};
  expect_sum(product, products, f32_power(24), f32_power(24) | 2);
  expect_sum(product, {{nan, one}}, 0, 0x7FFFFFFF);
  expect_sum(product, {{tiny, tiny}}, 0, f32_power(-18));
  expect_sum(product, {{0x80, one}}, 0x80000000, 0);  // +0 from the sum, and IEEE: -0 + +0
}

TEST(MatrixEdges, SaturationClampsOnce) {
  constexpr const char* product = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32";
  std::vector<Factors> products(32, Factors{127, 127});
  for (std::size_t k = 16; k < 32; ++k) products[k].a = 0x81;  // -127
  expect_sum(product, products, 0x7FFFFFFF, 0x7FFFFFFF);
  expect_sum(product, {{127, 127}}, 0x7FFFFFFF, 0x7FFFFFFF);
  expect_sum(product, {{0x80, 127}}, 0x80000000, 0x80000000);
  expect_sum("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", {{127, 127}}, 0x7FFFFFFF,
             0x7FFFFFFF + 127u * 127u);
}

TEST(MatrixEdges, Double) {
  constexpr const char* product = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64";
  constexpr std::uint64_t one = 0x3FF0'0000'0000'0000, infinity = 0x7FF0'0000'0000'0000,
                          sign = std::uint64_t{1} << 63;
  constexpr std::uint64_t nan_a = 0x7FF0'0000'0000'000A, nan_b = 0xFFF0'0000'0000'000B,
                          nan_c = 0x7FF8'0000'0000'000C, quiet = 1ull << 51;
  expect_sum(product, {{nan_a, nan_b}}, nan_c, nan_b | quiet);
  expect_sum(product, {{nan_a, one}}, nan_c, nan_c);
  expect_sum(product, {{nan_a, one}}, one, nan_a | quiet);
  expect_sum(product, {{infinity, 0}}, one, 0xFFF8'0000'0000'0000);
  expect_sum(product, {{infinity, one}}, infinity | sign, 0xFFF8'0000'0000'0000);
  expect_sum(product, std::vector(4, Factors{sign, one}), sign, sign);
  // The rounding directions of 1/3.
  const std::uint64_t third = 0x3FD5'5555'5555'5555, epsilon = 0x3CA0'0000'0000'0000;  // 2^-53
  expect_sum(product, {{epsilon, third}}, one, one);
  expect_sum("mma.sync.aligned.m8n8k4.row.col.rp.f64.f64.f64.f64", {{epsilon, third}}, one,
             one + 1);
  expect_sum("mma.sync.aligned.m8n8k4.row.col.rm.f64.f64.f64.f64", {{epsilon | sign, third}}, one,
             one - 1);
  expect_sum("mma.sync.aligned.m8n8k4.row.col.rz.f64.f64.f64.f64", {{epsilon, third}}, one, one);
}

// The two orders of m8n8k4: f32 results come from a chain, f16 results from pairs.
TEST(MatrixEdges, QuadPairOrders) {
  constexpr std::uint64_t one = 0x3C00, big = 0x7800;  // 2^15
  const std::vector<Factors> products{
      {big, big}, {f16_power(-2), f16_power(0)}, {big | 0x8000, big}, {f16_power(-2), one}};
  // Chain: 2^30 + 0.25 loses it; - 2^30 gives 0; + 0.25.
  expect_sum("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", products, 0, f32_power(-2));
  // Pairs: (2^30) + (-2^30) is 0.
  expect_sum("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", products, 0, 0);
}

TEST(MatrixEdges, BlockScales) {
  Warp warp(
      "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1."
      "f32.ue8m0");
  warp.a.set(9, 3, 0x38);             // 1
  warp.b.set(3, 5, 2 << 2 | 1 << 2);  // e2m1 0b0011 in bits 2..5: 1.5
  warp.scale_a.fill(127);
  warp.scale_b.fill(127);
  warp.scale_a[4 * 1 + 1] = 130;  // row 9: group 1, odd lane of the pair
  warp.scale_b[4 * 5] = 126;      // column 5
  warp.c.set(9, 5, f32_power(1));
  warp.run(Hardware::sm_120);
  EXPECT_EQ(warp.d.get(9, 5), 0x41000000u);  // 8 * 0.5 * 1.5 + 2 = 8
  warp.scale_b[4 * 5] = 0xFF;
  warp.run(Hardware::sm_120);
  EXPECT_EQ(warp.d.get(9, 5), 0x7FFFFFFFu);
}

TEST(MatrixHardware, NearestArchitecture) {
  EXPECT_EQ(hardware_of({61, 0}), std::nullopt);
  EXPECT_EQ(hardware_of({72, 0}), Hardware::sm_70);
  EXPECT_EQ(hardware_of({86, 0}), Hardware::sm_80);
  EXPECT_EQ(hardware_of({89, 0}), Hardware::sm_89);
  EXPECT_EQ(hardware_of({90, 'a'}), Hardware::sm_90);
  EXPECT_EQ(hardware_of({103, 'f'}), Hardware::sm_100);
  EXPECT_EQ(hardware_of({121, 'a'}), Hardware::sm_120);
}

TEST(MatrixHardware, ReportsTrust) {
  const auto trust = [](const char* mnemonic, Hardware hardware) {
    return MatrixProduct::make(isa::parse_form(mnemonic).form, hardware)->trust();
  };
  EXPECT_EQ(trust(mixed_product, Hardware::sm_90), Trust::Recorded);
  EXPECT_EQ(trust(mixed_product, Hardware::sm_80), Trust::PartlyRecorded);
  EXPECT_EQ(trust(mixed_product, Hardware::sm_75), Trust::Measured);
  EXPECT_EQ(trust(bf16_product, Hardware::sm_75), Trust::Assumed);
  constexpr const char* tf32_product = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32";
  constexpr const char* tf32_wmma = "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32";
  for (const Hardware hardware : {Hardware::sm_80, Hardware::sm_89, Hardware::sm_100}) {
    EXPECT_EQ(trust(tf32_product, hardware), Trust::Measured);
    EXPECT_EQ(trust(tf32_wmma, hardware), Trust::PartlyRecorded);
    EXPECT_EQ(trust(bf16_product, hardware), Trust::PartlyRecorded);
  }
  for (const char* product : {mixed_product, tf32_product, tf32_wmma})
    EXPECT_EQ(trust(product, Hardware::sm_120), Trust::Measured);
  EXPECT_EQ(
      trust("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
            Hardware::sm_120),
      Trust::Measured);
  EXPECT_FALSE(MatrixProduct::make(isa::parse_form("ldmatrix.sync.aligned.m8n8.x1.shared.b16").form,
                                   Hardware::sm_90));
}

}  // namespace
}  // namespace tartan::emulator
