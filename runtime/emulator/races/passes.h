// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/passes.h - the loop around two accesses.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

struct LaunchContext;

/// Whether two instructions are in a loop whose only barriers stand between them: what of theirs
/// is not ordered is then of different passes.
bool are_of_two_passes(const LaunchContext& context, std::uint32_t one, std::uint32_t other);

}  // namespace tartan::TARTAN_ABI::emulator
