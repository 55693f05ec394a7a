// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/call_graph.h"

#include <algorithm>
#include <unordered_set>

namespace tartan::inline TARTAN_ABI::ptx {
namespace {

/// Collects functions, each once.
class FunctionList {
 public:
  void add(const Function* function) {
    if (function && function->body && !function->entry && known_.insert(function).second)
      out.push_back(function);
  }
  std::vector<const Function*> out;

 private:
  std::unordered_set<const Function*> known_;
};

void add_named(const Module& module, const Operand& operand, FunctionList& to) {
  for (const Operand& child : module.children(operand)) add_named(module, child, to);
  if (operand.kind == OperandKind::Name) to.add(module.function(operand.text));
}

// A call names its callee; every other instruction that names a function takes its address.
void add_addresses(const Module& module, const Instruction& instruction, FunctionList& to) {
  if (module.spelling(instruction).opcode == isa::Opcode::call) return;
  for (const Operand& operand : module.operands_of(instruction)) add_named(module, operand, to);
}

}  // namespace

Callees callees_of(const Module& module, const Function& function) {
  FunctionList named;
  bool indirect = false;
  for (const Statement& statement : function.statements) {
    if (statement.kind != StatementKind::Instruction) continue;
    const Instruction& instruction = module.instructions[statement.index];
    if (module.spelling(instruction).opcode != isa::Opcode::call) continue;
    bool direct = false;
    for (const Operand& operand : module.operands_of(instruction)) {
      if (operand.kind != OperandKind::Name) continue;
      const Function* callee = module.function(operand.text);
      direct |= callee != nullptr;
      named.add(callee);
    }
    indirect |= !direct;
  }
  return {std::move(named.out), indirect};
}

std::vector<const Function*> address_taken(const Module& module) {
  FunctionList taken;
  for (const Instruction& instruction : module.instructions)
    add_addresses(module, instruction, taken);
  for (const Variable& variable : module.variables)
    if (variable.initialiser) add_named(module, module.operands[*variable.initialiser], taken);
  return std::move(taken.out);
}

bool takes_address(const Module& module, const Function& function) {
  return std::ranges::any_of(function.statements, [&](const Statement& statement) {
    FunctionList taken;
    if (statement.kind == StatementKind::Instruction)
      add_addresses(module, module.instructions[statement.index], taken);
    return !taken.out.empty();
  });
}

}  // namespace tartan::inline TARTAN_ABI::ptx
