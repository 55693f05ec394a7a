// SPDX-License-Identifier: Apache-2.0
// 4-bit floats with block scales: published examples, and a second model of the published rule.
#include <bit>
#include <cmath>
#include <cstdlib>

#include "tests/matrix/warp.h"

namespace tartan::emulator {
namespace {

const std::string mxf4 = ".m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0";
const std::string mxf4nvf4_2x =
    ".m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0";
const std::string nvfp4 =
    ".m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3";

std::string dense(const std::string& form) { return "mma.sync.aligned" + form; }
std::string sparse(std::string form) {
  return "mma.sp::ordered_metadata.sync.aligned" + form.replace(form.find("k64"), 3, "k128");
}

// ---- Results where a window of 25 bits gives zero: computed by the models of two publications,
// sf-tensor's of a B200 and MMA-Sim's of a B200 and an RTX Blackwell, which agree.

enum : std::uint64_t { half = 1, one = 2, one_and_half = 3, six = 7, minus = 8 };  // e2m1

struct Factors {
  int first, last;  // k
  std::uint64_t a, b;
};

// The bytes of `scales`: the first block's is the lowest.
void expect(const std::string& form, std::uint32_t scales_a, std::uint32_t scales_b,
            std::uint64_t c, const std::vector<Factors>& products, std::uint64_t expected) {
  for (const Path path : all_paths) {
    Warp warp(dense(form));
    for (const Factors& each : products)
      for (int k = each.first; k <= each.last; ++k) {
        warp.a.set(0, k, each.a);
        warp.b.set(k, 0, each.b);
      }
    warp.scale_a[0] = scales_a;
    warp.scale_b[0] = scales_b;
    warp.c.set(0, 0, c);
    warp.run(Hardware::sm_120, path);
    EXPECT_EQ(warp.d.get(0, 0), expected) << form << ", path " << static_cast<int>(path);
  }
}

const std::vector<Factors> cancelling{{0, 0, one, one}, {1, 1, minus | one, one}};

std::vector<Factors> cancelling_and(const Factors& more) {
  return {cancelling[0], cancelling[1], more};
}

TEST(MatrixScaled, WhatIsLeftAfterACancellation) {
  expect(mxf4, 0x617F, 0x7F7F, 0, cancelling_and({32, 32, one, one}), 0x30800000);
  expect(mxf4, 0x617F, 0x7F7F, 0xBF800000, {{0, 0, one, one}, {32, 32, one, one}}, 0x30800000);
  expect(nvfp4, 0x0160, 0x0160, 0, cancelling_and({16, 16, half, half}), 0x35800000);
  expect(nvfp4, 0x0260, 0x0160, 0x44800000, {{0, 0, minus | one, one}, {16, 31, half, half}},
         0x38000000);
}

TEST(MatrixScaled, ElementsDoNotRaiseTheExponent) {
  expect(mxf4, 0x5C7F, 0x7F7F, 0, {{0, 0, six, six}, {1, 1, minus | six, six}, {32, 32, one, one}},
         0x2E000000);
}

TEST(MatrixScaled, AGroupIsCutOnce) {
  expect(mxf4, 0x5D7F, 0x7F7F, 0, cancelling_and({32, 47, half, half}), 0x2F800000);
}

TEST(MatrixScaled, TheFloorIsBelowThatOfAWindow) {
  // 2^-149 - 2^-174, and 2^-149 - 2^-175, which is cut.
  const std::vector<Factors> products{{0, 0, one, one}, {32, 32, half, minus | half}};
  expect(mxf4, 0, 0x5269, 0, products, 0x00000000);
  expect(mxf4, 0, 0x5169, 0, products, 0x00000001);
  expect(mxf4, 0, 0x6166, 0,
         {{0, 0, six, one}, {1, 1, one_and_half, one}, {2, 2, half, half}, {32, 63, half, half}},
         0x00000001);
}

// ---- A second model, from the text of the rule: groups of 16 stored products, whose exact sum is
// multiplied by both scales. E is the largest of the groups' exponents (those of both scales; none
// if all products are zero), of C's and of -139. Groups and C are cut toward zero to multiples of
// 2^(E - 35) and added; the sum is cut to f32.

__extension__ using Wide = __int128;

struct Scale {
  bool nan;
  int eighths, exponent;  // eighths * 2^(exponent - 3)
};

Scale scale_of(bool exponent_only, unsigned bits) {
  if (exponent_only) return {bits == 255, 8, static_cast<int>(bits) - 127};
  const int field = static_cast<int>(bits >> 3 & 15), fraction = static_cast<int>(bits & 7);
  if (field == 0) return {false, fraction, -6};
  return {field == 15 && fraction == 7, 8 + fraction, field - 7};
}

struct Sum {
  std::vector<int> a, b;  // bits of stored elements
  std::vector<unsigned> scale_a, scale_b;
  bool exponent_only;  // ue8m0
  std::uint32_t c;
};

Wide cut(Wide number, int exponent, int to) {  // number * 2^(exponent - to)
  if (exponent >= to) return number * (Wide{1} << (exponent - to));
  return to - exponent > 120 ? 0 : number / (Wide{1} << (to - exponent));
}

std::uint32_t single(Wide sum, int exponent) {
  Wide magnitude = sum < 0 ? -sum : sum;
  for (; magnitude >= (1 << 24) || (magnitude && exponent < -149); ++exponent) magnitude /= 2;
  if (magnitude == 0) return 0;
  const double value = std::ldexp(static_cast<double>(magnitude), exponent);
  const std::uint32_t bits = value >= std::ldexp(1.0, 128)
                                 ? 0x7F800000
                                 : std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return sum < 0 ? bits | 0x80000000 : bits;
}

std::uint32_t second_model(const Sum& sum) {
  constexpr int halves[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const int field = static_cast<int>(sum.c >> 23 & 255), fraction = sum.c & 0x7FFFFF;
  bool nan = field == 255 && fraction;
  std::vector<std::pair<Wide, int>> terms;  // times 2^second
  int largest = -139;
  for (std::size_t first = 0; first < sum.a.size(); first += 16) {
    const auto of = [&](const std::vector<unsigned>& scales) {
      return scale_of(sum.exponent_only, scales[first * scales.size() / sum.a.size()]);
    };
    const Scale x = of(sum.scale_a), y = of(sum.scale_b);
    nan = nan || x.nan || y.nan;
    int total = 0, nonzero = 0;
    for (std::size_t k = first; k < first + 16; ++k) {
      const int product = halves[sum.a[k]] * halves[sum.b[k]] * x.eighths * y.eighths;
      total += product;
      nonzero += product != 0;
    }
    if (nonzero) largest = std::max(largest, x.exponent + y.exponent);
    terms.emplace_back(total, x.exponent + y.exponent - 8);
  }
  if (nan) return 0x7FFFFFFF;
  if (field == 255) return sum.c;
  if (field || fraction) {
    const int exponent = std::max(field, 1) - 127;
    const int significand = field ? fraction | 1 << 23 : fraction;
    largest = std::max(largest, exponent);
    terms.emplace_back(sum.c >> 31 ? -significand : significand, exponent - 23);
  }
  Wide all = 0;
  for (const auto& [number, exponent] : terms) all += cut(number, exponent, largest - 35);
  return single(all, largest - 35);
}

// ---- Random sums for both. Each case is one element of D with operands of its own.

class Cases {
 public:
  Cases(const std::string& mnemonic, unsigned seed)
      : warp_(mnemonic),
        product_(*MatrixProduct::make(warp_.form, Hardware::sm_120)),
        random_(seed),
        stored_(warp_.a.fragment().cols) {
    sum_.exponent_only = warp_.form.scale_type == Type::ue8m0;
  }

  // Eight cases. The number of wrong ones.
  int run() {
    fill();
    warp_.run(product_);
    int wrong = 0;
    for (int col = 0; col < 8; ++col) {
      const int row = row_of(col);
      const std::uint32_t expected = second_model(sum_of(row, col));
      const std::uint64_t got = warp_.d.get(row, col);
      EXPECT_EQ(got, expected) << isa::spell(warp_.form) << ", C " << sum_.c;
      wrong += got != expected;
    }
    ++round_;
    return wrong;
  }

 private:
  unsigned below(unsigned count) { return static_cast<unsigned>(random_() % count); }
  int row_of(int col) const { return (col + round_) % 8 + 8 * (round_ / 8 % 2); }
  bool sparse() const { return warp_.form.sparsity != isa::Sparsity::dense; }
  int blocks() const { return warp_.form.scale_vec ? warp_.form.scale_vec : 2; }

  void fill() {
    // Any elements; few that are not zero; pairs that cancel.
    const unsigned kind = below(3);
    const auto element = [&] { return kind == 1 && below(12) ? 0 : random_(); };
    warp_.a.fill_with(element);
    warp_.b.fill_with(element);
    if (kind == 2)
      for (int col = 0; col < 8; ++col)
        for (int k = 0; k + 1 < stored_; k += 2) {
          const int row = row_of(col);
          warp_.a.set(row, k + 1, warp_.a.get(row, k) ^ (below(8) ? 8u : 0u));
          if (!sparse()) warp_.b.set(k + 1, col, warp_.b.get(k, col));
        }
    constexpr std::uint32_t codes[] = {0x4, 0x8, 0x9, 0xC, 0xD, 0xE};
    for (std::uint32_t& word : warp_.metadata)
      for (int i = 0; i < 8; ++i) word = word << 4 | codes[below(6)];
    fill_scales();
    warp_.byte_a = blocks() == 2 ? 2 * static_cast<int>(below(2)) : 0;
    warp_.byte_b = blocks() == 2 ? 2 * static_cast<int>(below(2)) : 0;
    warp_.thread_a = static_cast<int>(below(2));
    warp_.thread_b = static_cast<int>(below(4));
    fill_c();
  }

  // Near a number, around which E, or the cut, decides; any; near the floor; zero.
  void fill_scales() {
    const unsigned kind = below(6), one = sum_.exponent_only ? 127 : 0x38;
    const unsigned spread = sum_.exponent_only ? 1 + below(44) : 1 + below(56);
    const auto byte = [&](bool of_a) -> unsigned {
      if (below(400) == 0) return sum_.exponent_only ? 0xFF : 0x7F;
      if (kind == 0) return below(256);
      if (kind == 1 && sum_.exponent_only) return of_a ? below(3) : 76 + below(32);
      if (kind == 1) return below(9);
      if (kind == 2 && below(3) == 0) return 0;
      return one - spread / 2 + below(spread);
    };
    for (std::uint32_t& word : warp_.scale_a)
      for (int i = 0; i < 4; ++i) word = word << 8 | byte(true);
    for (std::uint32_t& word : warp_.scale_b)
      for (int i = 0; i < 4; ++i) word = word << 8 | byte(false);
    tiny_ = kind == 1 && sum_.exponent_only;
  }

  // Zero, near the products, far from them, any word, subnormal.
  void fill_c() {
    const unsigned kind = tiny_ && below(2) ? 0 : below(5);
    warp_.c.fill_with([&]() -> std::uint64_t {
      const std::uint64_t word = random_();
      const std::uint64_t field = (tiny_ ? 0 : 107) + below(45);
      if (kind == 0) return 0;
      if (kind == 1) return (word & 0x807FFFFF) | field << 23;
      if (kind == 2) return (word & 0x80000001) | field << 23;
      return kind == 3 ? word : word & 0x800FFFFF;
    });
  }

  // The operands of an element of D, through the manual's places of scales and metadata.
  const Sum& sum_of(int row, int col) {
    sum_.a.clear(), sum_.b.clear(), sum_.scale_a.clear(), sum_.scale_b.clear();
    for (int k = 0; k < stored_; ++k) {
      sum_.a.push_back(static_cast<int>(warp_.a.get(row, k)));
      sum_.b.push_back(static_cast<int>(warp_.b.get(sparse() ? dense_k(row, k) : k, col)));
    }
    const std::uint32_t word_a =
        warp_.scale_a[static_cast<std::size_t>(4 * (row % 8) + 2 * warp_.thread_a + row / 8)];
    const std::uint32_t word_b = warp_.scale_b[static_cast<std::size_t>(4 * col + warp_.thread_b)];
    for (int block = 0; block < blocks(); ++block) {
      sum_.scale_a.push_back(word_a >> (8 * (warp_.byte_a + block)) & 255);
      sum_.scale_b.push_back(word_b >> (8 * (warp_.byte_b + block)) & 255);
    }
    sum_.c = static_cast<std::uint32_t>(warp_.c.get(row, col));
    return sum_;
  }
  // Of eight elements, two pairs are stored.
  int dense_k(int row, int k) const {
    const isa::MetadataBits at = isa::metadata(warp_.form, row, k / 4, 0);
    const std::uint32_t code = warp_.metadata[static_cast<std::size_t>(at.lane)] >> at.lowest;
    return k / 4 * 8 + 2 * static_cast<int>(code >> (k % 4 / 2 * 2) & 3) + k % 2;
  }

  Warp warp_;
  MatrixProduct product_;
  std::mt19937_64 random_;
  int stored_, round_ = 0;
  bool tiny_ = false;  // the products
  Sum sum_;
};

// TARTAN_SCALED=all: 600,000 cases.
TEST(MatrixScaled, AgreesWithASecondModel) {
  const bool all = std::getenv("TARTAN_SCALED") != nullptr;
  const int rounds = all ? 12500 : 625;  // of eight cases
  int cases = 0, wrong = 0;
  unsigned seed = 0;
  for (const std::string& form : {mxf4, mxf4nvf4_2x, nvfp4})
    for (const std::string& mnemonic : {dense(form), sparse(form)}) {
      Cases some(mnemonic, ++seed);
      for (int round = 0; round < rounds && wrong < 20; ++round, cases += 8) wrong += some.run();
    }
  EXPECT_EQ(wrong, 0);
  if (all) std::printf("%d cases, %d wrong\n", cases, wrong);
}

}  // namespace
}  // namespace tartan::emulator
