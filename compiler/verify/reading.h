// SPDX-License-Identifier: Apache-2.0
// compiler/verify/reading.h - what the tables say about a matrix instruction of the text; the same
// spelling is looked up once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tartan/isa/instruction.h"
#include "tartan/ptx/tree.h"

namespace tartan::inline TARTAN_ABI::verify {

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
  explicit Readings(const ptx::Module& module);

  const Reading& of(const ptx::Instruction& instruction);
  /// What `instruction` is; null unless it is a matrix instruction that exists, with as many
  /// operands as it takes.
  const isa::Instruction* instruction(const ptx::Instruction& instruction);

 private:
  const ptx::Module& module_;
  std::vector<std::unique_ptr<Reading>> readings_;  // as Module::spellings
};

}  // namespace tartan::inline TARTAN_ABI::verify
