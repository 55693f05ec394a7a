// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/print.h - what the device runtime does through vprintf and __assertfail.
#pragma once

#include "runtime/emulator/machine/program.h"

namespace tartan::TARTAN_ABI::emulator {

/// Slots op.list: format and arguments (generic addresses, 64 bits). Each lane prints to standard
/// output; op.d gets the number of arguments.
void print_formatted(Warp& warp, const Op& op);

/// Slots op.list: message, file, line, function, character size. Stops the launch.
void fail_assertion(Warp& warp, const Op& op);

}  // namespace tartan::TARTAN_ABI::emulator
