// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/block_scaled.h - block-scaled products of elements of eight, six and four bits
// (the OCP microscaling formats, and NVFP4): mma.sync's .block_scale on sm_120a, tcgen05's on
// sm_100a and its like. Elements share a scale in blocks along k.
#pragma once

#include "tartan/kernels/gemm.h"
#include "tartan/kernels/gpu.h"

namespace tartan::TARTAN_ABI::kernels {

/// C = (A o scales of A) * (B o scales of B), A row-major, B column-major, C row-major;
/// accumulators are f32.
///
/// Parameters: m, n, k (those that are 0 here), A, scales of A, B, scales of B, C, and those of the
/// epilogue. A row of A, and a column of B, has k contiguous elements without padding: four of six
/// bits take three bytes. It has one scale per block of 32 elements (16 for ue4m3); its last block
/// may be partial:
///
///   A       m x k                             scales of A   m x ceil(k / block), row-major
///   B       k x n, column-major               scales of B   ceil(k / block) x n, column-major
///
/// k: any number for elements of eight bits; even for e2m1 times e2m1; otherwise, with elements of
/// six or four bits, a multiple of 16.
struct BlockScaled {
  int m = 256, n = 256, k = 256;
  Type a = Type::e4m3, b = Type::e4m3;  // e4m3, e5m2, e3m2, e2m3, e2m1: any with any
  Type scale = Type::ue8m0;             // ue4m3: for e2m1 times e2m1
  /// mxf8f6f4, mxf4 or mxf4nvf4; none: the kind with the largest shape.
  isa::Kind kind = isa::Kind::none;
  Type c = f32;  // as Gemm::c for f32 accumulators
  /// As in Gemm. Scales are copied four at a time where `multiple` is a multiple of four blocks.
  int multiple = 8, multiple_c = 8;
  Tile tile = {.m = 64, .n = 64, .k = 128, .warps_m = 2, .warps_n = 2};
  int stages = 3;
  /// Producer warps, as in Gemm. tcgen05 needs them, and a tile of 128 rows by one column of four
  /// warps.
  int producers = 0;
  /// Persistent, as in Gemm: each CTA has tile after tile, tile.products = 2 warpgroups in turn.
  bool persistent = false;
  /// Clusters of so many CTAs, 1 or 2, with vertically adjacent tiles. Two multiply together by
  /// tcgen05 (MmaOptions::ctas): each has half of the columns of B, and all of B's scales.
  int cluster = 1;
  Epilogue epilogue;

  /// gridDim.x of a launch for sizes m and n on a GPU of that many SMs, which counts for persistent
  /// kernels alone.
  unsigned grid_x(int rows, int cols, int multiprocessors) const {
    return Gemm{.tile = tile, .persistent = persistent, .cluster = cluster}.grid_x(rows, cols,
                                                                                   multiprocessors);
  }
  /// Of kernels that are not persistent.
  unsigned blocks(int rows, int cols) const {
    return Gemm{.tile = tile, .cluster = cluster}.blocks(rows, cols);
  }
};
Kernel block_scaled(const BlockScaled& options);

/// `options` with the tile, stages, producers and cluster that should be fast for such sizes (of 0:
/// 4096) where tcgen05 multiplies: by rule, not measured. Unchanged on other targets.
BlockScaled tuned(const BlockScaled& options, const Gpu& gpu);

}  // namespace tartan::TARTAN_ABI::kernels
