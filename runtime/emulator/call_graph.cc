// SPDX-License-Identifier: Apache-2.0
// Who calls whom: the order of functions in a program, and which calls may be recursive.
#include <algorithm>

#include "runtime/emulator/decoder.h"
#include "runtime/emulator/memory.h"

namespace tartan::emulator {

namespace {
constexpr std::uint64_t function_step = 16;
}

std::uint64_t address_of(const ptx::Module& module, const ptx::Function& function) {
  const auto index = static_cast<std::uint64_t>(&function - module.functions.data());
  return function_window + function_step * (index + 1);
}

void Decoder::keep(std::vector<FramePart> Frame::*part, std::uint32_t at, std::uint32_t bytes) {
  if (function_ && !function_->entry)
    (program_.frames[current().frame].*part).push_back({at, bytes});
}

void Decoder::go_to_entry(Op& op, const Function& callee) {
  entries_.push_back({static_cast<std::size_t>(&op - program_.ops.data()), callee.tree->name});
}

// Functions whose address something else than a direct call names.
const std::vector<const ptx::Function*>& Decoder::address_taken() {
  if (address_taken_) return *address_taken_;
  address_taken_.emplace();
  const auto take = [&](const ptx::Operand& operand, const auto& self) -> void {
    for (const ptx::Operand& child : module_.children(operand)) self(child, self);
    if (operand.kind != ptx::OperandKind::Name) return;
    const ptx::Function* function = module_.function(operand.text);
    if (function && function->body && !function->entry &&
        std::ranges::find(*address_taken_, function) == address_taken_->end())
      address_taken_->push_back(function);
  };
  for (const ptx::Instruction& instruction : module_.instructions)
    if (!instruction.opcode.starts_with("call"))
      for (const ptx::Operand& operand : module_.operands_of(instruction)) take(operand, take);
  for (const ptx::Variable& variable : module_.variables)
    if (variable.initialiser) take(module_.operands[*variable.initialiser], take);
  return *address_taken_;
}

const std::vector<const ptx::Function*>& Decoder::callees_of(const ptx::Function& function) {
  const auto [at, fresh] = callees_.try_emplace(&function);
  if (!fresh) return at->second;
  std::vector<const ptx::Function*> out;
  const auto add = [&](const ptx::Function* callee) {
    if (callee && callee->body && !callee->entry && std::ranges::find(out, callee) == out.end())
      out.push_back(callee);
  };
  for (const ptx::Statement& statement : function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = module_.instructions[statement.index];
    if (!instruction.opcode.starts_with("call")) continue;
    bool direct = false;
    for (const ptx::Operand& operand : module_.operands_of(instruction)) {
      if (operand.kind != ptx::OperandKind::Name) continue;
      const ptx::Function* callee = module_.function(operand.text);
      direct |= callee != nullptr;
      add(callee);
    }
    if (!direct)
      for (const ptx::Function* callee : address_taken()) add(callee);
  }
  return at->second = std::move(out);
}

std::vector<const Decoder::Function*> Decoder::call_targets(std::string_view label) const {
  std::vector<const Function*> out;
  const auto add = [&](std::string_view name) {
    if (const Function* callee = function(name)) out.push_back(callee);
  };
  if (const auto names = branch_targets(label); !names.empty())
    for (std::string_view name : names) add(name);
  else if (address_taken_)
    for (const ptx::Function* callee : *address_taken_) add(callee->name);
  return out;
}

bool Decoder::may_return_into_itself(const Function& callee) {
  if (function_->entry) return false;
  std::vector<const ptx::Function*> reached{callee.tree};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == function_) return true;
    for (const ptx::Function* next : callees_of(*reached[i]))
      if (std::ranges::find(reached, next) == reached.end()) reached.push_back(next);
  }
  return false;
}

}  // namespace tartan::emulator
