// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/reading.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

Reading read(std::string_view opcode) {
  Reading out{isa::parse_form(opcode), {}, {}, {}};
  const isa::Form form = out.text.form;
  out.spelled = isa::spell(form);
  // A spelling with more or fewer types than the form is invalid: f16 wmma.mma with four types, for
  // example.
  if (!out.text.unknown.empty() || !out.text.repeated.empty() || !out.text.sync ||
      isa::parse_form(out.spelled).types != out.text.types)
    return out;
  const auto look_up = [&](auto find) {
    isa::Form other = form;
    other.stride = form.opcode == isa::Opcode::wmma_load || form.opcode == isa::Opcode::wmma_store;
    other.a_in_registers = form.opcode == isa::Opcode::wgmma;
    out.plain = find(form);
    if (other.stride || other.a_in_registers) out.alternative = find(other);
    return out.plain || out.alternative;
  };
  if (!look_up(isa::find) && !look_up(isa::find_legacy))
    out.undocumented = look_up(isa::find_undocumented);
  return out;
}

}  // namespace

const isa::Instruction* choose(const ptx::Module& module, const ptx::Instruction& instruction,
                               const Reading& reading) {
  if (!reading.alternative) return reading.plain ? &*reading.plain : nullptr;
  if (!reading.plain) return &*reading.alternative;
  if (reading.text.form.opcode != isa::Opcode::wgmma)
    return instruction.count >= 3 ? &*reading.alternative : &*reading.plain;
  const auto operands = module.operands_of(instruction);
  const bool vector = operands.size() > 1 && operands[1].kind == ptx::OperandKind::Vector;
  return vector ? &*reading.alternative : &*reading.plain;
}

Readings::Readings(const ptx::Module& module)
    : module_(module), readings_(module.spellings.size()) {}

const Reading& Readings::of(const ptx::Instruction& instruction) {
  std::unique_ptr<Reading>& reading = readings_[instruction.spelling];
  if (!reading) reading = std::make_unique<Reading>(read(instruction.opcode));
  return *reading;
}

const isa::Instruction* Readings::instruction(const ptx::Instruction& instruction) {
  if (!isa::is_matrix(module_.spelling(instruction).opcode)) return nullptr;
  const isa::Instruction* found = choose(module_, instruction, of(instruction));
  return found && found->operands.size() == instruction.count ? found : nullptr;
}

}  // namespace tartan::TARTAN_ABI::verify
