// SPDX-License-Identifier: Apache-2.0
// dsl/operations.h - what Builder's calls do with tiles and fragments: each reports what is wrong
// and else adds its code to the kernel. Not installed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/state.h"
#include "tartan/isa/instruction.h"

namespace tartan::inline TARTAN_ABI::detail {

// -- Tiles: dsl/copy.cc, dsl/tensor_copy.cc, dsl/tensor_store.cc.

/// By all threads of the role.
void copy_tile(KernelState& state, const Tensor& from, const Tensor& to);
/// The same by this thread's warp alone, of tiles that are as large.
void copy_by_warp(KernelState& state, const Tensor& from, const Tensor& to);
/// The same by TMA, where it can; else why not.
bool copy_by_tma(KernelState& state, const Tensor& from, const Tensor& to,
                 std::vector<std::string>& refused);
/// Before a warp that stored by TMA ends: its shared memory must have been read.
void finish_stores(KernelState& state);

// -- Fragments: dsl/load.cc, dsl/mma.cc, dsl/store.cc.

Fragment load_fragment(KernelState& state, const FragmentKind& kind, const Tensor& from);
/// `count` fragments side by side, two by one ldmatrix where that goes: down for A, across for B.
std::vector<Fragment> load_side(KernelState& state, const FragmentKind& kind, const Tensor& from,
                                int count);
/// `c`: null for an accumulator of zeros, of `zero_type`.
Fragment multiply_fragments(KernelState& state, const Fragment& a, const Fragment& b,
                            const Fragment* c, Type zero_type, const MmaOptions& options = {});
/// Whether elements of A and B can be negated, where the options ask for that; reports if not.
bool may_negate(KernelState& state, const MmaOptions& options, Type a, Type b);
void store_fragment(KernelState& state, const Tensor& to, const Fragment& fragment);

// -- Instructions by name: dsl/instruction.cc.

/// `address`: what the instruction's address operand points to; `operands` are the others then.
std::vector<Scalar> named_instruction(KernelState& state, std::string_view spelling,
                                      std::span<const Scalar> operands,
                                      const codegen::Pointer* address = nullptr);
/// One operand of an instruction against what its row takes; gives the value, or reports. `part`:
/// which of a {byte-id, thread-id}.
std::optional<codegen::Value> instruction_operand(KernelState& state, const isa::Instruction& row,
                                                  const isa::OperandSpec& spec,
                                                  const Scalar& scalar, int part = 0);

// -- Numbers: dsl/math.cc.

/// Says that the target does not convert e4m3 and e5m2; gives a refused scalar.
Scalar refuse_eight_bits(KernelState& state);

}  // namespace tartan::inline TARTAN_ABI::detail
