// SPDX-License-Identifier: Apache-2.0
// kernels/gemm/gemm_tiles.h - shared by dense and sparse GEMM: sizes, and the tiles and k-tiles
// that a block computes. Not installed.
#pragma once

#include <functional>
#include <optional>

#include "kernels/common/epilogue.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// A size of a product: a constant, or a parameter of the kernel.
Scalar size(Builder& k, const char* name, int fixed, int multiple);

/// A guaranteed divisor of every number that x and y both divide.
int common_multiple(int x, int y);

/// Whether 32-bit indices reach all of a product with constant sizes, and a grid can have a block
/// for each tile; reports if not.
bool sizes_are_possible(Builder& k, const Tile& tile, const Scalar& m, const Scalar& n,
                        const Scalar& depth);

/// Whether the product may be split that way; reports if not.
bool parts_are_possible(Builder& k, const Gemm& options, const Scalar& m);

inline Major opposite(Major major) { return major == Major::row ? Major::col : Major::row; }

/// The product whose tiles the kernel computes: with swap, of the transposed operands.
Gemm in_tiles(Gemm options);

/// CTAs of a cluster, for KernelOptions.
inline int cluster_size(const Gemm& options) {
  return options.cluster_splits > 1 ? options.cluster_splits
                                    : options.cluster * options.cluster_columns;
}

/// The multiple of `by` that is nearest to a size: at least one, at most what an int holds.
int nearest_multiple(int size, int by);

/// Of a GPU's multiprocessors, as many as clusters of that size find room on, in whole clusters (at
/// least one): of more than two CTAs ten of eleven, as Gemm::persistent_blocks() says. On an H100
/// 30 clusters of four run at a time. More in a grid would begin when others have ended, and a
/// persistent kernel take twice as long.
int clustered_multiprocessors(int multiprocessors, int cluster);

/// What a kernel does in front of roles(), before it reads or writes global memory: as a
/// programmatic dependent launch it waits here for the end of the launch in front of it, beside
/// which all that comes before runs. Before sm_90 nothing.
void follow_previous_launch(Builder& k);

/// Lets the next launch begin beside this one's epilogue where there is one row of tiles, whose
/// columns no other CTA reads. Elsewhere CTAs that begin when others end have other neighbours, and
/// read fewer lines together.
void release_row(Builder& k, const Scalar& size, int tile);

/// The stride of a batch's matrices, a parameter of the kernel; nothing without batches.
Scalar stride(Builder& k, const char* name, const Gemm& options, int multiple);

/// The MMA type for elements of this type in memory.
inline Type multiplied(Type element) { return element == f32 ? tf32 : element; }

/// Units of work of a tile that blocks share: its k-tiles or, if k is 0, one for storing it.
Scalar units_each(const Scalar& steps);

/// Whether wgmma supports the operands' major orders: 8-bit and 32-bit elements along k only, and
/// rows of at least 32 bytes.
bool suits_warpgroups(const Gemm& options, const Tile& tile);

/// The layout of the partial results of a product: whole tiles, splits stacked vertically. `m`,
/// `n`: of what the tiles divide, the transpose of C if A and B are swapped.
Layout workspace(const Gemm& options, const Scalar& m, const Scalar& n);

/// A product's operands: how a stage is filled for a tile of C and a k-tile, and how it is
/// multiplied. `ahead`, if present, and `next` are those of Builder::pipeline(). If present,
/// `start` runs in front of the pipeline, `begin` before the first fill, `prepare` before each
/// multiplication.
struct Operands {
  using Next = std::function<void()>;
  std::function<void(Scalar row, Scalar col, Scalar step, Scalar stage)> fill;
  std::function<void(Accumulator& sum, Scalar stage, const Next& next)> add;
  std::function<void(Scalar stage)> ahead = {};
  std::function<void(Scalar row, Scalar col)> start = {};
  std::function<void(Scalar step)> begin = {}, prepare = {};
};

/// A block's tiles of C; the options say how they are divided among blocks.
class GemmTiles {
 public:
  /// Declares C, the epilogue's parameters and the workspace. `m`, `n`: of what the tiles divide,
  /// the transpose of C if A and B are swapped.
  GemmTiles(Builder& k, const Gemm& options, const TiledMma& mma, const Scalar& m, const Scalar& n,
            const Scalar& depth);

  /// The batch index of this block, and the batch stride of C.
  void select_matrix(const Scalar& i, const Scalar& stride);

  /// The launch does not overlap with those in front of it and behind it (Launch::programmatic).
  void stand_alone() { overlaps_ = false; }

  void compute(const Operands& operands);

 private:
  void add_step(const Operands& operands, Accumulator& sum, std::optional<Accumulator>& part,
                const Scalar& t, const Scalar& stage, const Operands::Next& next);
  using Store = std::function<void(const WarpTile& sum)>;
  Accumulator multiply(const Operands& operands, const Scalar& row, const Scalar& col,
                       const Scalar& first, const Scalar& count);
  void each_part(const Accumulator& sum, const Store& store);
  void existing_tile(
      const Scalar& row, const Scalar& col,
      const std::function<Accumulator(const Scalar& row, const Scalar& col)>& product,
      const Store& store);
  using OfTile = std::function<void(Scalar row, Scalar col)>;
  void each_tile(const OfTile& tile);
  void tiles_in_turn(const OfTile& whole_tile);
  void part_of_tile(const Operands& operands, const TileWork& work);
  void part_by_y(const Operands& operands, const Scalar& row, const Scalar& col);
  void part_by_rank(const Operands& operands);
  void release_next_launch();

  bool possible_ = false, overlaps_ = true;
  Builder& k_;
  Gemm options_;
  const TiledMma& mma_;
  Tile tile_;
  Scalar m_, n_, steps_;
  std::optional<Finisher> finisher_;
  Global parts_;
};

}  // namespace tartan::TARTAN_ABI::kernels::detail
