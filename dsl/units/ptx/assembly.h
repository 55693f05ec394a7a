// SPDX-License-Identifier: Apache-2.0
// dsl/units/ptx/assembly.h - statements of PTX in a description: checked by the parser and the
// verifier for the target, at the caller's line. Not installed.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// Whether a statement has effects, or other lanes take part in it.
enum class Effect : std::uint8_t { none, any };

/// Whether threads wait for others in a text: at a barrier of the CTA or the cluster, or at an
/// mbarrier.
bool waits(std::string_view text);
/// In `text`, %0, %1, ... are the results and then the operands. Constants among the operands
/// become part of the text. Results of refused statements are refused scalars.
std::vector<Scalar> assembled(KernelState& state, std::string_view text,
                              std::span<const Type> results, std::span<const Scalar> operands,
                              Effect effect);
/// An instruction of the opcode table by its spelling, its operands in PTX order without results.
std::vector<Scalar> any_instruction(KernelState& state, std::string_view spelling,
                                    std::span<const Scalar> operands);

}  // namespace tartan::TARTAN_ABI::detail
