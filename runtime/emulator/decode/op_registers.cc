// SPDX-License-Identifier: Apache-2.0
// The decoder's part of op_registers.h.
#include "runtime/emulator/decode/op_registers.h"

#include <algorithm>

#include "runtime/emulator/decode/decoder.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint8_t nowhere = 253;  // no operand of the text

// What an instruction does with the registers of an operand that is no address.
struct Effect {
  bool reads = true, writes = false;
};

// By the signature with as many operands; the spelling alone does not tell which one is meant, but
// those of an opcode write the same operands.
Effect effect_of(const isa::Spelling& spelling, std::size_t operand, std::size_t count,
                 const ptx::Operand& tree) {
  if (spelling.opcode == Opcode::call) {
    const bool results = operand == 0 && tree.kind == ptx::OperandKind::List && count > 1;
    return {.reads = !results, .writes = results};
  }
  for (const isa::Signature* signature : spelling.signatures) {
    const auto rows = isa::operands(*signature, spelling);
    if (rows.size < count) continue;
    const bool writes = rows[operand]->written;
    // wgmma adds to D.
    return {.reads = !writes || spelling.opcode == Opcode::wgmma, .writes = writes};
  }
  return {.reads = operand != 0, .writes = operand == 0};
}

}  // namespace

void Decoder::record(const ptx::Operand& operand, std::uint32_t slot, Type type, bool constant) {
  if (!recorded_ || !instruction_) return;
  RegisterUse use{.slot = slot, .type = type, .operand = nowhere, .constant = constant};
  const auto inside = [&](std::span<const ptx::Operand> all) {
    return !all.empty() && !std::less<>()(&operand, all.data()) &&
           std::less<>()(&operand, all.data() + all.size());
  };
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const ptx::Operand& top = operands_[i];
    const auto parts = top.count ? children(top) : std::span<const ptx::Operand>();
    std::size_t element = 0;
    // A copy of the operand stands where it stands: decode functions take parts off.
    bool found = &operand == &top || (operand.offset == top.offset && !inside(operands_) &&
                                      top.kind == ptx::OperandKind::Name);
    for (std::size_t k = 0; k < parts.size() && !found; ++k, ++element) {
      found = &operand == &parts[k];
      if (found) break;
      const auto inner = parts[k].count ? children(parts[k]) : std::span<const ptx::Operand>();
      if (!inside(inner)) continue;
      found = true;
      element += static_cast<std::size_t>(&operand - inner.data());
      break;
    }
    if (!found) continue;
    use.operand = static_cast<std::uint8_t>(i);
    use.element = static_cast<std::uint8_t>(element);
    use.address = top.kind == ptx::OperandKind::Address;
    break;
  }
  auto& all = program_.registers.uses;
  const auto same = [&](const RegisterUse& each) {
    return each.slot == slot && each.operand == use.operand && each.element == use.element;
  };
  if (std::none_of(all.begin() + first_use_, all.end(), same)) all.push_back(use);
  if (!constant && operand.kind == ptx::OperandKind::Name)
    program_.registers.names.try_emplace(slot, operand.text);
}

void Decoder::record_carry(std::uint32_t slot) {
  if (!recorded_ || !instruction_) return;
  const isa::Spelling& as_read = spelling.as_read();
  const bool reads = as_read.opcode == Opcode::addc || as_read.opcode == Opcode::subc ||
                     as_read.opcode == Opcode::madc;
  program_.registers.uses.push_back({.slot = slot,
                                     .type = Type::pred,
                                     .operand = RegisterUse::carry,
                                     .reads = reads,
                                     .writes = as_read.has("cc"_q)});
  program_.registers.names.try_emplace(slot, "CC.CF");
}

void Decoder::finish_recording(std::size_t first_op) {
  OpRegisters& registers = program_.registers;
  const std::size_t last = program_.ops.size();
  const isa::Spelling& as_read = spelling.as_read();
  for (std::size_t i = static_cast<std::size_t>(first_use_); i < registers.uses.size(); ++i) {
    RegisterUse& use = registers.uses[i];
    if (use.operand == RegisterUse::carry) continue;
    use.reads = true;
    if (use.operand >= operands_.size() || use.address || use.constant) continue;
    const Effect effect = effect_of(as_read, use.operand, operands_.size(), operands_[use.operand]);
    use.reads = effect.reads;
    use.writes = effect.writes;
  }
  if (guard_ != always_slot) {
    registers.uses.push_back(
        {.slot = guard_, .type = Type::pred, .operand = RegisterUse::guard, .reads = true});
    registers.names.try_emplace(guard_, instruction_->guard);
  }
  registers.of_op.resize(last, OpRegisters::none);
  if (last == first_op) return registers.uses.resize(static_cast<std::size_t>(first_use_));
  std::fill(registers.of_op.begin() + static_cast<std::ptrdiff_t>(first_op), registers.of_op.end(),
            static_cast<std::uint32_t>(registers.instructions.size()));
  registers.instructions.push_back(
      {.instruction = static_cast<std::uint32_t>(instruction_ - module_.instructions.data()),
       .first = static_cast<std::uint32_t>(first_op),
       .count = static_cast<std::uint32_t>(last - first_op),
       .first_use = static_cast<std::uint32_t>(first_use_),
       .uses = static_cast<std::uint32_t>(registers.uses.size() -
                                          static_cast<std::size_t>(first_use_))});
}

}  // namespace tartan::TARTAN_ABI::emulator
