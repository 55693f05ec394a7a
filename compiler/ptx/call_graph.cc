// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/call_graph.h"

#include <algorithm>
#include <unordered_set>

namespace tartan::TARTAN_ABI::ptx {
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

void add_named(const FunctionNames& names, const Operand& operand, FunctionList& to) {
  for (const Operand& child : names.module().children(operand)) add_named(names, child, to);
  if (operand.kind == OperandKind::Name) to.add(names.find(operand.text));
}

// A call names its callee; every other instruction that names a function takes its address.
void add_addresses(const FunctionNames& names, const Instruction& instruction, FunctionList& to) {
  const Module& module = names.module();
  if (module.spelling(instruction).opcode == isa::Opcode::call) return;
  for (const Operand& operand : module.operands_of(instruction)) add_named(names, operand, to);
}

// The names of a call's operands: the callee and, of an indirect call, a label, which may have a
// function's name.
std::vector<std::string_view> names_of_call(const Module& module, const Instruction& call) {
  std::vector<std::string_view> names;
  for (const Operand& operand : module.operands_of(call))
    if (operand.kind == OperandKind::Name) names.push_back(operand.text);
  return names;
}

}  // namespace

FunctionNames::FunctionNames(const Module& module) : module_(&module) {
  for (const Directive& each : module.directives)
    if (const auto said = module.operands_of(each); each.name == ".alias" && said.size() == 2)
      aliases_.try_emplace(said[0].text, said[1].text);
}

const Function* FunctionNames::find(std::string_view name) const {
  const auto alias = aliases_.find(name);
  return module_->function(alias == aliases_.end() ? name : alias->second);
}

Callees callees_of(const FunctionNames& names, const Function& function) {
  const Module& module = names.module();
  FunctionList named;
  bool indirect = false;
  for (const Statement& statement : function.statements) {
    if (statement.kind != StatementKind::Instruction) continue;
    const Instruction& instruction = module.instructions[statement.index];
    if (module.spelling(instruction).opcode != isa::Opcode::call) continue;
    const auto said = names_of_call(module, instruction);
    const Function* const callee = said.size() == 1 ? names.find(said[0]) : nullptr;
    named.add(callee);
    indirect |= !callee;
  }
  return {std::move(named.out), indirect};
}

std::vector<const Function*> address_taken(const FunctionNames& names) {
  const Module& module = names.module();
  FunctionList taken;
  for (const Instruction& instruction : module.instructions)
    add_addresses(names, instruction, taken);
  for (const Variable& variable : module.variables)
    if (variable.initialiser) add_named(names, module.operands[*variable.initialiser], taken);
  return std::move(taken.out);
}

bool takes_address(const FunctionNames& names, const Function& function) {
  const Module& module = names.module();
  return std::ranges::any_of(function.statements, [&](const Statement& statement) {
    FunctionList taken;
    if (statement.kind == StatementKind::Instruction)
      add_addresses(names, module.instructions[statement.index], taken);
    return !taken.out.empty();
  });
}

const Callees& Reach::callees(const Function& function) {
  const auto [at, is_new] = callees_.try_emplace(&function);
  Callees& out = at->second;
  if (!is_new) return out;
  out = callees_of(names_, function);
  out.indirect |= and_addresses_ && takes_address(names_, function);
  return out;
}

std::vector<const Function*> Reach::from(const Function& start) {
  std::vector<const Function*> out{&start};
  std::unordered_set<const Function*> known{&start};
  bool all_taken = false;
  const auto add = [&](const std::vector<const Function*>& functions) {
    for (const Function* each : functions)
      if (known.insert(each).second) out.push_back(each);
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Callees& called = callees(*out[i]);
    add(called.named);
    if (!called.indirect || all_taken) continue;
    if (!taken_) taken_ = address_taken(names_);
    add(*taken_);
    all_taken = true;
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::ptx
