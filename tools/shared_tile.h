// SPDX-License-Identifier: Apache-2.0
// tools/shared_tile.h - the banks of a matrix in shared memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tartan/isa/nested_layout.h"
#include "tartan/isa/type.h"
#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// A tile in the notation of explain(), "64x32:(32,1) swizzle<2,3,3>", with extents and strides in
/// elements; or with nested rows and columns, "((8,8),(8,8)):((8,512),(1,64))".
struct SharedTile {
  NestedLayout layout;  // rows and columns
  Type type = Type::none;

  int rows() const { return static_cast<int>(layout[0].size()); }
  int cols() const { return static_cast<int>(layout[1].size()); }
  std::int64_t offset(int row, int col) const { return layout({row, col}); }  // in elements
  std::string text() const;
};

/// "64x32:(32,1)" as NestedLayout::parse() reads it: "(64,32):(32,1)".
std::string cute_notation(std::string_view words);
/// Whether the arguments name a tile, not an instruction.
bool names_tile(std::string_view words);
Result<SharedTile> parse_tile(std::string_view words, Type type);

/// The bank group (16 bytes of the 128 that a phase reaches) of every 16-byte chunk, and the cost
/// of reading eight lines by ldmatrix and of filling the tile by 16-byte copies. What is wider than
/// `width` columns is cut into panels; with colours, a picture of half blocks.
std::string tile_text(const SharedTile& tile, bool colour, std::size_t width);
std::string tile_svg(const SharedTile& tile);
std::string tile_json(const SharedTile& tile);

}  // namespace tartan::tools
