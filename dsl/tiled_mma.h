// SPDX-License-Identifier: Apache-2.0
// dsl/tiled_mma.h - one MMA instruction spread over a block's tile: which warp does which part, and
// what shared memory for the operands should look like.
//
//   const Tile tile{.m = 128, .n = 128, .k = 32, .warps_m = 2, .warps_n = 2};
//   auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
//   auto sA = k.shared("sA", f16, mma.shared_a(stages)), sB = k.shared("sB", f16,
//   mma.shared_b(stages)); auto acc = mma.accumulator(); k.pipeline(stages, steps, fill,
//   [&](Scalar, Scalar s) { acc = mma(acc, sA[s], sB[s]); });
#pragma once

#include "dsl/tensor.h"
#include "dsl/warp_tile.h"

namespace tartan {

/// What a block computes at a time: m x n elements of the result from k columns of A, by warps_m x
/// warps_n warps.
struct Tile {
  int m = 128, n = 128, k = 32;
  int warps_m = 2, warps_n = 2;
  constexpr int threads() const { return 32 * warps_m * warps_n; }
};

class TiledMma {
 public:
  const MmaKind& kind() const { return kind_; }
  const Tile& tile() const { return tile_; }

  /// Layouts for a stage of A (m x k) and B (k x n) in shared memory. `major` says which way
  /// neighbours lie, best as in global memory; none: along k. The swizzle is chosen so that
  /// neither the copy nor ldmatrix meets a bank conflict.
  RingLayout shared_a(int stages = 1, Major major = Major::none) const;
  RingLayout shared_b(int stages = 1, Major major = Major::none) const;

  Accumulator accumulator(Here at = Here::current()) const;
  /// A variable for each row of the accumulators that a lane has elements of.
  RowVariable row_variable(const Scalar& initial, Here at = Here::current()) const;

  /// c + A * B for the block's tile, A and B of tile().m x k and k x n elements. Products of tf32
  /// round elements that are f32 in memory (cvt.rna); elements of type tf32 are taken as they are.
  WarpTile operator()(const WarpTile& c, const Shared& a, const Shared& b,
                      Here at = Here::current()) const;
  /// The same with A in registers: one row of warps only (warps_n = 1).
  WarpTile operator()(const WarpTile& c, const WarpTile& a, const Shared& b,
                      Here at = Here::current()) const;
  /// The same of a sparse kind: A's kept elements (m x k/2) and the words that say where they
  /// belong, metadata_tile() of them (see dsl/kernels/sparse.h).
  WarpTile operator()(const WarpTile& c, const Shared& a, const Shared& metadata, const Shared& b,
                      Here at = Here::current()) const;
  /// Words (u32) for a stage of A: a row for each 16 rows of A.
  Layout metadata_tile() const;
  /// This warp's part of A, to use several times.
  WarpTile load_a(const Shared& a, Here at = Here::current()) const;

 private:
  friend class Builder;
  friend struct detail::KernelState;
  RingLayout shared(Operand operand, int stages, Major major) const;
  using Metadata = std::function<std::optional<Scalar>(int i, int step)>;
  WarpTile multiply(const WarpTile& c, const std::function<std::vector<Fragment>(int)>& a,
                    const Metadata& metadata, const Shared& b) const;
  std::vector<Fragment> side_a(const Shared& a, int step) const;
  int metadata_words() const;
  int columns_a() const { return kind_.shape.sparse ? tile_.k / 2 : tile_.k; }
  std::vector<Fragment> rounded(std::vector<Fragment> fragments, const Shared& from) const;
  int fragments_m() const { return tile_.m / tile_.warps_m / kind_.shape.shape.m; }
  int fragments_n() const { return tile_.n / tile_.warps_n / kind_.shape.shape.n; }
  int steps() const { return tile_.k / kind_.shape.shape.k; }

  std::shared_ptr<detail::KernelState> state_;  // none: the description was refused
  MmaKind kind_;
  Tile tile_;
  MmaOptions options_;
  Scalar warp_m_, warp_n_;
};

}  // namespace tartan
