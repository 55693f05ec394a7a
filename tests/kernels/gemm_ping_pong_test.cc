// SPDX-License-Identifier: Apache-2.0
// Warpgroups that compute the tiles of a persistent CTA in turn (Tile::products).
#include "tests/kernels/gemm_finished.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Finished;
using testing_gemm::Launch;
using testing_gemm::Product;
using testing_gemm::target_of;

bool runs_here(const Target& target) {
  return !testing_gemm::gpu() || testing_gemm::runs_on_gpu(target);
}

Gemm in_turn(int rows, int columns, int stages) {
  Gemm out{.stages = stages};
  out.tile = {.m = rows, .n = columns, .k = 64, .warps_m = 4, .warps_n = 1, .products = 2};
  out.producers = 4, out.persistent = true;
  return out;
}

int wrong(const char* target, const Gemm& options, int m, int n, int k, unsigned blocks,
          bool fixed = false) {
  const Product product(options, m, n, k, fixed);
  Launch launch = product.launch();
  if (blocks) launch.grid = {blocks};
  return product.wrong(
      testing_gemm::run(kernels::gemm(product.options), target_of(target), launch));
}

// Counts of tiles that the warpgroups share evenly, and others; fewer tiles than CTAs; fewer
// k-tiles than stages, as many, and more.
TEST(GemmPingPong, ComputesAllTiles) {
  if (!runs_here(target_of("sm_90a"))) GTEST_SKIP();
  for (const int stages : {1, 2, 3, 5})
    for (const int k : {8, 64, 136, 328})
      for (const unsigned blocks : {1u, 2u, 5u})
        for (const bool fixed : {false, true}) {
          SCOPED_TRACE(fmt::format("{} stages, k = {}, {} blocks, {}", stages, k, blocks, fixed));
          EXPECT_EQ(wrong("sm_90a", in_turn(64, 64, stages), 130, 200, k, blocks, fixed), 0);
        }
}

TEST(GemmPingPong, TilesOfSeveralProducts) {
  if (!runs_here(target_of("sm_90a"))) GTEST_SKIP();
  for (const int columns : {64, 112, 144, 176})
    for (const Type c : {f32, bf16}) {
      SCOPED_TRACE(fmt::format("{} columns, {}", columns, name(c)));
      Gemm options = in_turn(128, columns, 3);
      options.a = options.b = bf16, options.c = c;
      EXPECT_EQ(wrong("sm_90a", options, 264, 2 * columns + 8, 200, 2), 0);
    }
}

TEST(GemmPingPong, EveryType) {
  if (!runs_here(target_of("sm_90a"))) GTEST_SKIP();
  for (const Type type : {f16, bf16, f32, Type::s8, Type::e4m3})
    for (const int promote : {0, 1, 4}) {
      if (promote > 0 && type != Type::e4m3) continue;
      SCOPED_TRACE(fmt::format("{}, promote {}", name(type), promote));
      Gemm options = in_turn(64, 64, 4);
      options.a = options.b = type, options.tile.k = 1024 / bits(type), options.promote = promote;
      if (type == Type::s8) options.accumulator = options.c = s32;
      EXPECT_EQ(wrong("sm_90a", options, 200, 136, 656, 2), 0);
    }
}

// Rounded and saturated to s8, as they are and after an epilogue.
TEST(GemmPingPong, BytesAsResults) {
  if (!runs_here(target_of("sm_90a"))) GTEST_SKIP();
  for (const bool finished : {false, true})
    for (const int k : {128, 656})
      for (const int n : {144, 160}) {
        SCOPED_TRACE(fmt::format("k = {}, n = {}, epilogue {}", k, n, finished));
        Gemm options = in_turn(64, 64, 4);
        options.a = options.b = options.c = Type::s8, options.accumulator = s32;
        options.tile.k = 128;
        if (finished) options.epilogue = {.row_scales = true, .column_scales = true, .bias = true};
        const Finished of{Product(options, 200, n, k)};
        Launch launch = of.launch();
        launch.grid = {2};
        const auto c =
            testing_gemm::run(kernels::gemm(of.product.options), target_of("sm_90a"), launch);
        int saturated = 0;
        const auto expected = [&](int i, int j) {
          const double out = of.expected(i, j);
          saturated += std::fabs(out) >= 127;
          return out;
        };
        EXPECT_EQ(of.product.wrong(c, expected), 0);
        EXPECT_GT(saturated, 0);
        EXPECT_LT(saturated, 190 * n);
      }
}

// The first multiplies by mma.sync.
TEST(GemmPingPong, OnOtherTargets) {
  for (const char* target : {"sm_80", "sm_89", "sm_90"}) {
    if (!runs_here(target_of(target))) continue;
    for (const int stages : {1, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} stages", target, stages));
      EXPECT_EQ(wrong(target, in_turn(64, 64, stages), 130, 200, 136, 2), 0);
    }
  }
}

TEST(GemmPingPong, InClusters) {
  if (!runs_here(target_of("sm_90a"))) GTEST_SKIP();
  for (const auto& [cluster, columns] : {std::pair{2, 1}, {1, 2}, {2, 2}, {4, 1}})
    for (const int m : {64, 200, 330})
      for (const bool swap : {false, true}) {
        SCOPED_TRACE(fmt::format("{} x {} blocks, {} rows, {}", cluster, columns, m, swap));
        Gemm options = in_turn(64, 64, 3);
        options.cluster = cluster, options.cluster_columns = columns, options.swap = swap;
        const auto blocks = static_cast<unsigned>(cluster * columns);
        EXPECT_EQ(wrong("sm_90a", options, m, 264, 200, blocks), 0);
        EXPECT_EQ(wrong("sm_90a", options, m, 264, 200, 2 * blocks), 0);
      }
}

TEST(GemmPingPong, WholeEpilogue) {
  if (!runs_here(target_of("sm_90a"))) GTEST_SKIP();
  for (const Type c : {f32, bf16, Type::e4m3}) {
    SCOPED_TRACE(name(c));
    Gemm options = in_turn(64, 64, 3);
    options.c = c;
    options.epilogue = testing_gemm::every_part;
    const Finished finished{Product(options, 200, 136, 200)};
    Launch launch = finished.launch();
    launch.grid = {2};
    const auto c_of_kernel =
        testing_gemm::run(kernels::gemm(finished.product.options), target_of("sm_90a"), launch);
    EXPECT_EQ(
        finished.product.wrong(c_of_kernel, [&](int i, int j) { return finished.expected(i, j); }),
        0);
  }
}

// As many registers as consumers have for 176 accumulators; the assembler refuses none.
TEST(GemmPingPong, LeavesProductsInFlight) {
  Gemm options = in_turn(128, 176, 5);
  options.a = options.b = options.c = bf16;
  const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  // Two products of a k-tile: those of the one before are waited for.
  EXPECT_NE(compiled->ptx.find("wgmma.wait_group.sync.aligned 2;"), std::string::npos);
}

TEST(GemmPingPong, RefusesOtherSchedules) {
  const auto message = [](const Gemm& options) {
    const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
    return compiled ? std::string("compiled") : compiled.diags().text();
  };
  Gemm options = in_turn(64, 64, 3);
  options.persistent = false;
  EXPECT_NE(message(options).find("require persistent and producers"), std::string::npos);
  options.persistent = true, options.producers = 0;
  EXPECT_NE(message(options).find("require persistent and producers"), std::string::npos);
  options.producers = 4, options.tile.warps_m = 2;
  EXPECT_NE(message(options).find("expected 4 warps of a warpgroup, found 2"), std::string::npos);
}

}  // namespace
}  // namespace tartan
