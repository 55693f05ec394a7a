// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/instructions/table.h"

#include <array>
#include <atomic>

#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
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

Decode find_decode(Opcode opcode) {
  static const auto table = [] {
    std::array<Decode, static_cast<std::size_t>(Opcode::count)> out{};
    for (const auto topic :
         {integer_instructions(),       carry_instructions(),          bit_instructions(),
          byte_instructions(),          video_instructions(),          comparison_instructions(),
          conversion_instructions(),    move_instructions(),           memory_instructions(),
          atomic_instructions(),        copy_instructions(),           mbarrier_instructions(),
          warp_instructions(),          barrier_instructions(),        control_instructions(),
          stack_instructions(),         bulk_instructions(),           tensor_instructions(),
          tensor_map_instructions(),    matrix_instructions(),         warpgroup_instructions(),
          approximation_instructions(), launch_control_instructions(), refused_instructions()})
      for (const InstructionRow& row : topic)
        out[static_cast<std::size_t>(row.opcode)] = row.decode;
    return out;
  }();
  return table[static_cast<std::size_t>(opcode)];
}

}  // namespace tartan::TARTAN_ABI::emulator
