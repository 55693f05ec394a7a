// SPDX-License-Identifier: Apache-2.0
// Checks every instruction against the table: opcode, qualifiers, types, target and version, and
// the number, kinds, types and ranges of its operands. matrix.cc checks matrix instructions; only
// their names are checked here.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "compiler/isa/special_registers.h"
#include "compiler/verify/operand_matcher.h"
#include "compiler/verify/pass.h"

namespace tartan::inline TARTAN_ABI::verify {
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
    if (!accepts(instruction)) view_.refused.push_back(&instruction);
  }

  // Reports what is wrong, else returns true.
  bool accepts(const ptx::Instruction& instruction) {
    const Spelling& spelling = context_.module.spelling(instruction);
    const bool declared = names_.resolve(instruction, spelling.opcode);
    if (isa::is_matrix(spelling.opcode)) return declared;
    if (spelling.opcode == Opcode::none) return unknown_opcode(instruction), false;
    if (spelling.signatures.empty()) return unknown_form(instruction, spelling), false;
    if (!declared) return false;
    const Signature* row = choose(instruction, spelling);
    if (!row) return wrong_operands(instruction, spelling), false;
    const Since* since = operands_.missing(instruction, spelling, *row, context_.target);
    if (since) unsupported(instruction.opcode, spelling.text, *since);
    else if (row->since.last < newest_version) deprecated(instruction, spelling, row->since);
    for (const ptx::Operand& operand : context_.module.operands_of(instruction))
      check_special(operand);
    return !since;
  }

  // Checks that the target has a special register.
  void check_special(const ptx::Operand& operand) {
    if (operand.kind != ptx::OperandKind::Name || names_.of(operand).kind != NameKind::Special)
      return;
    const isa::SpecialRegisterRow* special = isa::find_special_register(base_name(operand.text));
    if (special && !special->since.has(context_.target))
      unsupported(operand.text, operand.text, special->since);
  }

  // The signature that matches the operands; of several, one that the target has.
  const Signature* choose(const ptx::Instruction& instruction, const Spelling& spelling) const {
    const Signature* out = nullptr;
    for (const Signature* each : spelling.signatures) {
      if (!operands_.match(instruction, spelling, *each)) continue;
      if (!operands_.missing(instruction, spelling, *each, context_.target)) return each;
      if (!out) out = each;
    }
    return out;
  }

  void unknown_opcode(const ptx::Instruction& instruction) {
    const std::string_view nearest = isa::nearest_opcode(instruction.opcode);
    context_.report(
        "unknown-instruction"_rule, instruction.opcode,
        fmt::format("unknown instruction {}{}", instruction.opcode,
                    nearest.empty() ? "" : fmt::format("; the nearest is {}", nearest)));
  }

  void unknown_form(const ptx::Instruction& instruction, const Spelling& spelling) {
    const bool word = !spelling.unknown.empty() || !spelling.repeated.empty();
    context_.report(word ? "unknown-qualifier"_rule : "unknown-form"_rule, instruction.opcode,
                    isa::mismatch(spelling));
  }

  // Reports the mismatch with the signature that accepts the most operands.
  void wrong_operands(const ptx::Instruction& instruction, const Spelling& spelling) {
    const Signature* nearest = spelling.signatures[0];
    OperandMismatch worst = operands_.mismatch(instruction, spelling, *nearest);
    for (const Signature* each : std::span(spelling.signatures).subspan(1)) {
      OperandMismatch found = operands_.mismatch(instruction, spelling, *each);
      if (found.matched > worst.matched) worst = std::move(found), nearest = each;
    }
    context_.report(*worst.rule, worst.at.empty() ? instruction.opcode : worst.at,
                    fmt::format("{}: {}; the nearest form is {}", spelling.text, worst.message,
                                isa::syntax(*nearest)));
  }

  void unsupported(std::string_view at, std::string_view what, const Since& since) {
    const Target& target = context_.target;
    if (target.arch.sm == 0) return;
    if (!since.has(target.arch)) {
      const std::string until = since.last_sm ? fmt::format(" to sm_{}", since.last_sm) : "";
      context_.report(
          "target-support"_rule, at,
          fmt::format("{} requires {}{}{}, the target is {}", what, isa::oldest(since).text(),
                      until,
                      since.reach == Reach::Onward ? "" : " (targets with suffix a or f only)",
                      target.arch.text()));
    } else if (target.ptx < since.ptx) {
      context_.report("version-support"_rule, at,
                      fmt::format("{} requires PTX {}, the module states {}", what,
                                  since.ptx.text(), target.ptx.text()));
    } else {
      context_.report("version-support"_rule, at,
                      fmt::format("{} was removed after PTX {}, the module states {}", what,
                                  since.last.text(), target.ptx.text()));
    }
  }

  // Votes and shuffles without .sync.
  void deprecated(const ptx::Instruction& instruction, const Spelling& spelling,
                  const Since& since) {
    context_.report("deprecated-form"_rule, instruction.opcode,
                    fmt::format("{} without .sync may give wrong results on {}, where lanes of a "
                                "warp may run apart, and PTX refuses it after {}; write {}.sync "
                                "with a member mask",
                                spelling.text, context_.target.arch.text(), since.last.text(),
                                isa::name(spelling.opcode)));
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

}  // namespace tartan::inline TARTAN_ABI::verify
