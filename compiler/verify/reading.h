// SPDX-License-Identifier: Apache-2.0
// compiler/verify/reading.h - looks up the matrix instructions of a text in the tables, each
// spelling once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tartan/isa/instruction.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::verify {

struct Reading {
  isa::FormText text;
  std::string spelled;                    // the form in the manual's order
  std::optional<isa::Instruction> plain;  // without stride, A in a descriptor
  std::optional<isa::Instruction>
      alternative;            // with stride, A in registers; none if the family has no choice
  bool undocumented = false;  // the assembler accepts it, the manual does not have it
};

/// Which of the two signatures the operands match; null if the spelling is not an instruction.
const isa::Instruction* choose(const ptx::Module& module, const ptx::Instruction& instruction,
                               const Reading& reading);

class Readings {
 public:
  explicit Readings(const ptx::Module& module);

  const Reading& of(const ptx::Instruction& instruction);
  /// The table's entry of `instruction`; null unless it is a matrix instruction that exists and has
  /// the right number of operands.
  const isa::Instruction* instruction(const ptx::Instruction& instruction);

 private:
  const ptx::Module& module_;
  std::vector<std::unique_ptr<Reading>> readings_;  // as Module::spellings
};

}  // namespace tartan::TARTAN_ABI::verify
