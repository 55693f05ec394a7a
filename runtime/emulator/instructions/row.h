// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/row.h - what the emulator knows of an opcode, one row each: the
// machine and its observers ask it, and keep no list of their own.
//
//   constexpr EmulatedRow barriers_rows[] = {
//       {Opcode::bar, decode_barrier},
//       ...
//   };
//   static_assert(are_rows_of(barriers_rows, topics::barriers));
//
// The rows are in the file of their topic, next to the decode functions. No column has a default.
#pragma once

#include <algorithm>
#include <concepts>
#include <span>

#include "tartan/isa/opcode.h"

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

struct EmulatedRow {
  Opcode opcode;
  Given<Decode> decode;
};

/// The row of an opcode. Those that are not emulated share one, whose decode function says why.
const EmulatedRow& emulated(Opcode opcode);
/// Whether the emulator runs it.
bool is_emulated(Opcode opcode);

constexpr bool are_rows_of(std::span<const EmulatedRow> rows, std::span<const Opcode> topic) {
  return std::ranges::equal(rows, topic, {}, &EmulatedRow::opcode);
}

}  // namespace tartan::TARTAN_ABI::emulator
