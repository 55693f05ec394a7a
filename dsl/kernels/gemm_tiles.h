// SPDX-License-Identifier: Apache-2.0
// dsl/kernels/gemm_tiles.h - what dense and sparse products share: their sizes, and which tiles and
// steps along k a block computes. Not installed.
#pragma once

#include <functional>
#include <optional>

#include "dsl/kernels/epilogue.h"

namespace tartan::inline TARTAN_ABI::kernels::detail {

/// A size of a product, known or a parameter of the kernel.
Scalar size(Builder& k, const char* name, int fixed, int multiple);

/// A number that surely divides what x and y divide.
int common_multiple(int x, int y);

/// Whether indices of 32 bits reach all of a product whose sizes are known, and a grid has a block
/// for each tile; complains if not.
bool sizes_are_possible(Builder& k, const Tile& tile, const Scalar& m, const Scalar& n,
                        const Scalar& depth);

/// Whether a product may be divided so; complains if not.
bool parts_are_possible(Builder& k, const Gemm& options, const Scalar& m);

/// How far the matrices of a batch are apart, a parameter of the kernel; without batches, nothing.
Scalar stride(Builder& k, const char* name, const Gemm& options, int multiple);

/// What tensor cores multiply where memory has these elements.
inline Type multiplied(Type element) { return element == f32 ? tf32 : element; }

/// Units of work of a tile that blocks share: its steps, or, where k is 0, that of storing it.
Scalar units_each(const Scalar& steps);

/// Whether warpgroups can read operands that lie so: bytes and words along k alone, and lines of 32
/// bytes at least.
bool suits_warpgroups(const Gemm& options, const Tile& tile);

/// Where the parts of a product lie: whole tiles, one part under the other.
Layout workspace(const Gemm& options, const Scalar& m, const Scalar& n);

/// A product's operands: how they come into a stage of shared memory, for a tile of C and a step
/// along k, and how a stage is multiplied. `ahead`, where there is one, and `next` are those of
/// Builder::pipeline().
struct Operands {
  using Next = std::function<void()>;
  std::function<void(Scalar row, Scalar col, Scalar step, Scalar stage)> fill;
  std::function<WarpTile(const WarpTile& sum, Scalar stage, const Next& next)> multiply;
  std::function<void(Scalar stage)> ahead = {};
};

/// A block's tiles of C, divided among blocks as the options say.
class GemmTiles {
 public:
  /// Declares C, the epilogue's parameters and the workspace.
  GemmTiles(Builder& k, const Gemm& options, const TiledMma& mma, const Scalar& m, const Scalar& n,
            const Scalar& depth);

  /// Which product of a batch this block computes, and how far those are apart in C.
  void select_matrix(const Scalar& i, const Scalar& stride);

  void compute(const Operands& operands);

 private:
  void add_step(const Operands& operands, Accumulator& sum, std::optional<Accumulator>& part,
                const Scalar& t, const Scalar& stage, const Operands::Next& next);
  WarpTile multiply(const Operands& operands, const Scalar& row, const Scalar& col,
                    const Scalar& first, const Scalar& count);
  void part_of_tile(const Operands& operands, const TileWork& work);
  void part_by_y(const Operands& operands, const Scalar& row, const Scalar& col);

  bool possible_ = false;
  Builder& k_;
  Gemm options_;
  const TiledMma& mma_;
  Tile tile_;
  Scalar m_, n_, steps_;
  std::optional<Finisher> finisher_;
  Global parts_;
};

}  // namespace tartan::inline TARTAN_ABI::kernels::detail
