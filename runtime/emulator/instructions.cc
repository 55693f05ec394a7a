// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/instructions.h"

#include <atomic>

#include "runtime/emulator/lanes.h"

namespace tartan::emulator {
namespace {
std::atomic<bool> vectors_allowed = true;
}

bool use_vectors() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has && vectors_allowed;
#else
  return false;
#endif
}

void set_vectors(bool allowed) { vectors_allowed = allowed; }

Decode find_decode(std::string_view name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, Decode> out;
    for (const auto topic :
         {integer_instructions(),        carry_instructions(),        bit_instructions(),
          byte_instructions(),           video_instructions(),        comparison_instructions(),
          conversion_instructions(),     move_instructions(),         memory_instructions(),
          atomic_instructions(),         asynchronous_instructions(), warp_instructions(),
          barrier_instructions(),        control_instructions(),      stack_instructions(),
          matrix_instructions(),         warpgroup_instructions(),    approximation_instructions(),
          launch_control_instructions(), refused_instructions()})
      for (const InstructionRow& row : topic) out.emplace(row.name, row.decode);
    return out;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace tartan::emulator
