// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_operands.h - what instructions share that use tensor memory.
#pragma once

#include <cstdint>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/warp.h"

namespace tartan::TARTAN_ABI::emulator {

/// Whether the instruction is for one CTA, on hardware that has tensor memory; if not, it is
/// refused.
bool is_of_one_cta(Decoder& d);
/// The address of tensor memory that a lane passes: op.a + op.value.
std::uint32_t tensor_address(Warp& warp, const Op& op, int lane);

}  // namespace tartan::TARTAN_ABI::emulator
