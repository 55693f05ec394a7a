// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/decode/op_registers.h - which registers each instruction of a Program reads and
// writes, as slots of the arena.
//
// Ops say where their operands are in fields that only their handlers understand; this table says
// it in the terms of the PTX text, an entry for each instruction. The decoder fills it while decode
// functions ask for operands, where Decoder::set_recorded() was called:
//
//   const InstructionOps* now = program.registers.starting_at(pc);   // null: no first op
//   for (const RegisterUse& use : program.registers.uses_of(*now)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::emulator {

/// A slot that an operand of an instruction stands for.
struct RegisterUse {
  /// `operand` of what stands in no operand: the guard, and the carry of add.cc and addc.
  static constexpr std::uint8_t guard = 255, carry = 254;

  std::uint32_t slot = 0;
  Type type = Type::none;    // as which it is read or written
  std::uint8_t operand = 0;  // index of the instruction's operand
  std::uint8_t element = 0;  // of a vector, a pair, a list or the parts of an address
  bool reads = false, writes = false;
  bool address = false;   // part of an address operand
  bool constant = false;  // a literal, a special register or a variable's address
};

/// An instruction of the text, and the ops that it was decoded into.
struct InstructionOps {
  std::uint32_t instruction = 0;       // index into ptx::Module::instructions
  std::uint32_t first = 0, count = 0;  // ops
  std::uint32_t first_use = 0, uses = 0;
};

struct OpRegisters {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::vector<InstructionOps> instructions;  // in the order of ops
  std::vector<RegisterUse> uses;
  std::vector<std::uint32_t> of_op;            // index into instructions; none: of no instruction
  std::map<std::uint32_t, std::string> names;  // of registers, by slot

  const InstructionOps* at(std::uint32_t op) const {
    return op < of_op.size() && of_op[op] != none ? &instructions[of_op[op]] : nullptr;
  }
  /// The instruction whose first op that is.
  const InstructionOps* starting_at(std::uint32_t op) const {
    const InstructionOps* found = at(op);
    return found && found->first == op ? found : nullptr;
  }
  std::span<const RegisterUse> uses_of(const InstructionOps& instruction) const {
    return std::span(uses).subspan(instruction.first_use, instruction.uses);
  }
  /// The register's name in the text; empty for others.
  std::string_view name(std::uint32_t slot) const {
    const auto found = names.find(slot);
    return found == names.end() ? std::string_view() : found->second;
  }
};

}  // namespace tartan::TARTAN_ABI::emulator
