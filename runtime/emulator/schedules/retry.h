// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/retry.h - loops around a wait for an mbarrier that do nothing but try
// again.
//
// In such a loop a test that fails is as good as a wait that blocks: nothing else hears of it.
#pragma once

#include <cstdint>

#include "runtime/emulator/machine/block.h"

namespace tartan::TARTAN_ABI::emulator {

/// Ops of the longest loop that is looked into.
inline constexpr std::uint64_t longest_round = 64;

/// What the op at `pc` was made of; null: nothing that the text has.
const ptx::Instruction* instruction_at(const LaunchContext& context, std::uint32_t pc);
/// Its opcode; mov: the text has none.
isa::Opcode opcode_at(const LaunchContext& context, std::uint32_t pc);

/// Whether every way of `length` ops from behind the wait back to it leaves everything as it is,
/// and there is one.
bool idles(const LaunchContext& context, std::uint32_t behind_wait, std::uint64_t length);

/// Whether the program, wherever the wait at `pc` fails, comes back to it and leaves everything as
/// it is.
bool retries(const LaunchContext& context, std::uint32_t pc);

}  // namespace tartan::TARTAN_ABI::emulator
