// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/k_grouped_gemm.h - GEMM in fp8 with fine scales, grouped along k: the
// gradients of the weights of a mixture of experts. Each group of tokens is a product of its own,
//
//   C[g] = (A_g o SA_g) * (B_g o SB_g)      or      C[g] += ...
//
//   kernels::KGroupedGemm options{.m = 4096, .n = 7168, .k = 0, .accumulate = true};
//   options = tuned(options, Target::of(device.arch()));          // k is a parameter
//   const auto compiled = compile(kernels::k_grouped_gemm(options), device.arch());
//   ...                                                // load it: see tartan/launch.h
//   launch(kernel, *compiled, {options.grid_x(4096, 7168, groups, multiprocessors)},
//          Arguments().add(k).add(groups).add(a).add(sa).add(b).add(sb).add(c).add(depths));
#pragma once

#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels {

/// The groups lie one after the other along k, in matrices that all of them share; how deep each
/// of them is, only the GPU needs to know. Group g begins where the one before it ends, rounded up
/// to a multiple of 128, and has depth_of_group[g] elements along k: any number, 0 too, but what
/// fills its last 128 must be zero in A and finite in B, or the reverse. Groups that reach beyond k
/// end there, and depths below 0 count as 0.
///
/// A k-tile is one block of scales. Its product starts from zero, is multiplied by SA's scale of
/// its row times SB's scale of its column, and then added to the sum in f32 (one fma), k-tile after
/// k-tile. The promotion of one warpgroup runs while the other multiplies. The sum starts at zero;
/// with `accumulate` it is added to what C has at the end, once, as Builder::add() does. The result
/// is the same bits in each run.
///
/// Parameters: m, n, k (those that are 0 here), `groups`, and
///
///   A    m x k                   e4m3, row-major: each row has its elements of all groups
///   SA   m x ceil(k / 128)       f32, column-major with a leading dimension of m rounded up to 4
///                                (the field's "TMA-aligned" layout)
///   B    k x n                   e4m3, column-major
///   SB   ceil(k / 128) x n       f32, row-major
///   C    groups x m x n          f32, row-major. A group of depth 0 becomes zeros, or with
///                                `accumulate` stays as it is.
///   depth_of_group               s32, one of each group
///
/// k is a multiple of 16 and n of 4.
struct KGroupedGemm {
  int m = 256, n = 256, k = 1024;  // k: of all groups together
  bool accumulate = false;         // C[g] += the product
  /// CTA tile; k is 128. A warpgroup computes m / (warps_m / 4) rows, 64 at a time.
  Tile tile = {.m = 128, .n = 128, .k = 128, .warps_m = 8, .warps_n = 1};
  int stages = 4;
  /// Rasterization within a group, as in Gemm.
  int group = 8;
  /// Cluster size: CTAs that share B by TMA multicast or, with share_a, A.
  int cluster = 1;
  bool share_a = false;

  /// gridDim.x of a launch on a GPU of that many multiprocessors: each CTA computes tile after
  /// tile, of group after group. Clusters of more than two CTAs find room on ten of eleven
  /// multiprocessors, as with Gemm::persistent_blocks().
  unsigned grid_x(int rows, int cols, int groups, int multiprocessors) const;
};
/// Its launch may be Launch::programmatic, as gemm()'s.
Kernel k_grouped_gemm(const KGroupedGemm& options);

/// `options` with the tile, stages and cluster that should be the fastest for such sizes on a GPU
/// of sm_90a (a size of 0: 4096, for each group along k), by the rates of an H200. `groups`: how
/// many there will be, about. On other targets a tile that fits them.
KGroupedGemm tuned(const KGroupedGemm& options, const Gpu& gpu, int groups = 8);

}  // namespace tartan::TARTAN_ABI::kernels
