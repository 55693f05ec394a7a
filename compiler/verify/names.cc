// SPDX-License-Identifier: Apache-2.0
// Every name that an instruction uses is declared, and no declaration is given twice.
#include <fmt/format.h>

#include <unordered_map>

#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

class NameChecker {
 public:
  NameChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    view_.scopes.restart();
    labels();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  void labels() {
    std::unordered_map<std::string_view, std::uint32_t> seen;
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind != ptx::StatementKind::Label) continue;
      const ptx::Label& label = context_.module.labels[statement.index];
      const auto [first, fresh] = seen.try_emplace(label.name, label.offset);
      if (!fresh)
        context_.report("redefined-name"_rule, label.name,
                        fmt::format("label {} is already defined on line {}", label.name,
                                    context_.module.source->line(first->second)));
    }
  }

  void instruction(const ptx::Instruction& instruction) {
    if (!instruction.guard.empty()) name(instruction.guard, true, false);
    const bool branch = instruction.opcode.starts_with("bra");
    const bool call = instruction.opcode.starts_with("call");
    for (const ptx::Operand& operand : context_.module.operands_of(instruction))
      this->operand(operand, branch, call);
  }

  void operand(const ptx::Operand& operand, bool branch, bool call) {
    if (operand.kind == ptx::OperandKind::Name) return name(operand.text, false, branch, call);
    for (const ptx::Operand& child : context_.module.children(operand))
      this->operand(child, false, call);
  }

  void name(std::string_view text, bool guard, bool branch, bool call = false) {
    const std::string_view base = base_name(text);
    if (base == "_") return;
    if (call && text.starts_with("llvm.")) {
      context_.report("llvm-leftover"_rule, text,
                      fmt::format("call of {}: the back end has no such intrinsic", text));
      return;
    }
    const NameInfo found = view_.scopes.find(base);
    if (found.kind == NameKind::Unknown) {
      if (branch)
        context_.report("undeclared-label"_rule, text,
                        fmt::format("label {} is not defined in {}", base, view_.function.name));
      else
        context_.report("undeclared-register"_rule, text, fmt::format("{} is not declared", base));
    } else if (guard && found.type != Type::pred) {
      context_.report("register-type"_rule, text,
                      fmt::format("a guard takes a register of type .pred, {} is .{}", base,
                                  tartan::name(found.type)));
    }
  }

  Context& context_;
  const FunctionView& view_;
};

}  // namespace

void check_names(Context& context, const FunctionView& view) { NameChecker(context, view).run(); }

}  // namespace tartan::verify
