// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/row.h - what the emulator knows of an opcode, one row each: the
// machine and its observers ask it, and keep no list of their own.
//
//   constexpr EmulatedRow barriers_rows[] = {
//       {Opcode::bar, decode_barrier, Flow::Collects, ValueSources::Predicates, Meaning::Bits,
//        AccessKind::None, Idle::No, nothing},
//       ...
//   };
//   static_assert(are_rows_of(barriers_rows, topics::barriers));
//
// The rows are in the file of their topic, next to the decode functions. No column has a default.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "tartan/isa/opcode.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::emulator {

class Decoder;

using isa::Opcode;
using Decode = void (*)(Decoder&);

/// A column of a row: one that is left out does not compile.
template <typename T>
class Given {
 public:
  template <typename From>
  requires std::convertible_to<From, T>
  constexpr Given(From&& value) : value_(static_cast<T>(value)) {}
  constexpr operator T() const { return value_; }

 private:
  T value_;
};

/// How undefined bits go through an instruction (runtime/emulator/definedness).
enum class Flow : std::uint8_t {
  Spreads,     // any undefined bit of a source makes its results undefined, by elements of vectors
  Copies,      // mov: bits, packed and unpacked
  Not,         // bits
  And,         // bits; a defined 0 decides
  Or,          // bits; a defined 1 decides
  Xor,         // bits; a register with itself is defined
  Table,       // lop3: bits, by its truth table
  ShiftsLeft,  // bits
  ShiftsRight,
  Funnels,    // shf
  Reverses,   // brev
  Extracts,   // bfe
  Inserts,    // bfi
  Permutes,   // prmt: bytes
  Selects,    // selp: the operand that is chosen
  Converts,   // cvt: between integers bits, else Spreads
  Loads,      // ld
  Stores,     // st
  Atomic,     // atom, red
  LoadsRows,  // ldmatrix
  StoresRows,
  Collects,    // vote, match, redux, bar.red: all lanes' results depend on all lanes' sources
  Transposes,  // movmatrix
  Multiplies,  // mma, wmma.mma
  Uses,        // all sources decide control or a side effect; results are defined
  ByHandler,   // its handler says what it moves; sources that are no value decide side effects
};

/// Which of its sources are values that move on and decide nothing, where the flow is Uses,
/// Collects or ByHandler.
enum class ValueSources : std::uint8_t {
  None,
  Source,      // the operand after the result
  Predicates,  // those of bar.red
  Arguments,   // of a call
  Factors,     // of wgmma: what is multiplied and added, not the descriptors
  Registers,   // of tcgen05.st: all but the address
};

/// What it computes over the reals, for `tartan equal` (runtime/emulator/algebra).
enum class Meaning : std::uint8_t {
  Bits,       // a function of its sources' bits
  LanesBits,  // the same, of all lanes' sources
  Fields,     // the same, of words that it takes apart
  Moves,
  Selects,        // selp
  SelectsBySign,  // slct
  Compares,       // setp
  Shuffles,
  Permutes,    // prmt: bytes
  ShiftsLeft,  // whole bytes move
  Shifts,      // the same; takes words apart
  Inverts,     // not
  Combines,    // and, or, xor, lop3; takes words apart
  Computes,    // arithmetic, of floating point or integers
  Functions,   // of floating point
  Converts,
  Forgets,  // its result says no more than its bits
  Loads,
  Stores,
  Updates,  // memory, atomically
  LoadsRows,
  StoresRows,
  Transposes,
  ByHandler,  // its handler sees to it
};

/// Its access to memory, or what it does to their order, as the race detector and the profile wrap
/// it. None: its handler says so itself, or there is none that others could see.
enum class AccessKind : std::uint8_t {
  None,
  Loads,
  Stores,
  Changes,  // atom
  Reduces,  // red
  LoadsRows,
  StoresRows,
  Copies,          // cp.async
  ReplacesFields,  // of a tensor map
  Orders,          // fence, membar
};

/// Whether a loop around a wait that only tries again may have it (schedules/retry.h).
enum class Idle : std::uint8_t {
  No,
  Computes,  // it gives its first operand from the others, and nothing else
  Silent,    // it has no result, and leaves everything as it is
};

inline constexpr std::string_view nothing;

struct EmulatedRow {
  Opcode opcode;
  Given<Decode> decode;
  Given<Flow> flow;
  Given<ValueSources> values;
  Given<Meaning> lift;
  Given<AccessKind> access;
  Given<Idle> idle;
  /// What a thread learns by it that no order of the kernel's own fixes, as a sentence; or nothing.
  Given<std::string_view> learns;
};

/// The row of a function of registers: it gives its first operand, and nothing else.
constexpr EmulatedRow computation(Opcode opcode, Decode decode, Flow flow, Meaning lift) {
  return {opcode, decode,           flow,           ValueSources::None,
          lift,   AccessKind::None, Idle::Computes, nothing};
}

/// The row of an opcode. Those that are not emulated share one, whose decode function says why.
const EmulatedRow& emulated(Opcode opcode);
/// The row of what it is: st.async.release and red.async.release, to global memory, are st and red
/// that may be late.
const EmulatedRow& emulated(const isa::Spelling& spelling);
/// Whether the emulator runs it.
bool is_emulated(Opcode opcode);

constexpr bool are_rows_of(std::span<const EmulatedRow> rows, std::span<const Opcode> topic) {
  return std::ranges::equal(rows, topic, {}, &EmulatedRow::opcode);
}

}  // namespace tartan::TARTAN_ABI::emulator
