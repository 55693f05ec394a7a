// SPDX-License-Identifier: Apache-2.0
// compiler/verify/reading.h - the matrix instructions of a text with their operands' fragments,
// each spelling looked up once.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tartan/isa/instruction.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::verify {

class Readings {
 public:
  explicit Readings(const ptx::Module& module);

  /// The table's entry of `instruction`; null unless it is a matrix instruction that exists and has
  /// the right number of operands.
  const isa::Instruction* instruction(const ptx::Instruction& instruction);

 private:
  const ptx::Module& module_;
  // As Module::spellings. The second one is with stride, or with A in registers.
  std::vector<std::array<std::optional<isa::Instruction>, 2>> readings_;
};

}  // namespace tartan::TARTAN_ABI::verify
