// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/reading.h"

#include "compiler/isa/form_instruction.h"

namespace tartan::TARTAN_ABI::verify {

Readings::Readings(const ptx::Module& module)
    : module_(module), readings_(module.spellings.size()) {}

const isa::Instruction* Readings::instruction(const ptx::Instruction& instruction) {
  const isa::Spelling& spelling = module_.spelling(instruction);
  if (!isa::is_matrix(spelling.opcode) || spelling.signatures.empty()) return nullptr;
  const bool warpgroup = spelling.opcode == isa::Opcode::wgmma;
  const auto operands = module_.operands_of(instruction);
  const bool other = warpgroup ? operands.size() > 1 && operands[1].kind == ptx::OperandKind::Vector
                               : operands.size() == 3;
  std::optional<isa::Instruction>& out = readings_[instruction.spelling][other];
  for (const isa::Signature* each : spelling.signatures) {
    if (out) break;
    const isa::OperandRow* last = each->operands.end() - 1;
    const bool with_stride = other && last->optional;
    isa::Instruction found = isa::instruction(spelling, *each, with_stride);
    if (!warpgroup || found.form.a_in_registers == other) out = std::move(found);
  }
  return out && out->operands.size() == operands.size() ? &*out : nullptr;
}

}  // namespace tartan::TARTAN_ABI::verify
