// SPDX-License-Identifier: Apache-2.0
// dsl/layout/tiles.h - which elements of a warp's tile a lane holds, and in which rows and columns.
// Not installed.
#pragma once

#include <optional>
#include <source_location>
#include <vector>

#include "dsl/state/state.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/warp_tile.h"

namespace tartan::TARTAN_ABI::detail {

/// A builder for the tile's kernel; none for tiles of refused calls.
std::optional<Builder> builder_of(const WarpTile& tile, const std::source_location& at);
/// Whether a tile's elements are sums, not parts of them (Tile::warps_k); reports if not.
bool is_whole(const WarpTile& tile);
/// The place of element i of fragment (y, x) in the block's tile.
ElementPlace element_place(Builder& k, const WarpTile& tile, int y, int x, int i,
                           const std::source_location& at);

/// Rows or columns of a tile. A reduction along rows gives a value for each row.
enum class Lines : std::uint8_t { rows, cols };

/// The lines of an accumulator in which a lane has elements: element i is in line index[i].
struct LaneLines {
  std::vector<int> first;  // an element of each
  std::vector<int> index;  // of each element
};
LaneLines lane_lines(const FragmentKind& kind, Lines lines);
/// Lanes that share lines of an accumulator: their numbers differ in these bits.
std::vector<int> masks_along(const FragmentKind& kind, Lines lines);

/// How many values a lane has, one for each of its lines.
std::size_t line_count(const WarpTile& tile, Lines lines);
/// Which of them element i of fragment (y, x) belongs to.
inline std::size_t line_of(const LaneLines& lanes, Lines lines, int y, int x, std::size_t i) {
  const auto before = static_cast<std::size_t>(lines == Lines::rows ? y : x);
  return before * lanes.first.size() + static_cast<std::size_t>(lanes.index[i]);
}
/// The line of the block's tile that each value belongs to.
std::vector<Scalar> line_places(Builder& k, const WarpTile& tile, Lines lines,
                                const std::source_location& at);

}  // namespace tartan::TARTAN_ABI::detail
