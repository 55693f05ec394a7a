// SPDX-License-Identifier: Apache-2.0
// A GEMM as problem, schedule and launch, and as one struct.
#include <gtest/gtest.h>

#include "kernels/common/keys.h"
#include "tartan/kernels/gemm_schedule.h"

namespace tartan {
namespace {

using kernels::ClusterShape, kernels::Gemm, kernels::GemmLaunch, kernels::GemmSchedule;

// Of each way one, with values that are no defaults.
const Gemm ways[] = {
    {.cluster = 2, .cluster_columns = 4, .swap = true},
    {.persistent = true, .producers = 4, .cluster = 2},
    {.tile = {.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1, .products = 2},
     .persistent = true,
     .producers = 4,
     .swap = true},
    {.splits = 3, .cluster = 2, .swap = true},
    {.cluster_splits = 4, .swap = true},
    {.stream_blocks = 77},
    {.direct = true},
};

TEST(GemmParts, AreTheWholeAgain) {
  std::size_t index = 0;
  for (Gemm options : ways) {
    options.m = 100, options.a = bf16, options.b_major = Major::row, options.multiple_c = 2;
    options.epilogue.bias = true, options.stages = 5, options.group = 3, options.promote = 2;
    const auto schedule = schedule_of(options);
    ASSERT_TRUE(schedule) << schedule.diags().text();
    EXPECT_EQ(schedule->way.index(), index++);
    EXPECT_EQ(key_of(flat(problem_of(options), *schedule)), key_of(options));
  }
}

// What gemm(), its direct form and tuned() refused before there was one list, written again.
bool excluded(const Gemm& x) {
  const bool whole = x.splits == 1 && x.stream_blocks == 0;
  const int apart = x.cluster_splits;
  return !(whole || !x.persistent) || !(x.stream_blocks == 0 || x.cluster == 1) ||
         !(x.cluster_columns == 1 || (x.stream_blocks == 0 && apart == 1)) ||
         !(apart == 1 || whole) || !(apart == 1 || !x.persistent) ||
         !(apart == 1 || x.cluster == 1) ||
         !(x.tile.products == 1 || (x.persistent && x.producers > 0)) ||
         !(x.stream_blocks == 0 || !x.swap) || !(x.splits == 1 || x.stream_blocks == 0) ||
         (x.direct && !(whole && apart == 1 && x.producers == 0 && x.cluster == 1 &&
                        x.cluster_columns == 1 && !x.persistent && !x.swap));
}

TEST(GemmParts, OptionsThatExcludeEachOtherAreNoSchedule) {
  int refused = 0;
  for (unsigned bits = 0; bits < 1u << 10; ++bits) {
    const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
    Gemm options{.splits = bit(0) ? 2 : 1, .cluster_splits = bit(1) ? 2 : 1};
    options.stream_blocks = bit(2) ? 132 : 0, options.persistent = bit(3);
    options.cluster = bit(4) ? 2 : 1, options.cluster_columns = bit(5) ? 2 : 1;
    options.swap = bit(6), options.direct = bit(7), options.producers = bit(8) ? 4 : 0;
    options.tile.products = bit(9) ? 2 : 1;
    const auto schedule = schedule_of(options);
    EXPECT_EQ(!schedule, excluded(options)) << bits;
    if (schedule) EXPECT_EQ(key_of(flat(problem_of(options), *schedule)), key_of(options));
    else EXPECT_EQ(schedule.diags().begin()->id, "kernel-option");
    refused += !schedule;
  }
  EXPECT_GT(refused, 900);
}

// All of them are said, not the first.
TEST(GemmParts, SayAllThatIsWrong) {
  const auto schedule = schedule_of(Gemm{.splits = 2, .stream_blocks = 8, .persistent = true});
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.diags().size(), 2u) << schedule.diags().text();
}

TEST(GemmParts, Launches) {
  const Tile tile{.m = 128, .n = 64, .k = 64};
  const auto of = [&](const kernels::GemmSchedule& schedule) {
    return GemmLaunch::of(flat({}, schedule), 1000, 500, 10);  // 8 x 8 tiles
  };
  const GemmLaunch one = of({.tile = tile});
  EXPECT_EQ(one.grid, (Dim3{64}));
  EXPECT_EQ(one.workspace, 0);
  EXPECT_EQ(one.sum.count(), 0u);
  EXPECT_EQ(of({.tile = tile, .way = kernels::Persistent{}}).grid, (Dim3{10}));
  const GemmLaunch split = of({.tile = tile, .way = kernels::SplitK{.splits = 3}});
  EXPECT_EQ(split.grid, (Dim3{64, 3}));
  EXPECT_EQ(split.workspace, 3 * 64 * 128 * 64);
  EXPECT_EQ(split.sum, (Dim3{1954}));  // 500,000 elements by 256
  const GemmLaunch stream = of({.tile = tile, .way = kernels::StreamK{.blocks = 9}});
  EXPECT_EQ(stream.grid, (Dim3{9}));
  EXPECT_EQ(stream.workspace, 2 * 9 * 128 * 64);
  EXPECT_EQ(stream.sum, (Dim3{64}));
  EXPECT_EQ(of({.tile = tile, .way = kernels::ClusterSplitK{.ctas = 4}}).grid, (Dim3{256}));
}

TEST(GemmParts, DescribeTheSameKernel) {
  const kernels::GemmProblem problem{.m = 256, .n = 128, .k = 512, .c = f16};
  const GemmSchedule schedule{.tile = {.m = 128, .n = 64, .k = 64, .warps_m = 8, .warps_n = 1},
                              .producers = 4,
                              .way = kernels::ClusterSplitK{.ctas = 2}};
  Gemm whole{.m = 256, .n = 128, .k = 512, .c = f16};
  whole.tile = schedule.tile, whole.producers = 4, whole.cluster_splits = 2;
  const Arch hopper = *Arch::parse("sm_90a");
  const auto parts = compile(gemm(problem, schedule), hopper), one = compile(gemm(whole), hopper);
  ASSERT_TRUE(parts && one);
  EXPECT_EQ(parts->ptx, one->ptx);
}

TEST(GemmParts, AreTunedAsTheWhole) {
  const Target target = Target::of(*Arch::parse("sm_90a"));
  for (const int m : {1, 16, 300, 4096}) {
    const kernels::GemmProblem problem{.m = m, .n = 4096, .k = 4096, .c = f16};
    EXPECT_EQ(key_of(flat(problem, tuned(problem, target))),
              key_of(tuned(flat(problem, {}), target)));
  }
}

}  // namespace
}  // namespace tartan
