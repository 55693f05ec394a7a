// SPDX-License-Identifier: Apache-2.0
// Every name that an instruction uses is declared.
#include <fmt/format.h>

#include <unordered_set>

#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

class NameChecker {
 public:
  NameChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {
    for (const ptx::Statement& statement : view.function.statements)
      if (statement.kind == ptx::StatementKind::Label)
        labels_.insert(context.module.labels[statement.index].name);
  }

  void run() {
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Instruction)
        instruction(context_.module.instructions[statement.index]);
    }
  }

 private:
  void instruction(const ptx::Instruction& instruction) {
    if (!instruction.guard.empty()) name(instruction.guard, true);
    const bool branch = instruction.opcode.starts_with("bra");
    const bool call = instruction.opcode.starts_with("call");
    for (const ptx::Operand& operand : context_.module.operands_of(instruction))
      this->operand(operand, branch, call);
  }

  void operand(const ptx::Operand& operand, bool branch, bool call) {
    if (operand.kind == ptx::OperandKind::Name)
      return branch ? label(operand.text) : name(operand.text, false, call);
    for (const ptx::Operand& child : context_.module.children(operand))
      this->operand(child, false, call);
  }

  void label(std::string_view text) {
    if (view_.scopes.label(text)) return;
    context_.report(
        "undeclared-label"_rule, text,
        fmt::format("label {} is {} in {}{}", text,
                    labels_.contains(text) ? "defined" : "not defined", view_.function.name,
                    labels_.contains(text) ? ", but in another block: no branch leads "
                                             "into one"
                                           : ""));
  }

  void name(std::string_view text, bool guard, bool call = false) {
    const std::string_view base = base_name(text);
    if (base == "_") return;
    if (call && text.starts_with("llvm.")) {
      context_.report("llvm-leftover"_rule, text,
                      fmt::format("call of {}: the back end has no such intrinsic", text));
      return;
    }
    const NameInfo found = view_.scopes.find(base);
    if (found.kind == NameKind::Unknown) {
      context_.report("undeclared-register"_rule, text,
                      fmt::format("{} is not declared{}", base, unwritable(base)));
    } else if (guard && found.type != Type::pred) {
      context_.report("register-type"_rule, text,
                      fmt::format("a guard takes a register of type .pred, {} is .{}", base,
                                  tartan::name(found.type)));
    }
  }

  // Why the name is none of a row `a1<4>` that the function has.
  std::string unwritable(std::string_view text) const {
    const auto numbered = ptx::numbered_name(text);
    if (!numbered) return {};
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind != ptx::StatementKind::Registers) continue;
      const ptx::Registers& row = context_.module.registers[statement.index];
      if (!row.numbered || !text.starts_with(row.name) || row.name.size() <= numbered->row.size() ||
          row.name.size() == text.size())
        continue;
      return fmt::format(
          ": all digits at its end are its number, and the name of {}<{}> (line {}) ends in one; "
          "{}_<{}> would do",
          row.name, row.count, context_.module.source->line(row.offset), row.name, row.count);
    }
    return {};
  }

  Context& context_;
  const FunctionView& view_;
  std::unordered_set<std::string_view> labels_;  // of all blocks
};

}  // namespace

void check_names(Context& context, const FunctionView& view) { NameChecker(context, view).run(); }

}  // namespace tartan::verify
