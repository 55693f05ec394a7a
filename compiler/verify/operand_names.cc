// SPDX-License-Identifier: Apache-2.0
// Every name that an instruction uses is declared.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/verify/operand_matcher.h"

namespace tartan::TARTAN_ABI::verify {

OperandNames::OperandNames(Context& context, const FunctionView& view)
    : context_(context), view_(view), operands_(context.module.operands.data()) {
  for (const ptx::Statement& statement : view.function.statements) {
    if (statement.kind == ptx::StatementKind::Label)
      labels_.insert(context.module.labels[statement.index].name);
    if (statement.kind != ptx::StatementKind::Registers) continue;
    const ptx::Registers& row = context.module.registers[statement.index];
    if (row.numbered && ptx::numbered_name(row.name)) unwritable_.try_emplace(row.name, &row);
  }
}

bool OperandNames::resolve(const ptx::Instruction& instruction, isa::Opcode opcode) {
  if (!instruction.guard.empty()) guard(instruction);
  // Children precede their parents: the instruction's operands end after the last.
  std::size_t low = instruction.first;
  const auto lowest = [&](const auto& self, const ptx::Operand& operand) -> void {
    if (operand.count) low = std::min<std::size_t>(low, operand.first);
    for (const ptx::Operand& child : context_.module.children(operand)) self(self, child);
  };
  const auto operands = context_.module.operands_of(instruction);
  for (const ptx::Operand& each : operands) lowest(lowest, each);
  first_ = low;
  infos_.assign(instruction.first + instruction.count - low, {});
  bool declared = true;
  for (const ptx::Operand& each : operands)
    declared &= operand(each, opcode == isa::Opcode::bra, opcode == isa::Opcode::call);
  return declared;
}

bool OperandNames::operand(const ptx::Operand& operand, bool branch, bool call) {
  if (operand.kind == ptx::OperandKind::Name) return branch ? label(operand) : name(operand, call);
  bool declared = operand.kind != ptx::OperandKind::Element || name(operand, call);
  for (const ptx::Operand& child : context_.module.children(operand))
    declared &= this->operand(child, false, call);
  return declared;
}

bool OperandNames::label(const ptx::Operand& operand) {
  infos_[static_cast<std::size_t>(&operand - operands_) - first_].kind = NameKind::Label;
  const std::string_view text = operand.text;
  if (view_.scopes.label(text)) return true;
  context_.report(
      "undeclared-label"_rule, text,
      fmt::format(
          "label {} is {} in {}{}", text, labels_.contains(text) ? "defined" : "not defined",
          view_.function.name,
          labels_.contains(text) ? ", but in another block, which branches cannot enter" : ""));
  return false;
}

bool OperandNames::name(const ptx::Operand& operand, bool call) {
  const std::string_view text = operand.text, base = base_name(text);
  if (base == "_") return true;
  if (call && text.starts_with("llvm.")) {
    context_.report("llvm-leftover"_rule, text,
                    fmt::format("call of {}: unsupported intrinsic of the back end", text));
    return false;
  }
  const NameInfo found = view_.scopes.find(base);
  infos_[static_cast<std::size_t>(&operand - operands_) - first_] = found;
  if (found.kind == NameKind::Unknown) return undeclared(text, base), false;
  if (found.offset <= operand.offset) return true;
  context_.report("undeclared-register"_rule, text,
                  fmt::format("{} is used before its declaration on line {}", base,
                              context_.module.source->line(found.offset)));
  return false;
}

void OperandNames::guard(const ptx::Instruction& instruction) {
  const std::string_view text = instruction.guard, base = base_name(text);
  const NameInfo found = view_.scopes.find(base);
  if (found.kind == NameKind::Unknown) return undeclared(text, base);
  if (found.type != Type::pred)
    context_.report("register-type"_rule, text,
                    fmt::format("guard: expected a register of type .pred, {} is .{}", base,
                                tartan::name(found.type)));
}

void OperandNames::undeclared(std::string_view text, std::string_view base) {
  context_.report("undeclared-register"_rule, text,
                  fmt::format("{} is undeclared{}", base, unwritable(base)));
}

// Why the name does not belong to a row `a1<4>` of the function.
std::string OperandNames::unwritable(std::string_view text) const {
  const auto numbered = ptx::numbered_name(text);
  if (!numbered) return {};
  for (std::size_t size = numbered->row.size() + 1; size < text.size(); ++size) {
    const auto found = unwritable_.find(text.substr(0, size));
    if (found == unwritable_.end()) continue;
    const ptx::Registers& row = *found->second;
    return fmt::format(
        ": trailing digits are a register's number, and the name of {}<{}> (line {}) ends in one; "
        "use {}_<{}>",
        row.name, row.count, context_.module.source->line(row.offset), row.name, row.count);
  }
  return {};
}

}  // namespace tartan::TARTAN_ABI::verify
