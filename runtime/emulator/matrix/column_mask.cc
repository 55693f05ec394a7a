// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/column_mask.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::TARTAN_ABI::emulator {

std::string decode(std::uint64_t bits, const InstructionDescriptor& what, ColumnMask& to) {
  const auto field = [&](int low, int width) {
    return static_cast<int>(bits >> low & ((std::uint64_t{1} << width) - 1));
  };
  if (field(36, 3) || field(62, 2))
    return fmt::format("0x{:016x}: a reserved bit (36 to 38, 62, 63) is set", bits);
  to = {};
  to.shift = field(56, 6);
  const int most = std::min(what.most_shift, what.m == 32 ? 16 : 32);
  if (to.shift > most)
    return fmt::format(
        "0x{:016x}: the column shift (bits 56 to 61) is {}: expected at most {}, of which bits 30 "
        "and 31 of the instruction descriptor allow {}",
        bits, to.shift, most, what.most_shift);
  if (!field(39, 1)) return {};
  const int zeros = field(40, 8) + 1, used = field(48, 8) + 1, columns = what.n / what.parts();
  for (int part = 0; part < what.parts(); ++part) {
    const int start = field(8 * part, 8);
    const bool begins_with_zeros = field(32 + part, 1);
    const int first = begins_with_zeros ? zeros : used;
    if (start >= first)
      return fmt::format(
          "0x{:016x}: start count {} leaves out {} columns of a first span of {}: expected fewer, "
          "no source tells what follows",
          bits, part, start, first);
    for (int n = 0; n < columns; ++n) {
      const int at = (n + start) % (zeros + used);
      to.zero.push_back(begins_with_zeros ? at < zeros : at >= used);
    }
  }
  return {};
}

}  // namespace tartan::TARTAN_ABI::emulator
