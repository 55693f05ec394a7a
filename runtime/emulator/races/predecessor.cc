// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/predecessor.h"

#include <fmt/format.h>

#include "runtime/emulator/machine/places.h"

namespace tartan::inline TARTAN_ABI::emulator {

std::optional<Predecessor::Conflict> Predecessor::conflict(std::uint64_t address,
                                                           std::uint64_t bytes, bool writes,
                                                           bool wide) {
  const auto apart = [&](const Past& past) { return past.time && !(wide && past.deed.wide()); };
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (const Past past = memory_.last_write(address + i); apart(past))
      return Conflict{past.deed.pc(), true};
    if (!writes) continue;
    if (const Past past = memory_.some_read(address + i); apart(past))
      return Conflict{past.deed.pc(), false};
  }
  return std::nullopt;
}

std::string Predecessor::text(std::uint32_t pc) const {
  return fmt::format("{} on {} of kernel {}", opcode(*program_, *module_, pc),
                     line_text(*program_, *module_, pc), program_->name);
}

}  // namespace tartan::inline TARTAN_ABI::emulator
