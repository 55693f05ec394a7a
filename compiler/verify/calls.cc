// SPDX-License-Identifier: Apache-2.0
// Checks calls against their callees, and the tables of branches and indirect calls:
// .branchtargets, .calltargets, .callprototype (PTX ISA 9.0, 7.1, 9.7.12 and 11.3).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ptx/declarations.h"
#include "compiler/verify/parameters.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using ptx::Operand;
using ptx::OperandKind;

// The parts of `call (results), callee, (arguments), prototype`.
struct Call {
  const ptx::Instruction& instruction;
  const Operand* results = nullptr;
  const Operand* callee = nullptr;
  const Operand* arguments = nullptr;
  const Operand* prototype = nullptr;
};

Call parts_of(const ptx::Module& module, const ptx::Instruction& instruction) {
  Call out{instruction};
  for (const Operand& each : module.operands_of(instruction)) {
    const bool list = each.kind == OperandKind::List;
    if (list && !out.callee) out.results = &each;
    else if (list) out.arguments = &each;
    else if (!out.callee) out.callee = &each;
    else out.prototype = &each;
  }
  return out;
}

class CallChecker {
 public:
  CallChecker(Context& context, const FunctionView& view)
      : context_(context), module_(context.module), view_(view) {}

  void run() {
    collect_tables();
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Instruction)
        check(module_.instructions[statement.index]);
      else if (statement.kind == ptx::StatementKind::Directive)
        table(module_.directives[statement.index]);
    }
  }

 private:
  struct Table {
    const ptx::Directive* directive;
    std::uint32_t offset;
  };

  void collect_tables() {
    const ptx::Statement* before = nullptr;
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind == ptx::StatementKind::Directive && before &&
          before->kind == ptx::StatementKind::Label) {
        const ptx::Directive& directive = module_.directives[statement.index];
        if (directive.prototype || directive.name.ends_with("targets"))
          tables_.emplace(before->index, Table{&directive, module_.labels[before->index].offset});
      }
      before = &statement;
    }
  }

  // The names that a table lists.
  void table(const ptx::Directive& directive) {
    for (const Operand& each : module_.operands_of(directive)) {
      if (directive.name == ".branchtargets" && !view_.scopes.label(each.text))
        context_.report("undeclared-label"_rule, each.text,
                        fmt::format("{} is not a label: .branchtargets expects labels of {}",
                                    each.text, view_.function.name));
      if (directive.name == ".calltargets" && !function(each))
        context_.report(
            "call-callee"_rule, each.text,
            fmt::format("{} is not a function: .calltargets expects functions declared before it",
                        each.text));
    }
  }

  void check(const ptx::Instruction& instruction) {
    const Opcode opcode = module_.spelling(instruction).opcode;
    if (opcode == Opcode::bra) return branch(instruction);
    if (opcode == Opcode::brx_idx) return indexed_branch(instruction);
    if (opcode != Opcode::call || module_.spelling(instruction).signatures.empty()) return;
    const Call call = parts_of(module_, instruction);
    if (!call.callee || call.callee->kind != OperandKind::Name) return;
    if (call.callee->value) {
      context_.report("call-callee"_rule, call.callee->text,
                      fmt::format("a constant is added to {}, which is called: expected a function "
                                  "or a register alone",
                                  call.callee->text));
      return;
    }
    const NameInfo callee = view_.scopes.find(base_name(call.callee->text));
    if (callee.kind == NameKind::Function) return direct(call);
    if (callee.kind == NameKind::Register) return indirect(call, callee);
  }

  // The directive after the label, if it precedes the instruction.
  const ptx::Directive* table_of(const Operand& name, const ptx::Instruction& instruction) const {
    const auto label = view_.scopes.label(name.text);
    const auto found = label ? tables_.find(*label) : tables_.end();
    const bool before = found != tables_.end() && found->second.offset < instruction.offset;
    return before ? found->second.directive : nullptr;
  }

  void branch(const ptx::Instruction& instruction) {
    if (tables_.empty() || instruction.count != 1) return;
    const Operand& to = module_.operands_of(instruction)[0];
    const ptx::Directive* table = table_of(to, instruction);
    if (table)
      context_.report("branch-table"_rule, to.text,
                      fmt::format("bra to {}: expected the label of an instruction, found the "
                                  "label of {}; only brx.idx accepts .branchtargets",
                                  to.text, table->name));
  }

  void indexed_branch(const ptx::Instruction& instruction) {
    if (instruction.count != 2) return;
    const Operand& to = module_.operands_of(instruction)[1];
    if (to.kind != OperandKind::Name || !view_.scopes.label(to.text)) return;
    const ptx::Directive* table = table_of(to, instruction);
    if (table && table->name == ".branchtargets") return;
    context_.report("branch-table"_rule, to.text,
                    fmt::format("brx.idx without targets: expected a label of .branchtargets in "
                                "front of it, found {}{}",
                                to.text, table ? fmt::format(", a label of {}", table->name) : ""));
  }

  const ptx::Function* function(const Operand& name) const {
    const NameInfo found = view_.scopes.find(name.text);
    const bool known = found.kind == NameKind::Function && found.offset < name.offset;
    return known ? module_.function(name.text) : nullptr;
  }

  void direct(const Call& call) {
    const ptx::Function* callee = function(*call.callee);
    if (!callee) return;  // reported already
    if (callee->entry)
      return callee_error(
          call, fmt::format("{} is a kernel: expected a function (.func)", call.callee->text));
    if (call.prototype)
      return callee_error(
          call, fmt::format("the call of {} names the prototype {}: only indirect calls have one",
                            call.callee->text, call.prototype->text));
    match(call, *callee);
  }

  void indirect(const Call& call, const NameInfo& callee) {
    const TypeInfo& type = info(callee.type);
    if (type.floating || type.type == Type::pred) return;  // reported already
    if (type.bits < 32 || type.bits > 64 || callee.vector > 1)
      return callee_error(call, fmt::format("{} cannot hold the address of a function: expected a "
                                            "register of type .b64, found .{}",
                                            call.callee->text, type.name));
    if (!call.prototype)
      return callee_error(call,
                          fmt::format("the indirect call through {} has no signature: expected a "
                                      "label of .callprototype or .calltargets after it",
                                      call.callee->text));
    const ptx::Directive* table = table_of(*call.prototype, call.instruction);
    if (table && table->prototype)
      return void(match(call, FunctionType(module_.prototypes[*table->prototype])));
    if (table && table->name == ".calltargets") {
      for (const ptx::Function* target : targets_of(*table))
        if (!match(call, *target)) return;
      return;
    }
    if (variable_table(call)) return;
    callee_error(call, fmt::format("{} has no signature: expected a label of .callprototype or "
                                   ".calltargets in front of the call{}",
                                   call.prototype->text,
                                   table ? fmt::format(", found one of {}", table->name) : ""));
  }

  // Of the functions that a table lists, one for each signature: a call that fits it fits the
  // others. Of very many signatures, the first.
  const std::vector<const ptx::Function*>& targets_of(const ptx::Directive& table) {
    std::vector<const ptx::Function*> all;
    const auto [known, fresh] = targets_.try_emplace(&table);
    if (!fresh) return known->second;
    for (const Operand& each : module_.operands_of(table))
      if (const ptx::Function* target = function(each)) all.push_back(target);
    return known->second = with_distinct_signatures(all);
  }

  std::vector<const ptx::Function*> with_distinct_signatures(
      const std::vector<const ptx::Function*>& functions) const {
    constexpr std::size_t most = 256;
    std::vector<const ptx::Function*> out;
    std::unordered_set<std::string> known;
    for (const ptx::Function* each : functions) {
      if (out.size() == most) break;
      std::string text;
      const auto add = [&](const std::vector<std::uint32_t>& variables) {
        for (const std::uint32_t index : variables) {
          const ptx::Variable& formal = module_.variables[index];
          text += fmt::format("{}{},", describe(formal), formal.unsized ? "[]" : "");
        }
        text += '/';
      };
      add(each->results), add(each->params);
      if (known.insert(std::move(text)).second) out.push_back(each);
    }
    return out;
  }

  // An array initialised with function addresses. False: it is not.
  bool variable_table(const Call& call) {
    const NameInfo found = view_.scopes.find(call.prototype->text);
    if (found.kind != NameKind::Variable || !found.variable || !found.variable->initialiser)
      return false;
    const auto [known, fresh] = targets_.try_emplace(found.variable);
    if (fresh) {
      std::vector<const ptx::Function*> all;
      for (const Operand& each : module_.children(module_.operands[*found.variable->initialiser]))
        if (each.kind == OperandKind::Name)
          if (const ptx::Function* target = module_.function(each.text)) all.push_back(target);
      known->second = with_distinct_signatures(all);
    }
    for (const ptx::Function* target : known->second)
      if (!match(call, *target)) break;
    return !known->second.empty();
  }

  void callee_error(const Call& call, std::string message) {
    context_.report("call-callee"_rule, call.callee->text, std::move(message));
  }

  // Where the numbers differ, the callee is not read: it may be much longer than its call.
  bool match(const Call& call, const ptx::Function& callee) {
    const std::size_t given = call.arguments ? call.arguments->count : 0,
                      expected = callee.params.size();
    const bool open = expected && module_.variables[callee.params.back()].unsized;
    if (!open && given != expected &&
        (call.results ? call.results->count : 0) == callee.results.size())
      return number(call, "argument", expected, given);
    return match(call, FunctionType(module_, callee));
  }

  bool match(const Call& call, const FunctionType& signature) {
    const auto results =
        call.results ? module_.children(*call.results) : std::span<const Operand>();
    const auto arguments =
        call.arguments ? module_.children(*call.arguments) : std::span<const Operand>();
    // The last parameter of a variadic function is name[]: it may be omitted.
    const bool open = !signature.params.empty() && signature.params.back()->unsized;
    const bool left_out = open && call.arguments && arguments.size() + 1 == signature.params.size();
    if (results.size() != signature.results.size())
      return number(call, "result", signature.results.size(), results.size());
    if (arguments.size() != signature.params.size() && !left_out)
      return number(call, "argument", signature.params.size(), arguments.size());
    bool good = true;
    for (std::size_t i = 0; i < results.size(); ++i)
      good &= value(call, *signature.results[i], results[i], true);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      good &= value(call, *signature.params[i], arguments[i], false);
    return good;
  }

  bool number(const Call& call, std::string_view what, std::size_t expected, std::size_t found) {
    context_.report("call-signature"_rule, call.callee->text,
                    fmt::format("the call of {} has the wrong number of {}s: expected {}, found {}",
                                call.callee->text, what, expected, found));
    return false;
  }

  bool value(const Call& call, const ptx::Variable& formal, const Operand& operand, bool result) {
    const std::string found = mismatch(formal, operand, result);
    if (found.empty()) return true;
    context_.report(
        "call-signature"_rule, operand.text.empty() ? call.callee->text : operand.text,
        fmt::format("{} {} of {}: expected {}, found {}", result ? "result" : "parameter",
                    formal.name, call.callee->text, describe(formal), found));
    return false;
  }

  // The mismatch between an operand and `formal`; empty: it fits.
  std::string mismatch(const ptx::Variable& formal, const Operand& operand, bool result) const {
    switch (operand.kind) {
      case OperandKind::Integer:
      case OperandKind::Float:
        return !result && takes_constant(formal, operand.kind == OperandKind::Float)
                   ? small(formal)
                   : fmt::format("the constant {}", operand.text);
      case OperandKind::Name: return name_mismatch(formal, operand, result);
      default: return "another kind of operand";
    }
  }

  std::string name_mismatch(const ptx::Variable& formal, const Operand& operand,
                            bool result) const {
    if (operand.text == "_") return result ? "" : "_, which holds no value";
    if (operand.text == "WARP_SZ" && !result && takes_constant(formal, false)) return {};
    if (base_name(operand.text).size() != operand.text.size())
      return fmt::format("{}, an element", operand.text);
    const NameInfo found = view_.scopes.find(operand.text);
    if (found.kind == NameKind::Unknown) return {};  // reported already
    if (operand.value || (found.kind != NameKind::Register && found.kind != NameKind::Variable))
      return fmt::format("{}, neither a register nor a .param variable", operand.text);
    ptx::Variable actual;
    if (found.kind == NameKind::Register) {
      actual.space = StateSpace::reg;
      actual.type = found.type;
      actual.vector = found.vector;
    } else if (found.local_param && found.variable) {
      actual = *found.variable;
    } else if (found.space == StateSpace::param) {
      return fmt::format("{}, a parameter of {} itself; copy it to a .param variable", operand.text,
                         view_.function.name);
    } else {
      return fmt::format("{} in .{} memory", operand.text, name(found.space));
    }
    if (!same_layout(formal, actual)) return fmt::format("{}, {}", operand.text, describe(actual));
    return small(formal);
  }

  std::string small(const ptx::Variable& formal) const {
    return unsupported(formal) && !context_.passes_registers
               ? fmt::format("a call that passes .{}, which is unsupported; use .b32",
                             tartan::name(formal.type))
               : std::string();
  }

  Context& context_;
  const ptx::Module& module_;
  const FunctionView& view_;
  std::unordered_map<std::uint32_t, Table> tables_;  // by label
  // Of directives and variables that list functions.
  std::unordered_map<const void*, std::vector<const ptx::Function*>> targets_;
};

}  // namespace

void check_calls(Context& context, const FunctionView& view) { CallChecker(context, view).run(); }

}  // namespace tartan::TARTAN_ABI::verify
