// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/scaled_gemm.h - GEMM in fp8 with fine scales, as DeepSeek-V3 trains and
// serves: C = (A o SA) * (B o SB), dense or grouped (mixture of experts).
//
//   ScaledGemm options{.m = 0, .n = 7168, .k = 16384};                   // m is a parameter
//   options = tuned(options, *Target::parse("sm_90a"));
//   const auto compiled = compile(kernels::scaled_gemm(options), device.arch());
//   ...                                                // load it: see tartan/launch.h
//   launch(kernel, *compiled, {options.grid_x(m, 7168, multiprocessors)},
//          Arguments().add(m).add(a).add(sa).add(b).add(sb).add(c));
#pragma once

#include "tartan/kernels/gemm.h"
#include "tartan/support/dim3.h"

namespace tartan::TARTAN_ABI::kernels {

/// How products are grouped: by B alone, whose matrices are those of `groups` experts.
///
///   none         one product
///   contiguous   A's rows lie group after group; `group_of_row` has each row's group, -1 for rows
///                that pad a group to a multiple of 128: no 128 rows belong to two groups, and
///                padding follows what it pads. Rows of padding are not written.
///   masked       each group has m rows, of which `rows_of_group` says how many exist: others are
///                neither read for products nor written
enum class Grouping : std::uint8_t { none, contiguous, masked };

/// A k-tile is one block of scales. Its product starts from zero, is multiplied by SA's scale of
/// its row and SB's scale of its columns, and then added to the sum in f32 (one fma), k-tile after
/// k-tile: the sum of m64nNk32 products of 14 bits on sm_90a is promoted each 128 elements. The
/// promotion of one warpgroup runs while the other multiplies.
///
/// Parameters: m, n, k (those that are 0 here), `groups` (masked), and
///
///   A    m x k                   e4m3, row-major; masked: groups of them
///   SA   m x ceil(k / 128)       f32, column-major with a leading dimension of m rounded up to 4
///                                (the field's "TMA-aligned" layout); masked: groups of them
///   B    k x n                   e4m3, column-major; one of each group
///   SB   ceil(n / 128) x ceil(k / 128)    f32, row-major; one of each group
///   C    m x n                   row-major; masked: groups of them
///   group_of_row (contiguous)    s32, m of them
///   rows_of_group (masked)       s32, one of each group
///
/// k is a multiple of 16 and n of 8. masked: k is a constant, m a multiple of 4 for certain.
struct ScaledGemm {
  int m = 256, n = 256, k = 256;
  Type c = bf16;  // bf16, f16 or f32
  Grouping grouping = Grouping::none;
  /// CTA tile; k is 128. A warpgroup computes m / (warps_m / 4) rows, 64 at a time.
  Tile tile = {.m = 128, .n = 128, .k = 128, .warps_m = 8, .warps_n = 1};
  int parts_n = 1;       // products side by side that the columns are divided into
  int blocks_k = 1;      // k-tiles of a stage
  bool overlap = false;  // whether a warpgroup's next product runs while one is promoted
  int stages = 4;
  /// Rasterization, as in Gemm.
  int group = 8;
  /// Cluster size: CTAs that share B by TMA multicast or, with share_a, A. Grouped: A.
  int cluster = 1;
  bool share_a = false;
  /// So many CTAs (1, 2, 4 or 8), a cluster, divide the k-tiles of a tile and add their sums, in
  /// the order of k: more CTAs for few rows. As many of them as divide the tile's columns (times 8)
  /// store a block of them each. Dense, with cluster = 1, parts_n = 1 and 16 rows for each warp;
  /// each CTA computes one tile.
  int cluster_splits = 1;

  /// gridDim.x of a launch on a GPU of that many multiprocessors: each CTA computes tile after
  /// tile, and all of them as many, or one less. cluster_splits: a cluster for each tile. `groups`:
  /// of masked rows.
  unsigned grid_x(int rows, int cols, int multiprocessors, int groups = 1) const;
};
/// Its launch may be Launch::programmatic, as gemm()'s.
Kernel scaled_gemm(const ScaledGemm& options);

/// `options` with the tile, stages and cluster that should be the fastest for such sizes on a GPU
/// of sm_90a (a size of 0: 4096). On other targets a tile that fits them. masked: call it with the
/// rows that one of `groups` groups probably has, and set m to the most that it can have
/// afterwards.
ScaledGemm tuned(const ScaledGemm& options, const Gpu& gpu, int groups = 1);

// ---- The same in parts: what is computed, how, and the launch.

/// What ScaledGemm computes: sizes, types and what belongs to the result.
struct ScaledGemmProblem {
  int m = 256, n = 256, k = 256;
  Type c = bf16;
  Grouping grouping = Grouping::none;
};
/// The members are those of ScaledGemm.
struct ScaledGemmSchedule {
  Tile tile = ScaledGemm{}.tile;
  int parts_n = 1, blocks_k = 1;
  bool overlap = false;
  int stages = 4, group = 8, cluster = 1;
  bool share_a = false;
  int cluster_splits = 1;
};
ScaledGemm flat(const ScaledGemmProblem& problem, const ScaledGemmSchedule& schedule);
ScaledGemmProblem problem_of(const ScaledGemm& options);
ScaledGemmSchedule schedule_of(const ScaledGemm& options);

/// A launch of ScaledGemm: see of().
struct ScaledGemmLaunch {
  Dim3 grid;

  /// `groups`: of masked rows.
  static ScaledGemmLaunch of(const ScaledGemm& options, int m, int n, int multiprocessors,
                             int groups = 1);
};

}  // namespace tartan::TARTAN_ABI::kernels
