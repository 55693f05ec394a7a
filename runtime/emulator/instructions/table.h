// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/table.h - which instructions the emulator knows: one row per
// opcode, by topic.
#pragma once

#include <span>
#include <string_view>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/numbers/small_float.h"

namespace tartan::TARTAN_ABI::emulator {

struct Access;

using Decode = void (*)(Decoder&);

struct InstructionRow {
  Opcode opcode;
  Decode decode;
};

std::span<const InstructionRow> integer_instructions();
std::span<const InstructionRow> carry_instructions();
std::span<const InstructionRow> bit_instructions();
std::span<const InstructionRow> byte_instructions();
std::span<const InstructionRow> video_instructions();
std::span<const InstructionRow> comparison_instructions();
std::span<const InstructionRow> conversion_instructions();
std::span<const InstructionRow> move_instructions();
std::span<const InstructionRow> memory_instructions();
std::span<const InstructionRow> atomic_instructions();
std::span<const InstructionRow> copy_instructions();
std::span<const InstructionRow> mbarrier_instructions();
std::span<const InstructionRow> bulk_instructions();
std::span<const InstructionRow> tensor_instructions();
std::span<const InstructionRow> tensor_map_instructions();
std::span<const InstructionRow> warp_instructions();
std::span<const InstructionRow> barrier_instructions();
std::span<const InstructionRow> control_instructions();
std::span<const InstructionRow> stack_instructions();
std::span<const InstructionRow> matrix_instructions();
std::span<const InstructionRow> warpgroup_instructions();
std::span<const InstructionRow> approximation_instructions();
std::span<const InstructionRow> launch_control_instructions();
std::span<const InstructionRow> refused_instructions();

/// Whether `decode` would take a form of PTX after 9.0 that it was not taught: all but those of ld
/// and st, whose words say no more than older ones, and of matrix products.
bool is_newer_than_emulated(const isa::Spelling& spelling, Decode decode);

/// How that opcode is decoded; null: the emulator does not know it.
Decode find_decode(Opcode opcode);

/// What rest_on() says of instructions whose last bits are a table of the hardware's.
inline constexpr std::string_view approximation_source =
    "within the manual's error bound; the hardware's last bits are unknown";

// Names that integers and floating point share (add, mul, min, ...) are in integer_instructions;
// for floating-point types they go on here.
void decode_float_arithmetic(Decoder& decoder);
// add, sub, mul and fma on f32x2, if it is one.
bool decode_float_pairs(Decoder& decoder);
// Has the race detector hear of the current instruction, whose ops are those from `first` on.
void watch(Decoder& decoder, std::size_t first);
// Gives the current instruction, whose ops are those from `first` on, its step in launches under
// algebra (algebra/lift.cc).
void lift(Decoder& decoder, std::size_t first);
// call.
void decode_call(Decoder& decoder);
// For functions whose variables are on the stack: at their start, in front of each return, and
// around calls that may come back into the current one (stack.cc).
void emit_enter_frame(Decoder& decoder);
void emit_leave_frame(Decoder& decoder);
void emit_save_registers(Decoder& decoder);
void emit_restore_registers(Decoder& decoder);
void emit_drop_registers(Decoder& decoder);
// add.cc, addc, sub.cc, subc, mad.cc, madc.
void decode_carry(Decoder& decoder);

// cvt.pack; cvt to and from ue8m0x2, if it is one.
void decode_integer_pack(Decoder& decoder);
// st.async and red.async that complete transactions of an mbarrier.
void decode_store_async(Decoder& decoder);
void decode_reduction_async(Decoder& decoder);
bool decode_powers_of_two(Decoder& decoder, Rounding round, bool saturate);
// What orders and places an access, and says no more of it where a warp's accesses happen at once
// and in order, and blocks see each other's memory.
inline constexpr isa::QualifierSet scopes_and_orders =
    "weak relaxed acquire release acq_rel volatile mmio cta cluster gpu sys";
inline constexpr isa::QualifierSet cache_hints =
    "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate "
    "L2::evict_normal L2::evict_unchanged L2::evict_first L2::evict_last L2::cache_hint "
    "L2::64B L2::128B L2::256B";

/// The window of the state space that a memory instruction's spelling names.
Window memory_window(Decoder& decoder);

}  // namespace tartan::TARTAN_ABI::emulator
