// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/lane_map.h - copies a fragment between registers and a matrix by
// isa::coord.
//
// The matrices ("images") that the arithmetic works on are arrays of cells. A and B: a cell holds
// the elements of a register, contiguous along k (E elements, the first in the low bits); cell (k /
// E) * rows + row, so that a column of cells is contiguous. C and D: a cell is an element; cell col
// * rows + row. Cells have 32 bits, for f64 64. Several matrices (m8n8k4's four) are contiguous.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/emulator/matrix/tile.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {

class LaneMap {
 public:
  LaneMap() = default;
  /// The map of `operand` of a wmma.mma, mma or wgmma form. `transposed`: the image of the
  /// transposed product (A and B swapped).
  LaneMap(const isa::Form& form, Operand operand, bool transposed);

  int cells() const { return cells_; }

  /// Registers to image and back, through `kernel` if given. The image has cells() cells.
  void gather(const void* const* registers, void* image, const TileKernel* kernel) const;
  void scatter(const void* image, void* const* registers, const TileKernel* kernel) const;

 private:
  // The cells of one register, or of one half of it.
  struct Part {
    int reg = 0;
    int shift = 0;  // halves: where in the register
    int first =
        0;         // blocks: the cell of warp w, group g, member t is first + 16 * w + g + step * t
    int step = 0;  // 0: no block
    std::vector<std::uint16_t>
        cells;  // by lane. Shared cells: twice the cell, plus one for its high half.
  };
  enum class Unit : std::uint8_t { word, double_word, half, shared_half };

  void add(int reg, int shift, std::vector<std::uint16_t> cells);
  void make_blocks();
  template <typename Word>
  void gather_words(const void* const* registers, Word* image) const;
  template <typename Word>
  void scatter_words(const Word* image, void* const* registers) const;

  int lanes_ = 32;
  int cells_ = 0;
  Unit unit_ = Unit::word;  // what a part holds per lane
  std::vector<Part> parts_;
  std::vector<RegisterBlock> blocks_;  // the same, if all parts are blocks of words of one warp
};

}  // namespace tartan::TARTAN_ABI::emulator
