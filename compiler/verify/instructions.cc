// SPDX-License-Identifier: Apache-2.0
// Checks every instruction against the table: opcode, qualifiers, types, target and version, and
// the number, kinds, types and ranges of its operands.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "compiler/isa/hints.h"
#include "compiler/isa/special_registers.h"
#include "compiler/ptx/kernel_directives.h"
#include "compiler/verify/operand_matcher.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

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
    if (spelling.signatures.empty()) return unknown_form(instruction, spelling), false;
    if (!declared) return false;
    const Signature* row = choose(instruction, spelling);
    const Since* since = row ? operands_.missing(instruction, spelling, *row, context_.target)
                             : missing_everywhere(spelling);
    if (since) unsupported(instruction.opcode, spelling.text, *since, other_hint(spelling, *since));
    else if (spelling.signatures[0]->undocumented) undocumented(instruction, spelling);
    if (!row && (!since || context_.target.arch.sm == 0)) wrong_operands(instruction, spelling);
    if (!row) return false;
    if (!since && stays_on_older_targets(row->since) && !isa::is_matrix(spelling.opcode))
      deprecated(instruction, spelling, row->since);
    for (const ptx::Operand& operand : context_.module.operands_of(instruction))
      check_special(operand);
    return !since;
  }

  bool removed(const Since& since) const {
    const Target& target = context_.target;
    return (since.last_sm != 0 && target.arch.sm > since.last_sm) ||
           (since.last != newest_version && target.ptx > since.last);
  }

  // What to write for a target that lacks the instruction.
  std::string other_hint(const Spelling& spelling, const Since& since) const {
    std::string out = removed(since) ? isa::longer_hint(spelling, context_.target) : "";
    if (out.empty() && isa::is_matrix(spelling.opcode))
      out = isa::nearest_hint(spelling, context_.target);
    return out;
  }

  void undocumented(const ptx::Instruction& instruction, const Spelling& spelling) {
    context_.report("undocumented-form"_rule, instruction.opcode,
                    fmt::format("{} is undocumented, although the assembler accepts it{}",
                                spelling.text, isa::nearest_hint(spelling, context_.target)));
  }

  // Checks that the target has a special register.
  void check_special(const ptx::Operand& operand) {
    if (operand.kind != ptx::OperandKind::Name || names_.of(operand).kind != NameKind::Special)
      return;
    const isa::SpecialRegisterRow* special = isa::find_special_register(base_name(operand.text));
    if (!special) return;
    if (!special->since.has(context_.target))
      unsupported(operand.text, operand.text, special->since);
    const std::string_view directive = special->directive;
    if (!directive.empty() && view_.function.entry &&
        !ptx::find_directive(context_.module, view_.function, directive))
      context_.report("function-directive"_rule, operand.text,
                      fmt::format("{} requires {} of the kernel {}", operand.text, directive,
                                  view_.function.name));
  }

  // The signature that matches the operands; of several, one that the target has, or whose version
  // alone is missing.
  const Signature* choose(const ptx::Instruction& instruction, const Spelling& spelling) const {
    const Signature *out = nullptr, *newer = nullptr;
    for (const Signature* each : spelling.signatures) {
      if (!operands_.match(instruction, spelling, *each)) continue;
      const Since* since = operands_.missing(instruction, spelling, *each, context_.target);
      if (!since) return each;
      if (!newer && since->has(context_.target.arch)) newer = each;
      if (!out) out = each;
    }
    return newer ? newer : out;
  }

  // Searched for once: a generated text may have the same mistake in each line.
  const std::string& mismatch(const Spelling& spelling) {
    const auto [at, fresh] = mismatches_.try_emplace(&spelling);
    if (fresh) {
      const Target& target = context_.target;
      at->second = isa::mismatch(spelling, target.arch.sm ? target : Target{});
    }
    return at->second;
  }

  void unknown_form(const ptx::Instruction& instruction, const Spelling& spelling) {
    context_.report(isa::mismatch_rule(spelling), instruction.opcode, mismatch(spelling));
  }

  // Whether `x` accepts more operands than `y`. An operand of another kind makes it another form,
  // though as many operands are written.
  static bool is_nearer(const OperandMismatch& x, const OperandMismatch& y) {
    return x.strange != y.strange ? x.strange < y.strange : x.matched > y.matched;
  }

  // Reports the mismatches with the signature that accepts the most operands. The form is shown
  // where it is the trouble.
  void wrong_operands(const ptx::Instruction& instruction, const Spelling& spelling) {
    const Signature* nearest = spelling.signatures[0];
    OperandMismatch worst = operands_.mismatch(instruction, spelling, *nearest);
    for (const Signature* each : std::span(spelling.signatures).subspan(1)) {
      OperandMismatch found = operands_.mismatch(instruction, spelling, *each);
      if (is_nearer(found, worst)) worst = std::move(found), nearest = each;
    }
    std::string hint;
    if (worst.rule == &"operand-count"_rule) {
      hint = operands_.braces_hint(instruction, spelling);
      if (hint.empty()) hint = "the form is " + isa::form_text(spelling, *nearest);
      hint.insert(0, "; ");
    }
    const auto report = [&] {
      context_.report(*worst.rule, worst.at.empty() ? instruction.opcode : worst.at,
                      fmt::format("{}: {}{}", spelling.text, worst.message, hint));
    };
    report();
    // What one operand of a fragment is says nothing of the next; elsewhere operands share a type.
    while (isa::is_matrix(spelling.opcode) && worst.matched >= 0) {
      const auto next = static_cast<std::size_t>(worst.matched + 1);
      worst = operands_.mismatch(instruction, spelling, *nearest, next);
      if (!worst.rule) return;
      report();
    }
  }

  // What the target lacks for every signature; null if it has one.
  const Since* missing_everywhere(const Spelling& spelling) const {
    const Since *out = nullptr, *newer = nullptr;
    for (const Signature* each : spelling.signatures) {
      const Since* since = isa::missing(*each, spelling, context_.target);
      if (!since) return nullptr;
      if (!newer && since->has(context_.target.arch)) newer = since;
      if (!out) out = since;
    }
    return newer ? newer : out;
  }

  void unsupported(std::string_view at, std::string_view what, const Since& since,
                   std::string_view hint = {}) {
    const Target& target = context_.target;
    if (target.arch.sm == 0) return;
    if (!since.has(target.arch)) {
      context_.report("target-support"_rule, at,
                      fmt::format("{} {}{}", what, isa::lacking(since, target), hint));
    } else if (target.ptx < since.ptx) {
      context_.report("version-support"_rule, at,
                      fmt::format("{} requires PTX {}, the module states {}{}", what,
                                  since.ptx.text(), target.ptx.text(), hint));
    } else {
      context_.report(
          "version-support"_rule, at,
          fmt::format("{} was removed after PTX {}{}, the module states {}{}", what,
                      since.last.text(),
                      stays_on_older_targets(since) ? fmt::format(" from sm_{} on", since.sm) : "",
                      target.ptx.text(), hint));
    }
  }

  // A form that later versions keep for older targets alone: votes and shuffles without .sync.
  static bool stays_on_older_targets(const Since& since) {
    return since.last < newest_version && since.sm > archs[0].arch.sm;
  }
  void deprecated(const ptx::Instruction& instruction, const Spelling& spelling,
                  const Since& since) {
    context_.report("deprecated-form"_rule, instruction.opcode,
                    fmt::format("{} without .sync may give wrong results on {}, where lanes of a "
                                "warp may run apart, and PTX refuses it after {}{}",
                                spelling.text, context_.target.arch.text(), since.last.text(),
                                isa::longer_hint(spelling, context_.target)));
  }

  Context& context_;
  const FunctionView& view_;
  OperandNames names_;
  OperandMatcher operands_;
  std::unordered_map<const Spelling*, std::string> mismatches_;
};

}  // namespace

void check_instructions(Context& context, const FunctionView& view) {
  InstructionChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
