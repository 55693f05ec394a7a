// SPDX-License-Identifier: Apache-2.0
// dsl/layout/placement.h - where the warps of a CTA have the fragments of a tile, and whether two
// tiles have theirs at the same places: elements are joined by their number, whatever their places.
//
//   if (!same_places(state, x, y)) return {};   // reported, with both products
//
// Not installed.
#pragma once

#include <memory>
#include <string_view>

#include "dsl/layout/tiles.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI::detail {

/// The rows, or columns, that values belong to.
struct LineSource {
  Lines lines;
  FragmentKind kind;
  int fragments;  // of a warp, along the other axis
  WarpPlace place;
  /// How many a lane has.
  std::size_t count() const;
};
LineSource source_of(const WarpTile& tile, Lines lines);
std::shared_ptr<const LineSource> shared_source_of(const WarpTile& tile, Lines lines);

/// The place of this warp's part of a tiled MMA's accumulators, and of A.
WarpPlace place_of_c(const TiledParts& mma);
WarpPlace place_of_a(const TiledParts& mma);
std::shared_ptr<const LineSource> source_of_c(const TiledParts& mma, Lines lines);
/// Whether a warp's rows of fragments are apart: 16 rows of each wgmma of its warpgroup, which are
/// one below the other.
bool in_blocks(const TiledParts& mma);

/// Whether values, or the values of a tile, belong to the same lines; reports if they surely do
/// not. What nobody knows the place of agrees with everything.
bool same_lines(KernelState& state, const LineSource* x, const LineSource* y);
/// The same of the elements of tiles that have as many fragments: one of `kind` at `place`, and y.
bool same_places(KernelState& state, const FragmentKind& kind, const WarpPlace& place,
                 const WarpTile& y);
/// Whether fragments of `operand` are where the tiled MMA has its own.
bool at_place(const TiledParts& mma, Operand operand, const WarpTile& given);

}  // namespace tartan::TARTAN_ABI::detail
