// SPDX-License-Identifier: Apache-2.0
// compiler/verify/reading.h - what the tables say about a matrix instruction of the text; the same
// spelling is looked up once.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "compiler/isa/instruction.h"
#include "compiler/ptx/tree.h"

namespace tartan::verify {

struct Reading {
  isa::FormText text;
  std::string spelled;                    // the form in the manual's order
  std::optional<isa::Instruction> plain;  // without stride, A in a descriptor
  std::optional<isa::Instruction>
      alternative;            // with stride, A in registers; none where the family has no choice
  bool undocumented = false;  // the assembler has it, the manual has not
};

/// Which of the two signatures the operands mean; null if the spelling is no instruction.
const isa::Instruction* choose(const ptx::Module& module, const ptx::Instruction& instruction,
                               const Reading& reading);

class Readings {
 public:
  const Reading& of(std::string_view opcode);
  /// What `instruction` is; null unless it is a matrix instruction that exists, with as many
  /// operands as it takes.
  const isa::Instruction* instruction(const ptx::Module& module,
                                      const ptx::Instruction& instruction);

 private:
  std::unordered_map<std::string_view, Reading> readings_;
};

}  // namespace tartan::verify
