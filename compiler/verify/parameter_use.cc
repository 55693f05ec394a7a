// SPDX-License-Identifier: Apache-2.0
// A function must read its parameters and write its results; a .param variable of the body is read
// after a call that writes it.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using isa::operator""_q;
using ptx::Operand;
using ptx::OperandKind;

class ParameterChecker {
 public:
  ParameterChecker(Context& context, const FunctionView& view)
      : context_(context), module_(context.module), view_(view) {
    for (const std::uint32_t each : view.function.results)
      results_.insert(&module_.variables[each]);
  }

  void run() {
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::Instruction& instruction = module_.instructions[statement.index];
      const isa::Spelling& spelling = module_.spelling(instruction);
      if (spelling.opcode == Opcode::call) call(instruction);
      const bool param = spelling.has("param"_q) || spelling.has("param::func"_q);
      if (param && spelling.opcode == Opcode::ld) load(instruction);
      if (param && spelling.opcode == Opcode::st) store(instruction);
    }
  }

 private:
  void call(const ptx::Instruction& instruction) {
    const auto operands = module_.operands_of(instruction);
    if (operands.empty() || operands[0].kind != OperandKind::List) return;
    for (const Operand& each : module_.children(operands[0]))
      if (each.kind == OperandKind::Name) written_.insert(key(each.text));
  }

  void load(const ptx::Instruction& instruction) {
    if (instruction.count != 2) return;
    const Operand* name = base(module_.operands_of(instruction)[1]);
    if (!name) return;
    const NameInfo found = view_.scopes.find(name->text);
    if (results_.contains(found.variable))
      context_.report("operand-kind"_rule, name->text,
                      fmt::format("{} is a result of {}: it cannot be read; write it with st.param",
                                  name->text, view_.function.name));
    else if (found.local_param && !written_.contains(key(name->text)))
      context_.report(
          "unwritten-parameter"_rule, name->text,
          fmt::format(
              "{} is read but never written: expected a call before it that has {} as a result",
              name->text, name->text));
    else unguarded(instruction, found, "ld.param");
  }

  void store(const ptx::Instruction& instruction) {
    if (instruction.count != 2) return;
    const Operand* name = base(module_.operands_of(instruction)[0]);
    if (!name) return;
    const NameInfo found = view_.scopes.find(name->text);
    if (found.space == StateSpace::param && !found.local_param && !found.constant &&
        found.variable && !results_.contains(found.variable))
      context_.report("operand-kind"_rule, name->text,
                      fmt::format("{} is a parameter of {}: it cannot be written; expected a "
                                  "result or a .param variable of the body",
                                  name->text, view_.function.name));
    else unguarded(instruction, found, "st.param");
  }

  // What a call passes and returns is in registers: the copy belongs to the call.
  void unguarded(const ptx::Instruction& instruction, const NameInfo& found,
                 std::string_view mnemonic) {
    if (!found.local_param || instruction.guard.empty()) return;
    context_.report("operand-kind"_rule, instruction.guard,
                    fmt::format("{} of {}, a .param variable of the body, cannot have a guard: "
                                "expected {} without @{}{}; branch around both it and the call",
                                mnemonic, found.variable->name, mnemonic,
                                instruction.guard_negated ? "!" : "", instruction.guard));
  }

  const Operand* base(const Operand& address) const {
    if (address.kind != OperandKind::Address) return nullptr;
    const Operand& first = module_.children(address)[0];
    return first.kind == OperandKind::Name ? &first : nullptr;
  }

  // The variable that the name refers to: several blocks may declare it.
  std::pair<std::string_view, const ptx::Variable*> key(std::string_view name) const {
    return {name, view_.scopes.find(name).variable};
  }

  struct Hash {
    std::size_t operator()(const std::pair<std::string_view, const ptx::Variable*>& key) const {
      return std::hash<std::string_view>()(key.first) ^
             std::hash<const ptx::Variable*>()(key.second);
    }
  };

  Context& context_;
  const ptx::Module& module_;
  const FunctionView& view_;
  std::unordered_set<const ptx::Variable*> results_;
  std::unordered_set<std::pair<std::string_view, const ptx::Variable*>, Hash> written_;
};

}  // namespace

void check_parameter_use(Context& context, const FunctionView& view) {
  ParameterChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
