// SPDX-License-Identifier: Apache-2.0
// The cost model by which tuned() chooses, and what it chooses on sm_90a.
#include "kernels/tuner/gemm_candidates.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using isa::find_gpu;
using kernels::Gemm;
using kernels::detail::gemm_cost;
using testing_gemm::Product;

const Target hopper = *Target::parse("sm_90a");

Gemm problem(int m, int n, int k, Type type) {
  Gemm out{.m = m, .n = n, .k = k, .a = type, .b = type, .c = type};
  if (type == Type::s8) out.accumulator = out.c = s32;
  if (type == Type::e4m3) out.c = bf16;
  if (type == f32) out.c = f32;
  return out;
}

std::string text(const Gemm& options) {
  const Tile& tile = options.tile;
  return fmt::format("{}x{}x{}:{}x{}x{}:{}:{}{}{}", tile.m, tile.n, tile.k, tile.warps_m,
                     tile.warps_n, tile.warps_k, options.stages, options.producers,
                     options.persistent ? ":persistent" : "",
                     options.cluster > 1 ? fmt::format(":cluster={}", options.cluster) : "") +
         fmt::format("{}:cluster_splits={}:products={}{}", options.swap ? ":swap" : "",
                     options.cluster_splits, tile.products, options.direct ? ":direct" : "");
}

struct Sizes {
  int m, n, k;
};
// Of all ways to copy: rows of whole lines, of 16 bytes, of 8, of elements.
constexpr Sizes sizes[] = {{1, 512, 512},       {32, 4096, 14336},   {84, 3840, 640},
                           {200, 10928, 11720}, {768, 768, 768},     {1000, 1000, 1000},
                           {97, 6982, 1055},    {2048, 12288, 1536}, {2064, 6680, 1176},
                           {15, 517, 7453},     {3432, 7424, 3736},  {1757, 688, 9077},
                           {4096, 4096, 4096},  {6154, 8271, 1517},  {4464, 512, 800},
                           {14, 512, 7936},     {7, 4096, 4096},     {16, 512, 8192}};
constexpr Type types[] = {bf16, Type::e4m3, Type::s8, f32};

TEST(GemmChoice, MoreWorkCostsMore) {
  for (const Type type : types)
    for (const Gemm& each : kernels::detail::candidates(problem(512, 1024, 1024, type), hopper,
                                                        *find_gpu(hopper.arch))) {
      SCOPED_TRACE(text(each));
      const auto cycles = [&](int m, int n, int k) {
        Gemm other = each;
        other.m = m, other.n = n, other.k = k;
        return gemm_cost(other, hopper, *find_gpu(hopper.arch)).cycles;
      };
      const double before = cycles(512, 1024, 1024);
      EXPECT_GT(before, 0);
      EXPECT_LT(before, 1e6);
      EXPECT_GT(cycles(512, 1024, 4096), before);
      EXPECT_GT(cycles(8192, 1024, 1024), before);
      EXPECT_GT(cycles(512, 16384, 1024), before);
    }
}

TEST(GemmChoice, CandidatesOfEveryGpu) {
  for (const isa::GpuRow& gpu : isa::gpus()) {
    const Target target = *Target::parse(fmt::format("sm_{}", gpu.sm));
    EXPECT_EQ(find_gpu(target.arch)->sm, gpu.sm);
    const auto all =
        kernels::detail::ranked(problem(512, 1024, 1024, f16), target, gpu, true, 1000);
    EXPECT_GT(all.size(), 20u) << gpu.name;
    for (std::size_t i = 1; i < all.size(); ++i)
      EXPECT_LE(all[i - 1].cycles, all[i].cycles) << gpu.name;
  }
  EXPECT_EQ(find_gpu(Target::parse("sm_75")->arch), nullptr);
}

// No choice spills, and each is the same the next time.
TEST(GemmChoice, CompilesWithoutSpills) {
  const Target target = testing_gemm::target_of("sm_90a");
  for (const Type type : types)
    for (const auto& [m, n, k] : sizes) {
      const Gemm options = kernels::tuned(problem(m, n, k, type), target);
      SCOPED_TRACE(fmt::format("{} x {} x {} {}: {}", m, n, k, name(type), text(options)));
      EXPECT_EQ(text(options), text(kernels::tuned(problem(m, n, k, type), target)));
      EXPECT_NE(options.tile.k, 0);
      const auto compiled = compile(kernels::gemm(options), target);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      for (const Diag& each : compiled->warnings)
        EXPECT_NE(each.id, "register-pressure"_rule.id) << each.message;
    }
}

// What was slow on an H100 before: see docs/experiments.md.
TEST(GemmChoice, KnownMistakes) {
  const auto chosen = [](int m, int n, int k, Type type) {
    return kernels::tuned(problem(m, n, k, type), hopper);
  };
  // Few rows and much of B: producers, many tiles on the way.
  EXPECT_GT(chosen(32, 4096, 14336, bf16).producers, 0);
  EXPECT_GE(chosen(32, 4096, 14336, bf16).stages, 5);
  // Clusters on 128-byte lines only of long sums of 16 bits, in one wave that reads much.
  const auto cluster = [](const Gemm& of) { return of.cluster * of.cluster_columns; };
  EXPECT_EQ(cluster(chosen(512, 5120, 5120, bf16)), 1);
  EXPECT_GE(cluster(chosen(896, 896, 5888, bf16)), 4);
  EXPECT_EQ(cluster(chosen(640, 1536, 2560, f16)), 1);
  EXPECT_EQ(cluster(chosen(256, 3712, 12160, Type::s8)), 1);
  EXPECT_EQ(cluster(chosen(1536, 5760, 14080, bf16)), 1);
  const Gemm off_lines = chosen(3432, 7424, 3736, f16);
  EXPECT_GT(cluster(off_lines), 1);
  // Rows that begin at any element: all threads copy, and no persistent CTAs.
  for (const auto& [m, n, k] : {Sizes{6154, 8271, 1517}, {1757, 688, 9077}}) {
    EXPECT_EQ(chosen(m, n, k, bf16).producers, 0) << m;
    EXPECT_FALSE(chosen(m, n, k, bf16).persistent) << m;
  }
  // Rows of words: tiles whose copies a loop unrolls.
  for (const auto& [m, n, k] : {Sizes{35, 4742, 6342}, {27, 4596, 11382}})
    EXPECT_EQ(kernels::tuned(problem(m, n, k, bf16), hopper, std::size_t{32} << 20).tile.n, 64);
  // Few rows as wgmma's N; clusters that divide k where there are few tiles, and only there.
  EXPECT_TRUE(chosen(4, 8192, 8192, bf16).swap);
  // Fewer than five without tensor cores: where rows are short, or begin off 16 bytes.
  EXPECT_TRUE(chosen(1, 1463, 561, bf16).direct);
  EXPECT_TRUE(chosen(1, 513, 9433, bf16).direct);
  EXPECT_TRUE(chosen(4, 10001, 3333, bf16).direct);
  EXPECT_TRUE(chosen(2, 4234, 4228, f16).direct);
  EXPECT_TRUE(chosen(1, 4001, 4003, Type::s8).direct);
  EXPECT_TRUE(chosen(1, 1024, 1024, bf16).direct);
  EXPECT_FALSE(chosen(5, 1463, 561, bf16).direct);
  // Not where the caller wants what they do not have.
  const auto wants = [](auto change) {
    Gemm out = problem(1, 1463, 561, bf16);
    change(out);
    return kernels::tuned(out, hopper);
  };
  EXPECT_FALSE(wants([](Gemm& g) { g.producers = 4; }).direct);
  EXPECT_FALSE(wants([](Gemm& g) { g.persistent = true; }).direct);
  EXPECT_FALSE(wants([](Gemm& g) { g.cluster = 2; }).direct);
  // No turns where a third of a tile's rows is padding.
  EXPECT_EQ(chosen(72, 40000, 512, f16).tile.products, 1);
  // Nor where rows begin within sectors of 32 bytes.
  EXPECT_EQ(chosen(7000, 3000, 672, bf16).tile.products, 2);
  EXPECT_EQ(chosen(6104, 8672, 592, Type::e4m3).tile.products, 1);
  // In turn: tiles of 192 rows, and of transposes whose columns divide the rows evenly; not where
  // lanes would store those.
  EXPECT_EQ(chosen(552, 9656, 1152, f16).tile.m, 192);
  EXPECT_EQ(chosen(552, 9656, 1152, f16).tile.products, 2);
  const Gemm transposes = chosen(2328, 11920, 1216, bf16);
  EXPECT_TRUE(transposes.swap && transposes.tile.products == 2);
  EXPECT_FALSE(chosen(6768, 1296, 576, Type::s8).swap);
  // Of several waves, no clusters of four CTAs that end with their tile.
  EXPECT_TRUE(chosen(7104, 936, 912, f16).persistent);
  EXPECT_EQ(chosen(16, 8192, 8192, bf16).tile.n, 16);
  EXPECT_GT(chosen(14, 512, 7936, bf16).cluster_splits, 1);
  EXPECT_GT(chosen(116, 512, 11520, bf16).producers, 0);
  EXPECT_GT(chosen(116, 512, 11520, bf16).cluster_splits, 1);
  // A fourth stage of the largest tiles, where it helps.
  Gemm to_bytes = problem(8192, 8192, 8192, Type::s8);
  to_bytes.c = Type::s8;
  EXPECT_EQ(kernels::tuned(to_bytes, hopper).stages, 4);
  EXPECT_EQ(chosen(8192, 8192, 8192, bf16).stages, 3);
  // Rows that begin off 128-byte lines, in less than a wave of tiles: clusters share what they
  // read.
  EXPECT_GT(chosen(1112, 3728, 15816, bf16).cluster, 1);
  EXPECT_GT(chosen(408, 4032, 11000, bf16).cluster, 1);
  EXPECT_EQ(chosen(128, 4096, 4096, bf16).cluster_splits, 1);
  // Rows that are read line by line: wide tiles, which read each line for many products.
  EXPECT_GE(chosen(1563, 1973, 1225, bf16).tile.n, 96);
  EXPECT_GE(chosen(1153, 1915, 3985, Type::s8).tile.n, 96);
  EXPECT_GE(chosen(120, 3001, 9007, bf16).tile.n, 96);
  // A wave of tiles in the order of squares; persistent CTAs in that of tall groups.
  EXPECT_LE(chosen(1536, 896, 4736, Type::e4m3).group, 4);
  EXPECT_LE(chosen(1280, 896, 5376, f16).group, 4);
  EXPECT_EQ(chosen(4096, 4096, 4096, bf16).group, 16);
  // Two waves that transposes of 160 x 128 fill; not if lanes store those, nor in many waves.
  const Gemm two_waves = chosen(5248, 1024, 3840, f16);
  EXPECT_TRUE(two_waves.swap && two_waves.persistent);
  EXPECT_EQ(two_waves.tile.m, 128);
  EXPECT_EQ(two_waves.tile.n, 160);
  EXPECT_FALSE(chosen(4096, 4098, 4096, f16).swap);
  EXPECT_EQ(chosen(8192, 8192, 8192, bf16).tile.n, 256);
  // Tiles of 64 rows in one wave, off lines.
  const Gemm one_wave = chosen(1320, 568, 1384, bf16);
  EXPECT_TRUE(one_wave.swap && !one_wave.persistent);
  EXPECT_EQ(one_wave.tile.m, 64);
  // Of few rows TMA reads the whole tile.
  EXPECT_EQ(chosen(3, 13992, 9272, bf16).tile.n, 8);
  EXPECT_TRUE(chosen(40, 1752, 792, bf16).swap || cluster(chosen(40, 1752, 792, bf16)) > 1);
  // A short wave of wide tiles: 5120 columns are 32 of 160, 128 tiles.
  EXPECT_EQ(chosen(512, 5120, 5120, bf16).tile.n, 160);
}

// On the emulator (on an H100, there too). Sums of small integers are exact in any order.
TEST(GemmChoice, MultipliesAtAwkwardSizes) {
  if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90) GTEST_SKIP();
  const Target target = testing_gemm::target_of("sm_90a");
  int number = 0;
  for (const auto& [m, n, k] : sizes) {
    const Type type = types[number++ % 4];
    Gemm options = kernels::tuned(problem(m, n, k, type), hopper);
    const int rows = std::min(m, 137), cols = 131 + n % 8, depth = 192 + k % 64;
    SCOPED_TRACE(fmt::format("{} {}: {} x {} x {}", name(type), text(options), rows, cols, depth));
    const Product product(options, rows, cols, depth, true);
    EXPECT_EQ(
        product.wrong(testing_gemm::run(kernels::gemm(product.options), target, product.launch())),
        0);
  }
}

}  // namespace
}  // namespace tartan
