// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/bad_address.h - what an address is that leads nowhere: an offset in
// another state space, a pointer to one, a null pointer.
#pragma once

#include <cstdint>

#include "runtime/emulator/machine/program.h"

namespace tartan::TARTAN_ABI::emulator {

/// Stops the warp: there are not `bytes` bytes at `address` of the window.
void report_bad_address(Warp& warp, Window window, int lane, std::uint64_t address,
                        std::uint32_t bytes);

}  // namespace tartan::TARTAN_ABI::emulator
