// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_operands.h - what instructions share that use tensor memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/tensor_memory.h"
#include "runtime/emulator/machine/warp.h"

namespace tartan::TARTAN_ABI::emulator {

/// What all lanes of the warp pass; nothing after a finding.
std::optional<std::uint32_t> agreed(Warp& warp, const Op& op, std::uint32_t slot,
                                    std::string_view what);
/// Whether the CTA may allocate so many columns; a finding if not.
bool may_allocate(Warp& warp, TensorMemory& memory, std::uint32_t columns);
/// Reads .cta_group: whether the instruction is for a pair of CTAs, which all or none of a kernel's
/// are. Nothing where it is refused.
std::optional<bool> is_of_pair(Decoder& d);
/// The same of an instruction whose other qualifiers are those of a signature; nothing, too, where
/// it has none.
std::optional<bool> is_matched_of_pair(Decoder& d);
/// The CTAs that an instruction of one CTA or a pair works on, the even one first; empty after a
/// finding: there is no pair, or one of the two has exited.
std::vector<Block*> ctas_of(Warp& warp, bool pair, int lane);
/// alloc and dealloc of pairs, as instructions of one CTA have their operands.
void allocate_for_pair(Warp& warp, const Op& op);
void deallocate_for_pair(Warp& warp, const Op& op);
/// The address of tensor memory that a lane passes: op.a + op.value.
std::uint32_t tensor_address(Warp& warp, const Op& op, int lane);

}  // namespace tartan::TARTAN_ABI::emulator
