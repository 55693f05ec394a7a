// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_agreement.h - what must be in tensor memory several times,
// since each quarter of the tensor core reads its own: scales, and A of a pair whose D is in parts.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "runtime/emulator/machine/tensor_memory.h"

namespace tartan::TARTAN_ABI::emulator {

/// Where the cells of `first` differ, in the bits of `mask`, from their copies so many lanes below,
/// and below these, up to lane `end`; empty: nowhere.
inline std::string differing_copy(TensorMemory& memory, const TensorArea& first, int below,
                                  std::uint32_t mask = ~0u, int end = TensorMemory::lanes) {
  for (int column = first.column; column < first.column + first.columns; ++column)
    for (int lane = first.lane; lane < first.lane + first.lanes; ++lane)
      for (int copy = lane + below; copy < end; copy += below) {
        const std::uint32_t here = memory.cell(lane, column), there = memory.cell(copy, column);
        if ((here ^ there) & mask)
          return fmt::format("{} has 0x{:08x}, {} has 0x{:08x}: expected a copy in each {} lanes",
                             cell_text(lane, column), here, cell_text(copy, column), there, below);
      }
  return {};
}

}  // namespace tartan::TARTAN_ABI::emulator
