// SPDX-License-Identifier: Apache-2.0
// .extern names that the module does not define. The text is assembled and loaded alone, so that no
// other file can define them.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using ptx::Operand;
using ptx::Variable;

// What the assembler and the driver define.
constexpr std::string_view system_functions[] = {"vprintf", "malloc", "free", "__assertfail"};
constexpr std::string_view system_prefix = "__cuda_syscall";

bool is_system(std::string_view name) {
  return name.starts_with(system_prefix) ||
         std::ranges::find(system_functions, name) != std::end(system_functions);
}

bool is_unresolved(const ptx::Module& module, const ptx::Function& function) {
  if (function.entry || function.linkage != ".extern" || is_system(function.name)) return false;
  const ptx::Function* best = module.function(function.name);
  return !best || !best->body;
}

class ExternalVariables {
 public:
  explicit ExternalVariables(Context& context) : context_(context), module_(context.module) {}

  void run() {
    for (const ptx::Item& item : module_.items)
      if (item.kind == ptx::ItemKind::Variable) see(module_.variables[item.index]);
    for (const Variable* each : undefined_) report(*each);
  }

 private:
  void see(const Variable& variable) {
    if (variable.linkage != ".extern") {
      defined_.insert(variable.name);
    } else if (!(variable.space == StateSpace::shared && variable.unsized) &&
               !defined_.contains(variable.name) && named_.insert(variable.name).second) {
      undefined_.push_back(&variable);
    }
  }

  // The assembler ignores .extern also where the definition follows.
  void report(const Variable& variable) {
    const bool follows = defined_.contains(variable.name);
    if (variable.unsized && !follows)
      context_.report("unresolved-symbol"_rule, variable.name,
                      fmt::format("unresolved .extern variable {} of unknown size: expected its "
                                  "definition in this module, or a size",
                                  variable.name));
    else
      context_.report(
          "undefined-extern"_rule, variable.name,
          fmt::format(".extern variable {} {}: the assembler ignores .extern and {}", variable.name,
                      follows ? "is defined only below" : "is not defined in this module",
                      follows ? "takes that definition"
                              : "makes a variable of its own, which holds zeros"));
  }

  Context& context_;
  const ptx::Module& module_;
  NameSet defined_, named_;
  std::vector<const Variable*> undefined_;
};

class ExternalCalls {
 public:
  ExternalCalls(Context& context, const FunctionView& view)
      : context_(context), module_(context.module), view_(view) {}

  void run() {
    if (context_.undefined_functions.empty()) return;
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      for (const Operand& each : module_.operands_of(module_.instructions[statement.index]))
        operand(each);
    }
  }

 private:
  void operand(const Operand& operand) {
    if (operand.kind != ptx::OperandKind::Name ||
        !context_.undefined_functions.contains(operand.text) ||
        view_.scopes.find(operand.text).kind != NameKind::Function ||
        !reported_.insert(operand.text).second)
      return;
    context_.report("undefined-extern"_rule, operand.text,
                    fmt::format(".extern function {} is not defined in this module, which a driver "
                                "therefore does not load alone",
                                operand.text));
  }

  Context& context_;
  const ptx::Module& module_;
  const FunctionView& view_;
  NameSet reported_;
};

}  // namespace

void check_externals(Context& context) {
  for (const ptx::Function& each : context.module.functions)
    if (is_unresolved(context.module, each)) context.undefined_functions.insert(each.name);
  ExternalVariables(context).run();
}

void check_external_calls(Context& context, const FunctionView& view) {
  ExternalCalls(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
