// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/tensor_shift.h - rows that tcgen05.shift, and .ashift of tcgen05.mma,
// move "down by one, except the last" (PTX ISA 9.0, 9.7.16.9.3 and 9.7.16.10.9).
//
// No source tells whether down is toward the next lane, nor whether rows move across the lanes of a
// warp. Values are those of the first reading: row r is what row r - 1 was, row 0 stays. Bits that
// another reading makes others are undefined: those of a row that is not what both its neighbours
// are.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr std::string_view shift_source =
    "rows are assumed to move to the next lane: no source tells the direction of a shift";

/// The row that is in `row` behind the shift.
constexpr int shifted_from(int row) { return std::max(row - 1, 0); }

/// The lanes of the rows that some reading moves to that lane, or leaves there: all readings give
/// the same where these hold the same. Of so many lanes from `first` on.
constexpr std::array<int, 3> shift_neighbours(int first, int count, int lane) {
  return {std::max(lane - 1, first), lane, std::min(lane + 1, first + count - 1)};
}

}  // namespace tartan::TARTAN_ABI::emulator
