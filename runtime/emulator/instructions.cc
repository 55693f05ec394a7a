// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/instructions.h"

namespace tartan::emulator {

Decode find_decode(std::string_view name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, Decode> out;
    for (const auto topic :
         {integer_instructions(), carry_instructions(), bit_instructions(), byte_instructions(),
          comparison_instructions(), conversion_instructions(), move_instructions(),
          memory_instructions(), atomic_instructions(), asynchronous_instructions(),
          warp_instructions(), barrier_instructions(), control_instructions(),
          matrix_instructions(), warpgroup_instructions(), approximation_instructions()})
      for (const InstructionRow& row : topic) out.emplace(row.name, row.decode);
    return out;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace tartan::emulator
