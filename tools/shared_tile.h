// SPDX-License-Identifier: Apache-2.0
// tools/shared_tile.h - a matrix in shared memory and the banks that it lies in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/isa/type.h"
#include "compiler/support/diagnostic.h"

namespace tartan::tools {

/// As explain() writes layouts: "64x32:(32,1) swizzle<2,3,3>", extents and strides in elements.
struct SharedTile {
  int rows = 0, cols = 0;
  int row_stride = 0, col_stride = 0;
  int bits = 0, base = 0, shift = 0;  // of the swizzle; bits 0: none
  Type type = Type::none;

  std::int64_t offset(int row, int col) const;  // in elements
  std::string text() const;
};

/// Whether `words` means a tile and no instruction.
bool names_tile(std::string_view words);
Result<SharedTile> parse_tile(std::string_view words, Type type);

/// The bank group (16 bytes of the 128 that a phase reaches) of every 16-byte chunk, and what it
/// costs to read eight lines by ldmatrix and to fill the tile by 16-byte copies.
std::string tile_text(const SharedTile& tile, bool colour);
std::string tile_json(const SharedTile& tile);

}  // namespace tartan::tools
