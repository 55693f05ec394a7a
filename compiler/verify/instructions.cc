// SPDX-License-Identifier: Apache-2.0
// Every instruction against the table: its opcode, qualifiers, types, target and version, and the
// number, kinds, types and ranges of its operands. Matrix instructions have a pass of their own
// (matrix.cc); only their names are looked at here.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/verify/operand_matcher.h"
#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

using isa::Opcode;
using isa::Signature;
using isa::Spelling;

class InstructionChecker {
 public:
  InstructionChecker(Context& context, const FunctionView& view)
      : context_(context), view_(view), names_(context, view), operands_(context.module, names_) {}

  void run() {
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind == ptx::StatementKind::Instruction)
        check(context_.module.instructions[statement.index]);
    }
  }

 private:
  void check(const ptx::Instruction& instruction) {
    const Spelling& spelling = context_.module.spelling(instruction);
    const bool declared = names_.resolve(instruction, spelling.opcode);
    if (isa::is_matrix(spelling.opcode)) return;
    if (spelling.opcode == Opcode::none) return unknown_opcode(instruction);
    if (isa::signatures(spelling.opcode).empty()) return;
    if (spelling.signatures.empty()) return unknown_form(instruction, spelling);
    if (!declared) return;
    const Signature* row = choose(instruction, spelling);
    if (!row) return wrong_operands(instruction, spelling);
    if (const Since* since = isa::missing(*row, spelling, context_.target))
      unsupported(instruction, spelling, *since);
  }

  // The signature whose operands these are; of several, one that the target has.
  const Signature* choose(const ptx::Instruction& instruction, const Spelling& spelling) const {
    const Signature* out = nullptr;
    for (const Signature* each : spelling.signatures) {
      if (!operands_.match(instruction, spelling, *each)) continue;
      if (!isa::missing(*each, spelling, context_.target)) return each;
      if (!out) out = each;
    }
    return out;
  }

  void unknown_opcode(const ptx::Instruction& instruction) {
    const std::string_view nearest = isa::nearest_opcode(instruction.opcode);
    context_.report(
        "unknown-instruction"_rule, instruction.opcode,
        fmt::format("there is no instruction {}{}", instruction.opcode,
                    nearest.empty() ? "" : fmt::format("; the nearest is {}", nearest)));
  }

  void unknown_form(const ptx::Instruction& instruction, const Spelling& spelling) {
    const bool word = !spelling.unknown.empty() || !spelling.repeated.empty();
    context_.report(word ? "unknown-qualifier"_rule : "unknown-form"_rule, instruction.opcode,
                    isa::mismatch(spelling));
  }

  // Speaks of the signature that takes the most of the operands.
  void wrong_operands(const ptx::Instruction& instruction, const Spelling& spelling) {
    OperandMismatch worst;
    const Signature* nearest = nullptr;
    for (const Signature* each : spelling.signatures) {
      OperandMismatch found = operands_.mismatch(instruction, spelling, *each);
      if (!nearest || found.matched > worst.matched) worst = std::move(found), nearest = each;
    }
    context_.report(*worst.rule, worst.at.empty() ? instruction.opcode : worst.at,
                    fmt::format("{} {}: {}", spelling.text, worst.message, isa::syntax(*nearest)));
  }

  void unsupported(const ptx::Instruction& instruction, const Spelling& spelling,
                   const Since& since) {
    const Target& target = context_.target;
    if (target.arch.sm == 0) return;
    if (!since.has(target.arch)) {
      const std::string until = since.last_sm ? fmt::format(" to sm_{}", since.last_sm) : "";
      context_.report("target-support"_rule, instruction.opcode,
                      fmt::format("{} requires {}{}{}, the target is {}", spelling.text,
                                  isa::oldest(since).text(), until,
                                  since.reach == Reach::Onward ? "" : " with suffix a or f",
                                  target.arch.text()));
    } else if (target.ptx < since.ptx) {
      context_.report("version-support"_rule, instruction.opcode,
                      fmt::format("{} requires PTX {}, the module states {}", spelling.text,
                                  since.ptx.text(), target.ptx.text()));
    } else {
      context_.report("version-support"_rule, instruction.opcode,
                      fmt::format("{} exists up to PTX {}, the module states {}", spelling.text,
                                  since.last.text(), target.ptx.text()));
    }
  }

  Context& context_;
  const FunctionView& view_;
  OperandNames names_;
  OperandMatcher operands_;
};

}  // namespace

void check_instructions(Context& context, const FunctionView& view) {
  InstructionChecker(context, view).run();
}

}  // namespace tartan::verify
