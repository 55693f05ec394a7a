// SPDX-License-Identifier: Apache-2.0
// Block-scaled products against the naive product in double precision. Elements are small numbers
// that every type represents, scales powers of two or small numbers near one: sums are exact in
// f32.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::BlockScaled;
using testing_gemm::Bytes;
using testing_gemm::Launch;

constexpr int sizes[] = {1, 7, 16, 63, 64, 65, 127, 200};

// Sign, exponent and mantissa bits of an element, and the exponent's bias, as the manual has them.
struct Format {
  Type type;
  int exponent, mantissa, bias;
};
constexpr Format formats[] = {
    {Type::e4m3, 4, 3, 7}, {Type::e5m2, 5, 2, 15}, {Type::e3m2, 3, 2, 3},   {Type::e2m3, 2, 3, 1},
    {Type::e2m1, 2, 1, 1}, {Type::ue4m3, 4, 3, 7}, {Type::ue8m0, 8, 0, 127}};

const Format& format(Type type) {
  for (const Format& each : formats)
    if (each.type == type) return each;
  return formats[0];
}

// The value of an element's bits; none of the patterns below is a NaN or an infinity.
double value(Type type, unsigned bits) {
  const Format& f = format(type);
  const unsigned exponent = bits >> f.mantissa & ((1u << f.exponent) - 1),
                 mantissa = bits & ((1u << f.mantissa) - 1);
  const double fraction = std::ldexp(mantissa, -f.mantissa);
  const double size = exponent || type == Type::ue8m0
                          ? std::ldexp(1 + fraction, static_cast<int>(exponent) - f.bias)
                          : std::ldexp(fraction, 1 - f.bias);
  return bits >> (f.exponent + f.mantissa) & 1 ? -size : size;
}

// The bits of an element between 0.25 and 6, or zero, of either sign.
unsigned element(Type type, unsigned random) {
  const Format& f = format(type);
  const unsigned sign = random & 1, mantissa = random >> 1 & ((1u << f.mantissa) - 1),
                 exponent = static_cast<unsigned>(f.bias) + (random >> 8) % 3 - (f.bias > 1);
  const unsigned magnitude = (random >> 12) % 8 == 0 ? 0 : exponent << f.mantissa | mantissa;
  return sign << (f.exponent + f.mantissa) | magnitude;
}

// ue8m0: 1/2 to 2; ue4m3: 1 to almost 4.
unsigned scale(Type type, unsigned random) {
  if (type == Type::ue8m0) return 126 + random % 3;
  return (7 + random % 2) << 3 | (random >> 4 & 7);
}

unsigned hash(unsigned x) {
  x = (x ^ x >> 16) * 0x7feb352d;
  x = (x ^ x >> 15) * 0x846ca68b;
  return x ^ x >> 16;
}

// Contiguous, from the lowest bit on.
Bytes pack(Type type, const std::vector<unsigned>& values) {
  const auto width = static_cast<std::size_t>(bits(type));
  Bytes out((values.size() * width + 7) / 8);
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t b = 0; b < width; ++b)
      if (values[i] >> b & 1)
        out[(i * width + b) / 8] |= static_cast<std::byte>(1 << (i * width + b) % 8);
  return out;
}

struct Scaled {
  BlockScaled options;
  int m, n, k, block;
  std::vector<unsigned> a, b, scales_a, scales_b;

  Scaled(const BlockScaled& wanted, int rows, int cols, int depth, bool fixed)
      : options(wanted), m(rows), n(cols), k(depth), block(wanted.scale == Type::ue4m3 ? 16 : 32) {
    options.multiple = std::min(testing_gemm::largest_power(k), 1024);
    options.multiple_c = std::min(testing_gemm::largest_power(n), 1024);
    options.m = fixed ? m : 0, options.n = fixed ? n : 0, options.k = fixed ? k : 0;
    const auto fill = [](std::vector<unsigned>& to, int count, unsigned seed, auto make) {
      for (int i = 0; i < count; ++i) to.push_back(make(hash(seed + static_cast<unsigned>(i))));
    };
    fill(a, m * k, 1, [&](unsigned x) { return element(options.a, x); });
    fill(b, n * k, 1u << 20, [&](unsigned x) { return element(options.b, x); });
    fill(scales_a, m * blocks(), 2u << 20, [&](unsigned x) { return scale(options.scale, x); });
    fill(scales_b, n * blocks(), 3u << 20, [&](unsigned x) { return scale(options.scale, x); });
  }

  int blocks() const { return (k + block - 1) / block; }
  static double at(Type type, const std::vector<unsigned>& from, int line, int length, int i) {
    return value(type, from[static_cast<std::size_t>(line * length + i)]);
  }
  double sum(int i, int j) const {
    double out = 0;
    for (int x = 0; x < k; ++x)
      out += at(options.a, a, i, k, x) * at(options.scale, scales_a, i, blocks(), x / block) *
             at(options.b, b, j, k, x) * at(options.scale, scales_b, j, blocks(), x / block);
    return out;
  }
  Launch launch(int multiprocessors = 132) const {
    return {{options.grid_x(m, n, multiprocessors)},
            [this](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
              if (options.m == 0) arguments.add(m).add(n).add(k);
              for (const Bytes& each : {pack(options.a, a), pack(options.scale, scales_a),
                                        pack(options.b, b), pack(options.scale, scales_b)}) {
                buffers.push_back(testing_gemm::buffer_of(device, each));
                arguments.add(buffers.back());
              }
              Buffer out = *device.allocate(static_cast<std::size_t>(m) * n * bits(options.c) / 8);
              EXPECT_TRUE(out.fill(0xFF));
              arguments.add(out);
              return out;
            }};
  }
  // A sum rounded to C's type.
  double rounded(double x) const {
    if (options.c == f32) return static_cast<float>(x);
    int exponent = 0;
    std::frexp(x, &exponent);
    const int last = exponent - (options.c == f16 ? 11 : 8);
    return std::ldexp(std::nearbyint(std::ldexp(x, -last)), last);
  }
};

int wrong(const Scaled& scaled, const Bytes& bytes) {
  const BlockScaled& options = scaled.options;
  const int m = scaled.m, n = scaled.n;
  const auto got = testing_numbers::decode(options.c, bytes);
  EXPECT_EQ(got.size(), static_cast<std::size_t>(m) * n);
  int count = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const int row = static_cast<int>(i) / n, col = static_cast<int>(i) % n;
    const double sum = scaled.sum(row, col);
    const bool relu = options.epilogue.activation == kernels::Activation::relu;
    const double want = scaled.rounded(relu ? std::max(sum, 0.0) : sum);
    if (got[i] != want && count++ == 0)
      ADD_FAILURE() << fmt::format("element ({}, {}): expected {}, got {}", row, col, want, got[i]);
  }
  return count;
}

std::string text(const Scaled& scaled) {
  return fmt::format("{} {} {}: {} x {} x {}", name(scaled.options.a), name(scaled.options.b),
                     name(scaled.options.scale), scaled.m, scaled.n, scaled.k);
}

int wrong(const BlockScaled& options, int m, int n, int k, bool fixed = false) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm < 120) return 0;
  const Scaled scaled(options, m, n, k, fixed);
  SCOPED_TRACE(text(scaled));
  return wrong(scaled, testing_gemm::run(kernels::block_scaled(scaled.options),
                                         testing_gemm::target_of("sm_120a"), scaled.launch()));
}

// By tcgen05, in two orders of warps and with all checks.
void compare_by_tcgen05(BlockScaled options, int m, int n, int k, int multiprocessors = 132) {
  options.producers = 4;
  options.tile.warps_m = options.tile.m / 32, options.tile.warps_n = 1;
  const Scaled scaled(options, m, n, k, false);
  SCOPED_TRACE(text(scaled));
  const auto compiled =
      compile(kernels::block_scaled(scaled.options), testing_gemm::target_of("sm_100a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(compiled->ptx.find(fmt::format("tcgen05.mma.cta_group::{}", options.cluster)),
            std::string::npos);
  for (const char* const schedule : {"", "1"}) {
    DeviceOptions with{.hardware = "sm_100a", .checks = Checks::all};
    with.schedule = schedule;
    Device device = *Device::open("emulator", with);
    EXPECT_EQ(
        wrong(scaled, testing_gemm::run_on(device, *compiled, scaled.launch(multiprocessors))), 0);
  }
}

// Every size in every dimension; k in multiples that the types allow.
void check(const BlockScaled& options, int unit) {
  for (int round = 0; round < 8; ++round) {
    const int m = sizes[round], n = sizes[(3 * round + 1) % 8],
              k = (sizes[(5 * round + 2) % 8] + unit - 1) / unit * unit;
    EXPECT_EQ(wrong(options, m, n, k, round % 3 == 2), 0);
  }
}

TEST(BlockScaledGemm, EightBits) {
  check({.a = Type::e4m3, .b = Type::e4m3}, 1);
  check({.a = Type::e5m2, .b = Type::e4m3, .c = bf16}, 1);
}

TEST(BlockScaledGemm, SixBits) {
  check({.a = Type::e3m2, .b = Type::e2m3}, 16);
  check({.a = Type::e2m3, .b = Type::e5m2}, 16);
}

TEST(BlockScaledGemm, FourBits) {
  check({.a = Type::e2m1, .b = Type::e2m1}, 2);
  check({.a = Type::e2m1, .b = Type::e2m1, .scale = Type::ue4m3}, 2);
  check({.a = Type::e2m1, .b = Type::e2m1, .kind = isa::Kind::mxf4nvf4}, 2);
}

// Every type with every other, in byte containers.
TEST(BlockScaledGemm, AnyWithAny) {
  constexpr Type types[] = {Type::e4m3, Type::e5m2, Type::e3m2, Type::e2m3, Type::e2m1};
  for (const Type a : types)
    for (const Type b : types)
      EXPECT_EQ(wrong({.a = a, .b = b, .kind = isa::Kind::mxf8f6f4, .c = f16}, 33, 24, 160), 0);
}

TEST(BlockScaledGemm, TilesAndEpilogues) {
  // A warp has three fragments of B, one of A; two words of scales.
  EXPECT_EQ(wrong({.tile = {.m = 16, .n = 48, .k = 256, .warps_m = 1, .warps_n = 2}, .stages = 1},
                  40, 100, 333),
            0);
  EXPECT_EQ(wrong({.a = Type::e2m1,
                   .b = Type::e2m1,
                   .scale = Type::ue4m3,
                   .tile = {.m = 96, .n = 16, .k = 64, .warps_m = 2, .warps_n = 1},
                   .stages = 2},
                  100, 40, 320),
            0);
  EXPECT_EQ(wrong({.c = f16, .epilogue = {.activation = kernels::Activation::relu}}, 65, 63, 127),
            0);
}

TEST(BlockScaledGemm, ByTcgen05) {
  for (const int n : {64, 96}) {
    const Tile tile{.m = 128, .n = n, .k = 128}, longer{.m = 128, .n = n, .k = 256};
    for (const auto& [a, b] : {std::pair{Type::e4m3, Type::e4m3}, {Type::e5m2, Type::e2m3}})
      compare_by_tcgen05({.a = a, .b = b, .tile = tile}, 200, 160, 384);
    compare_by_tcgen05({.a = Type::e3m2, .b = Type::e2m1, .tile = longer}, 130, 100, 272);
    for (const Type scale : {Type::ue8m0, Type::ue4m3})
      for (const isa::Kind kind : {isa::Kind::none, isa::Kind::mxf4nvf4})
        compare_by_tcgen05({.a = Type::e2m1,
                            .b = Type::e2m1,
                            .scale = scale,
                            .kind = kind,
                            .c = bf16,
                            .tile = longer,
                            .stages = 2},
                           129, 72, 640);
  }
  // Two warpgroups; one stage.
  compare_by_tcgen05({.tile = {.m = 256, .n = 64, .k = 128}, .stages = 1}, 300, 64, 333);
}

// Pairs of CTAs, and CTAs that compute tile after tile, in turn or not.
TEST(BlockScaledGemm, PairsAndPersistence) {
  const Tile tile{.m = 128, .n = 64, .k = 128}, longer{.m = 128, .n = 64, .k = 256};
  compare_by_tcgen05({.tile = tile, .cluster = 2}, 260, 72, 272);
  compare_by_tcgen05({.a = Type::e3m2, .b = Type::e4m3, .tile = tile, .cluster = 2}, 130, 72, 272);
  for (const Type scale : {Type::ue8m0, Type::ue4m3})
    compare_by_tcgen05({.a = Type::e2m1,
                        .b = Type::e2m1,
                        .scale = scale,
                        .c = bf16,
                        .tile = longer,
                        .stages = 2,
                        .cluster = 2},
                       257, 72, 272);
  compare_by_tcgen05({.tile = tile, .persistent = true}, 260, 72, 272, 2);
  compare_by_tcgen05({.tile = {.m = 128, .n = 64, .k = 128, .products = 2}, .persistent = true},
                     260, 72, 272, 2);
  compare_by_tcgen05(
      {.tile = {.m = 128, .n = 64, .k = 128, .products = 2}, .persistent = true, .cluster = 2}, 520,
      72, 272, 4);
}

// What tuned() chooses fits in tensor memory and multiplies by tcgen05, whatever the sizes.
TEST(BlockScaledGemm, Tuned) {
  const Target target = testing_gemm::target_of("sm_100a");
  for (const Type scale : {Type::ue8m0, Type::ue4m3})
    for (const auto& [a, b] :
         {std::pair{Type::e4m3, Type::e4m3}, {Type::e2m1, Type::e3m2}, {Type::e2m1, Type::e2m1}}) {
      if (scale == Type::ue4m3 && (a != Type::e2m1 || b != Type::e2m1)) continue;
      for (const auto& [m, n] : {std::pair{1, 16}, {128, 4096}, {384, 512}, {8192, 8192}, {0, 0}}) {
        SCOPED_TRACE(fmt::format("{} {} {}: {} x {}", name(a), name(b), name(scale), m, n));
        const BlockScaled options = kernels::tuned(
            BlockScaled{.m = m, .n = n, .k = 4096, .a = a, .b = b, .scale = scale}, target);
        const auto compiled = compile(kernels::block_scaled(options), target);
        ASSERT_TRUE(compiled) << compiled.diags().text();
        EXPECT_NE(compiled->ptx.find("tcgen05.mma"), std::string::npos);
        EXPECT_GE(options.stages, 3);
      }
    }
  BlockScaled fours = kernels::tuned(
      BlockScaled{.m = 8192, .n = 8192, .a = Type::e2m1, .b = Type::e2m1, .scale = Type::ue4m3},
      target);
  EXPECT_EQ(fours.cluster, 2);
  EXPECT_TRUE(fours.persistent);
  compare_by_tcgen05(fours, 260, 264, 272, 2);
  EXPECT_EQ(kernels::tuned(BlockScaled{}, testing_gemm::target_of("sm_120a")).tile.m,
            BlockScaled{}.tile.m);
}

std::string refusal(const BlockScaled& options, const char* target) {
  const auto compiled = compile(kernels::block_scaled(options), testing_gemm::target_of(target));
  EXPECT_FALSE(compiled);
  return compiled ? "" : compiled.diags().text();
}

TEST(BlockScaledGemm, RejectsInvalidOptions) {
  EXPECT_NE(refusal({}, "sm_90").find("requires sm_120a and PTX 8.7"), std::string::npos)
      << refusal({}, "sm_90");
  EXPECT_NE(refusal({.a = f16, .b = f16}, "sm_120a").find("has no mma.sync of f16 and f16"),
            std::string::npos);
  EXPECT_NE(refusal({.scale = Type::ue4m3}, "sm_120a").find("has no mma.sync of e4m3 and e4m3"),
            std::string::npos);
  EXPECT_NE(refusal({.k = 24, .a = Type::e3m2}, "sm_120a").find("k is not a multiple of 16"),
            std::string::npos);
  EXPECT_NE(refusal({.tile = {.m = 64, .n = 64, .k = 64, .warps_m = 2, .warps_n = 2}}, "sm_120a")
                .find("the tile's k = 64 is not a multiple of 128"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan
