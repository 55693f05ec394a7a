// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/lane_map.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// The axes of an operand's matrix. A: `outer` counts rows; B: columns; `along` is k. C and D: outer
// counts rows, along columns.
struct OperandCoord {
  int matrix, outer, along;
};

OperandCoord coord_of(const isa::Form& form, Operand operand, int lane, int element,
                      bool transposed) {
  const isa::Coord at = isa::coord(form, operand, lane, element);
  const bool turned = operand == Operand::b || (transposed && operand != Operand::a);
  return turned ? OperandCoord{at.matrix, at.col, at.row} : OperandCoord{at.matrix, at.row, at.col};
}

}  // namespace

LaneMap::LaneMap(const isa::Form& form, Operand operand, bool transposed) {
  const isa::Fragment fragment = isa::fragment(form, operand);
  const bool factor = operand == Operand::a || operand == Operand::b;
  const bool turned = operand == Operand::b || (transposed && !factor);
  const int outer = turned ? fragment.cols : fragment.rows,
            along = turned ? fragment.rows : fragment.cols;
  const int per = fragment.per_register;
  lanes_ = form.opcode == isa::Opcode::wgmma ? 128 : 32;
  const int matrix_cells = outer * (factor ? along / per : along);
  cells_ = matrix_cells * fragment.matrices;

  // A factor's register is a cell if its elements are contiguous along k in every lane.
  bool whole = factor || per == 1;
  for (int lane = 0; whole && lane < lanes_; ++lane)
    for (int i = 0; i < fragment.elements() / fragment.copies; ++i) {
      const OperandCoord first = coord_of(form, operand, lane, i / per * per, transposed);
      const OperandCoord place = coord_of(form, operand, lane, i, transposed);
      whole &= place.outer == first.outer && place.along == first.along + i % per &&
               (per == 1 || first.along % per == 0);
    }
  unit_ = fragment.register_bits == 64 ? Unit::double_word
          : whole                      ? Unit::word
          : factor                     ? Unit::shared_half
                                       : Unit::half;

  for (int r = 0; r < fragment.registers / fragment.copies; ++r)
    for (int e = 0; e < (whole ? 1 : per); ++e) {
      std::vector<std::uint16_t> cells;
      for (int lane = 0; lane < lanes_; ++lane) {
        const OperandCoord place = coord_of(form, operand, lane, r * per + e, transposed);
        const int column = factor ? place.along / per : place.along;
        const int cell = place.matrix * matrix_cells + column * outer + place.outer;
        cells.push_back(static_cast<std::uint16_t>(
            unit_ == Unit::shared_half ? 2 * cell + place.along % per : cell));
      }
      add(r, 16 * e, std::move(cells));
    }
  make_blocks();
}

void LaneMap::make_blocks() {
  if (unit_ != Unit::word || lanes_ != 32) return;
  for (const Part& part : parts_)
    if (part.step == 0) return;
  std::vector<bool> taken(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (taken[i]) continue;
    RegisterBlock block{parts_[i].reg, -1, parts_[i].first, parts_[i].step};
    for (std::size_t j = i + 1; j < parts_.size() && block.below < 0; ++j) {
      if (taken[j] || parts_[j].step != block.step || parts_[j].first != block.first + 8 ||
          block.step == 8)
        continue;
      block.below = parts_[j].reg;
      taken[j] = true;
    }
    blocks_.push_back(block);
  }
}

void LaneMap::add(int reg, int shift, std::vector<std::uint16_t> cells) {
  Part part{reg, shift, cells[0], cells[1] - cells[0], std::move(cells)};
  bool block = part.step > 1 && unit_ != Unit::shared_half;
  for (int lane = 0; lane < lanes_; ++lane)
    block &= part.cells[static_cast<std::size_t>(lane)] ==
             part.first + 16 * (lane / 32) + lane % 32 / 4 + part.step * (lane % 4);
  if (!block) part.step = 0;
  parts_.push_back(std::move(part));
}

template <typename Word>
void LaneMap::gather_words(const void* const* registers, Word* image) const {
  for (const Part& part : parts_) {
    const Word* from = static_cast<const Word*>(registers[part.reg]);
    const Word mask = unit_ == Unit::half ? Word{0xFFFF} : ~Word{0};
    if (part.step) {
      for (int warp = 0; warp < lanes_ / 32; ++warp, from += 32) {
        Word* to = image + part.first + 16 * warp;
        for (int t = 0; t < 4; ++t, to += part.step)
          for (int g = 0; g < 8; ++g) to[g] = from[4 * g + t] >> part.shift & mask;
      }
    } else {
      for (int lane = 0; lane < lanes_; ++lane)
        image[part.cells[static_cast<std::size_t>(lane)]] = from[lane] >> part.shift & mask;
    }
  }
}

template <typename Word>
void LaneMap::scatter_words(const Word* image, void* const* registers) const {
  for (const Part& part : parts_) {
    Word* to = static_cast<Word*>(registers[part.reg]);
    const bool upper = part.shift != 0;  // the lower half was written just before
    if (part.step) {
      for (int warp = 0; warp < lanes_ / 32; ++warp, to += 32) {
        const Word* from = image + part.first + 16 * warp;
        for (int g = 0; g < 8; ++g)
          for (int t = 0; t < 4; ++t) {
            const Word word = from[t * part.step + g];
            to[4 * g + t] = upper ? (to[4 * g + t] | word << part.shift) : word;
          }
      }
    } else {
      for (int lane = 0; lane < lanes_; ++lane) {
        const Word word = image[part.cells[static_cast<std::size_t>(lane)]];
        to[lane] = upper ? (to[lane] | word << part.shift) : word;
      }
    }
  }
}

void LaneMap::gather(const void* const* registers, void* image, const TileKernel* kernel) const {
  if (kernel && !blocks_.empty())
    return kernel->gather(blocks_.data(), static_cast<int>(blocks_.size()), registers,
                          static_cast<std::uint32_t*>(image));
  if (unit_ == Unit::double_word)
    return gather_words(registers, static_cast<std::uint64_t*>(image));
  if (unit_ != Unit::shared_half)
    return gather_words(registers, static_cast<std::uint32_t*>(image));
  auto* words = static_cast<std::uint32_t*>(image);
  for (const Part& part : parts_)
    for (int lane = 0; lane < lanes_; ++lane) {
      const auto bits =
          static_cast<const std::uint32_t*>(registers[part.reg])[lane] >> part.shift & 0xFFFF;
      const int half = part.cells[static_cast<std::size_t>(lane)];
      std::uint32_t& word = words[half / 2];
      word = half % 2 ? (word & 0xFFFF) | bits << 16 : (word & 0xFFFF0000) | bits;
    }
}

void LaneMap::scatter(const void* image, void* const* registers, const TileKernel* kernel) const {
  if (kernel && !blocks_.empty())
    return kernel->scatter(blocks_.data(), static_cast<int>(blocks_.size()),
                           static_cast<const std::uint32_t*>(image), registers);
  if (unit_ == Unit::double_word)
    return scatter_words(static_cast<const std::uint64_t*>(image), registers);
  scatter_words(static_cast<const std::uint32_t*>(image), registers);
}

}  // namespace tartan::TARTAN_ABI::emulator
