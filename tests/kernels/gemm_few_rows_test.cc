// SPDX-License-Identifier: Apache-2.0
// What few rows need: split-K within a cluster, and products whose A and B are swapped.
#include "tests/kernels/gemm_finished.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::every_part;
using testing_gemm::Finished;
using testing_gemm::Product;
using testing_gemm::target_of;

struct Sizes {
  int m, n, k;
};
// No multiples of a tile; fewer k-tiles than splits; one k-tile that is not whole; odd rows.
constexpr Sizes all_sizes[] = {{1, 7, 16}, {65, 136, 200}, {70, 63, 1}, {30, 129, 135}};

Gemm by_warps(int cluster_splits) {
  return {.tile = {.m = 64, .n = 16 * cluster_splits, .k = 32, .warps_m = 2, .warps_n = 2},
          .cluster_splits = cluster_splits};
}

Gemm by_warpgroups(int cluster_splits) {
  return {.a = bf16,
          .b = bf16,
          .tile = {.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1},
          .cluster_splits = cluster_splits,
          .producers = 4};
}

// Columns of the transpose, which are rows of C.
Gemm swapped(int columns) {
  return {.a = bf16,
          .b = bf16,
          .tile = {.m = 64, .n = columns, .k = 64, .warps_m = 4, .warps_n = 1},
          .producers = 1,
          .swap = true};
}

bool runs_here(const Target& target) {
  const Device* const gpu = testing_gemm::gpu();
  return !gpu ||
         (target.arch.suffix ? gpu->arch().sm == target.arch.sm : gpu->arch().sm >= target.arch.sm);
}

int wrong(const char* name, const Gemm& options, const Sizes& size, bool fixed = false) {
  const Target target = target_of(name);
  if (!runs_here(target)) return 0;
  const Finished finished{Product(options, size.m, size.n, size.k, fixed)};
  return finished.product.wrong(
      testing_gemm::run(kernels::gemm(finished.product.options), target, finished.launch()),
      [&](int i, int j) { return finished.expected(i, j); });
}

std::string trace(const Gemm& options, const Sizes& size) {
  return fmt::format("{} to {}, {} {}, tile {}x{}, cluster_splits {}, swap {}: {} x {} x {}",
                     name(options.a), name(options.c), name(options.a_major), name(options.b_major),
                     options.tile.m, options.tile.n, options.cluster_splits, options.swap, size.m,
                     size.n, size.k);
}

TEST(GemmClusterSplits, EverySize) {
  for (const int splits : {2, 4, 8})
    for (const Sizes& size : all_sizes) {
      SCOPED_TRACE(trace(by_warps(splits), size));
      EXPECT_EQ(wrong("sm_90", by_warps(splits), size), 0);
      EXPECT_EQ(wrong("sm_90a", by_warpgroups(splits), size, size.m > 60), 0);
    }
}

// More CTAs than fragments of a warp across: the first of them store.
TEST(GemmClusterSplits, FewColumns) {
  for (const int splits : {2, 4, 8})
    for (const Sizes& size : {Sizes{5, 70, 1049}, {65, 136, 200}, {13, 33, 40}}) {
      Gemm options = by_warps(splits);
      options.tile.n = 16;
      SCOPED_TRACE(trace(options, size));
      EXPECT_EQ(wrong("sm_90", options, size), 0);
      options.tile.n = 32, options.epilogue = every_part, options.c = bf16;
      EXPECT_EQ(wrong("sm_90", options, size), 0);
    }
  Gemm options = by_warpgroups(8);
  options.tile.n = 32;
  EXPECT_EQ(wrong("sm_90a", options, {65, 136, 200}), 0);
  options = by_warps(8);
  options.tile = {.m = 16, .n = 64, .k = 128, .warps_m = 1, .warps_n = 1, .warps_k = 4};
  EXPECT_EQ(wrong("sm_90", options, {13, 200, 1480}), 0);
}

// Columns that the CTAs cannot divide evenly: as many of the first as can have a part each, down to
// one.
TEST(GemmClusterSplits, ColumnsThatDoNotDivide) {
  for (const int splits : {2, 4, 8})
    for (const int columns : {40, 48, 56, 72, 104}) {
      const Sizes size{65, 136, 712};
      Gemm options = by_warps(splits);
      options.tile.n = 2 * columns;
      SCOPED_TRACE(trace(options, size));
      EXPECT_EQ(wrong("sm_90", options, size), 0);
      options = by_warpgroups(splits), options.tile.n = columns;
      EXPECT_EQ(wrong("sm_90a", options, size), 0);
      options.swap = true, options.epilogue = every_part;
      EXPECT_EQ(wrong("sm_90a", options, {columns, 136, 712}, true), 0);
    }
}

// Producers beside mma.sync, warps that divide a k-tile, two products of a batch, integers.
TEST(GemmClusterSplits, OtherKernels) {
  Gemm options = by_warps(2);
  options.producers = 1;
  EXPECT_EQ(wrong("sm_90", options, {65, 136, 200}), 0);
  options.tile = {.m = 16, .n = 64, .k = 64, .warps_m = 1, .warps_n = 1, .warps_k = 4};
  EXPECT_EQ(wrong("sm_90", options, {13, 200, 520}), 0);
  options.producers = 0, options.cluster_splits = 1;
  EXPECT_EQ(wrong("sm_80", options, {13, 200, 520}), 0);
  options = by_warps(4);
  options.a = options.b = s8, options.accumulator = options.c = s32, options.tile.k = 64;
  EXPECT_EQ(wrong("sm_90", options, {65, 136, 208}), 0);
  options = by_warpgroups(4);
  options.a = options.b = s8, options.accumulator = s32, options.c = s8;
  options.tile.k = 128, options.epilogue.column_scales = true;
  EXPECT_EQ(wrong("sm_90a", options, {65, 144, 528}), 0);
  options = by_warpgroups(2);
  options.a = options.b = Type::e4m3, options.c = bf16, options.promote = 1, options.tile.k = 128;
  EXPECT_EQ(wrong("sm_90a", options, {65, 144, 528}), 0);
}

TEST(GemmClusterSplits, WholeEpilogue) {
  for (const Type c : {f32, bf16, Type::e4m3})
    for (const Sizes& size : {Sizes{65, 136, 200}, {30, 129, 136}}) {
      Gemm options = by_warps(2);
      options.epilogue = every_part, options.c = c;
      SCOPED_TRACE(trace(options, size));
      EXPECT_EQ(wrong("sm_90", options, size), 0);
      options = by_warpgroups(4);
      options.epilogue = every_part, options.c = c;
      EXPECT_EQ(wrong("sm_90a", options, size), 0);
    }
}

// One launch; the CTAs of a tile are a cluster; no multicast of what they do not share.
TEST(GemmClusterSplits, IsOneLaunchOfClusters) {
  const Gemm options = by_warpgroups(4);
  EXPECT_EQ(options.blocks(65, 130), 4u * 2 * 3);
  EXPECT_EQ(options.grid_x(65, 130, 132), 24u);
  const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->cluster, 4);
  EXPECT_EQ(compiled->ptx.find("multicast"), std::string::npos);
  EXPECT_NE(compiled->ptx.find("ld.shared::cluster.v4"), std::string::npos);
}

std::string refused(const Gemm& options, const char* target = "sm_90a") {
  const auto compiled = compile(kernels::gemm(options), target_of(target));
  return compiled ? "compiled" : compiled.diags().text();
}

void expect_refused(const Gemm& options, const char* part, const char* target = "sm_90a") {
  const std::string text = refused(options, target);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(GemmClusterSplits, RefusesWhatDoesNotGoTogether) {
  const auto with = [](auto change) {
    Gemm options = by_warpgroups(2);
    return change(options), options;
  };
  expect_refused(with([](Gemm& g) { g.cluster_splits = 3; }), "expected 1, 2, 4 or 8");
  expect_refused(with([](Gemm& g) { g.cluster_splits = 0; }), "expected 1, 2, 4 or 8");
  expect_refused(with([](Gemm& g) { g.splits = 2; }), "excludes splits and stream_blocks");
  expect_refused(with([](Gemm& g) { g.stream_blocks = 8; }), "excludes splits and stream_blocks");
  expect_refused(with([](Gemm& g) { g.persistent = true; }), "unsupported for persistent kernels");
  expect_refused(with([](Gemm& g) { g.cluster = 2; }), "cluster_splits requires cluster = 1");
  expect_refused(with([](Gemm& g) { g.tile.n = 8, g.tile.warps_n = 4; }),
                 "n = 8 is not a multiple");
  expect_refused(by_warps(2), "clusters require sm_90 and PTX 8.0", "sm_80");
}

TEST(GemmSwap, EverySize) {
  for (const int columns : {8, 16, 24, 32, 48, 64})
    for (const Sizes& size : all_sizes) {
      if (columns % 24 && size.m != 65) continue;
      const Gemm options = swapped(columns);
      SCOPED_TRACE(trace(options, size));
      EXPECT_EQ(wrong("sm_90a", options, size, size.m > 60), 0);
    }
  Gemm options{.tile = {.m = 64, .n = 32, .k = 32, .warps_m = 2, .warps_n = 2}, .swap = true};
  for (const Sizes& size : all_sizes) {
    SCOPED_TRACE(trace(options, size));
    EXPECT_EQ(wrong("sm_80", options, size), 0);
  }
}

// wgmma takes 16-bit operands of any majorness, 8-bit ones that are contiguous along k.
TEST(GemmSwap, EveryTypeAndMajorness) {
  const Type bytes[] = {s8, Type::e4m3, Type::e5m2};
  for (const Major a_major : {Major::row, Major::col})
    for (const Major b_major : {Major::row, Major::col})
      for (const Type type : {f16, bf16, f32, s8, Type::e4m3, Type::e5m2}) {
        const bool is_byte = std::find(std::begin(bytes), std::end(bytes), type) != std::end(bytes);
        if (is_byte && (a_major == Major::col || b_major == Major::row)) continue;
        Gemm options = swapped(32);
        options.a = options.b = type, options.a_major = a_major, options.b_major = b_major;
        options.tile.k = 1024 / bits(type);
        if (type == s8) options.accumulator = options.c = s32;
        const Sizes size{40, 144, 272};
        SCOPED_TRACE(trace(options, size));
        EXPECT_EQ(wrong("sm_90a", options, size), 0);
        const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        const bool along_k = a_major == Major::row && b_major == Major::col;
        EXPECT_EQ(compiled->ptx.find("\twgmma.mma_async") != std::string::npos,
                  bits(type) == 16 || along_k);
      }
  // A of one type, B of another; their places are exchanged.
  Gemm options = swapped(16);
  options.a = Type::e4m3, options.b = Type::e5m2, options.c = bf16, options.tile.k = 128;
  EXPECT_EQ(wrong("sm_90a", options, {9, 72, 144}), 0);
}

// Scales and bias change axis, the residual and C are transposed.
TEST(GemmSwap, WholeEpilogue) {
  for (const Type c : {f32, bf16, f16, Type::e4m3})
    for (const Sizes& size : {Sizes{13, 136, 200}, {30, 129, 136}}) {
      Gemm options = swapped(16);
      options.epilogue = every_part, options.c = c;
      SCOPED_TRACE(trace(options, size));
      EXPECT_EQ(wrong("sm_90a", options, size), 0);
    }
  Gemm options = swapped(16);
  options.a = options.b = s8, options.accumulator = s32, options.c = s8, options.tile.k = 128;
  options.epilogue = {.row_scales = true, .column_scales = true};
  EXPECT_EQ(wrong("sm_90a", options, {13, 136, 208}), 0);
}

// C's columns are contiguous in a tile of its transpose: stmatrix.trans stages them for TMA. Lines
// that TMA cannot address are stored element by element.
TEST(GemmSwap, StagesC) {
  for (const Type c : {f16, bf16})
    for (const int columns : {8, 24, 72, 136, 200, 256})
      for (const auto& [size, staged] : {std::pair{Sizes{columns - 3, 136, 72}, true},
                                         {Sizes{columns + 5, 72, 136}, true},
                                         {Sizes{columns, 133, 72}, false}})
        for (const bool persistent : {false, true}) {
          Gemm options = swapped(columns);
          options.c = c, options.multiple_c = staged ? 8 : 1, options.persistent = persistent;
          SCOPED_TRACE(trace(options, size));
          EXPECT_EQ(wrong("sm_90a", options, size), 0);
          options.m = size.m, options.n = size.n, options.k = size.k;
          const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
          ASSERT_TRUE(compiled) << compiled.diags().text();
          for (const char* each : {".trans.shared.b16", "cp.async.bulk.tensor.2d.global"})
            EXPECT_EQ(compiled->ptx.find(each) != std::string::npos, staged) << each;
        }
}

TEST(GemmSwap, GoesWithOtherSchedules) {
  Gemm options = swapped(32);
  options.cluster_splits = 4, options.epilogue.bias = true;
  EXPECT_EQ(wrong("sm_90a", options, {30, 136, 520}), 0);
  options = swapped(32);
  options.cluster = 2;  // they share A
  EXPECT_EQ(wrong("sm_90a", options, {30, 200, 520}), 0);
  options.cluster = 1, options.persistent = true;
  EXPECT_EQ(wrong("sm_90a", options, {70, 200, 136}), 0);
}

TEST(GemmSwap, GridIsThatOfTheTranspose) {
  const Gemm options = swapped(16);
  EXPECT_EQ(options.blocks(16, 640), 10u);
  EXPECT_EQ(options.blocks(17, 641), 22u);
  EXPECT_EQ(options.persistent_blocks(17, 641, 8), 8u);
}

TEST(GemmSwap, RefusesStreamK) {
  Gemm options = swapped(16);
  options.stream_blocks = 4;
  expect_refused(options, "stream-K is unsupported with swap; use splits or cluster_splits");
}

}  // namespace
}  // namespace tartan
