// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/multiprocessor.h - what special registers say of the hardware's
// multiprocessors.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// From `sm` on. Warps, blocks and the steps in which a block gets shared memory: CUDA programming
/// guide, "Compute Capabilities", and PTX ISA, "%total_smem_size". The count is that of the largest
/// data-centre GPU. An H200's registers are recorded.
struct Multiprocessor {
  int sm;
  std::uint32_t count;
  std::uint32_t warps;            // at the same time
  std::uint32_t blocks;           // the same
  std::uint32_t shared_step;      // bytes
  std::uint32_t shared_reserved;  // bytes of each block, for the system
  std::uint32_t reserved_end;     // those of them that are in use
};

inline constexpr Multiprocessor multiprocessors[] = {
    {70, 80, 64, 32, 256, 0, 0},         // V100
    {75, 40, 32, 16, 256, 0, 0},         // T4
    {80, 108, 64, 32, 128, 1024, 0},     // A100
    {86, 84, 48, 16, 128, 1024, 0},      // A40
    {89, 142, 48, 24, 128, 1024, 0},     // L40
    {90, 132, 64, 32, 128, 1024, 288},   // H200
    {100, 148, 64, 32, 128, 1024, 288},  // B200
    {120, 188, 48, 24, 128, 1024, 288},  // RTX PRO 6000
};

constexpr const Multiprocessor& multiprocessor_of(int sm) {
  const Multiprocessor* found = &multiprocessors[0];
  for (const Multiprocessor& row : multiprocessors)
    if (row.sm <= sm) found = &row;
  return *found;
}

}  // namespace tartan::TARTAN_ABI::emulator
