// SPDX-License-Identifier: Apache-2.0
// Options of attention, decode, mixed_gemm and scaled_gemm as problem, schedule and launch.
#include <gtest/gtest.h>

#include "kernels/common/keys.h"
#include "tartan/kernels/attention.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/scaled_gemm.h"

namespace tartan {
namespace {

using namespace kernels;

// Options whose members all differ from the defaults, and from each other where their types allow.
template <typename Options>
void expect_same_parts(const Options& options) {
  EXPECT_NE(key_of(options), key_of(Options{}));
  EXPECT_EQ(key_of(flat(problem_of(options), schedule_of(options))), key_of(options));
  // Each default is that of the whole.
  EXPECT_EQ(key_of(flat({}, schedule_of(Options{}))), key_of(Options{}));
  EXPECT_EQ(key_of(flat(problem_of(Options{}), {})), key_of(Options{}));
}

TEST(Parts, AreTheWholeAgain) {
  expect_same_parts(Attention{128, bf16, true, true, Softcap::by_exp, true, true, 192, 112, 12, 3,
                              5, true, true, 3, 500});
  expect_same_parts(Decode{64, bf16, 2, 3, 16, 128, 5, 4, 6, 7, 9});
  expect_same_parts(MixedGemm{10, 20, 30, f16, Type::u8, 64,   true,  false, 8, 32,  128,
                              2,  3,  5,  6,   7,        true, false, true,  9, true});
  expect_same_parts(ScaledGemm{10,
                               20,
                               30,
                               f32,
                               Grouping::masked,
                               {.m = 64, .n = 96, .k = 128, .warps_m = 4, .warps_n = 1},
                               2,
                               3,
                               true,
                               5,
                               6,
                               7,
                               true,
                               9});
}

TEST(Parts, LaunchesOfAttention) {
  Attention options{.head_dim = 64, .queries_per_block = 100};
  EXPECT_EQ(AttentionLaunch::of(options, 950, 6, 3, 132).grid, (Dim3{10, 6, 3}));
  options.persistent = true;  // 132 / 3 blocks for each batch
  EXPECT_EQ(AttentionLaunch::of(options, 4096, 64, 3, 132).grid, (Dim3{44, 1, 3}));
}

TEST(Parts, LaunchesOfDecode) {
  const Decode options{.head_dim = 64, .queries = 2, .group = 4, .blocks_per_multiprocessor = 3};
  const DecodeLaunch launch = DecodeLaunch::of(options, 5, 7, 10);
  EXPECT_EQ(launch.grid, (Dim3{30}));
  EXPECT_EQ(launch.partials, 2 * 30 * 8 * 64);
  EXPECT_EQ(launch.weights, 4 * 30 * 8);
  EXPECT_EQ(launch.counters, 35);
  // Many long sequences of one length: a block for each head.
  EXPECT_EQ(DecodeLaunch::of(options, 100, 7, 10, 4096).grid, (Dim3{700}));
}

TEST(Parts, LaunchesOfMixedGemm) {
  const MixedGemm options{.tile_m = 16, .tile_n = 64};  // split: as many CTAs as multiprocessors
  const MixedGemmLaunch launch = MixedGemmLaunch::of(options, 100, 1024, 10);
  EXPECT_EQ(launch.grid, (Dim3{10}));
  EXPECT_EQ(launch.partials, 2 * 10 * 16 * 64);
  EXPECT_EQ(launch.counters, 7 * 16);
  EXPECT_EQ(MixedGemmLaunch::of({.split = false}, 100, 1024, 200).counters, 0);
}

TEST(Parts, LaunchesOfScaledGemm) {
  const ScaledGemm options{.tile = {.m = 128, .n = 128, .k = 128, .warps_m = 8, .warps_n = 1}};
  EXPECT_EQ(ScaledGemmLaunch::of(options, 256, 512, 132).grid, (Dim3{8}));
  EXPECT_EQ(ScaledGemmLaunch::of(options, 4096, 4096, 128).grid, (Dim3{128}));  // 1024 tiles
}

}  // namespace
}  // namespace tartan
