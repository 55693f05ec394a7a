// SPDX-License-Identifier: Apache-2.0
// Checks matrix instructions against the tables: spelling, target, version, number and kind of
// operands, register types, immediates.
#include <fmt/format.h>

#include "compiler/isa/hints.h"
#include "compiler/support/names.h"
#include "compiler/verify/matrix_operands.h"
#include "compiler/verify/pass.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Form;
using isa::FormText;

std::string listed(const std::vector<std::string_view>& words) {
  std::string out;
  for (const std::string_view word : words)
    out += fmt::format("{}.{}", out.empty() ? "" : ", ", word);
  return out;
}

class MatrixChecker {
 public:
  MatrixChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    view_.scopes.restart();
    for (const ptx::Statement& statement : view_.function.statements) {
      view_.scopes.enter(statement);
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::Instruction& instruction = context_.module.instructions[statement.index];
      if (isa::is_matrix(context_.module.spelling(instruction).opcode)) check(instruction);
    }
  }

 private:
  void check(const ptx::Instruction& instruction) {
    const Reading& reading = view_.readings.of(instruction);
    if (!legal_spelling(instruction, reading)) return;
    const isa::Instruction& found = *choose(context_.module, instruction, reading);
    if (!legal_target(instruction, reading, found)) return;
    if (reading.undocumented) undocumented(instruction, reading);
    MatrixOperands(context_, view_.scopes, instruction, found).check();
  }

  bool legal_spelling(const ptx::Instruction& instruction, const Reading& reading) {
    const FormText& text = reading.text;
    const std::string_view opcode = instruction.opcode;
    if (!text.unknown.empty()) {
      std::string& hint = hints_[opcode];
      if (hint.empty() && text.unknown.size() == 1)
        hint = isa::word_hint(text.form.opcode, text.unknown[0]);
      if (hint.empty()) hint = suggestion(text.form);
      context_.report("unknown-qualifier"_rule, opcode,
                      fmt::format("{} does not accept {}{}", isa::family(text.form),
                                  listed(text.unknown), hint));
      return false;
    }
    if (!text.repeated.empty()) {
      context_.report("unknown-qualifier"_rule, opcode,
                      fmt::format("qualifier {} of {} is repeated{}", listed(text.repeated),
                                  isa::family(text.form), suggestion(text.form)));
      return false;
    }
    if (!text.sync || (!text.form.aligned && !reading.plain)) {
      context_.report("unknown-form"_rule, opcode,
                      fmt::format("{} requires .sync.aligned{}{}", isa::family(text.form),
                                  text.sync ? ", .aligned is missing" : "", suggestion(text.form)));
      return false;
    }
    if (!reading.plain && !reading.alternative) {
      context_.report("unknown-form"_rule, opcode,
                      fmt::format("unknown instruction form {}{}", opcode, suggestion(text.form)));
      return false;
    }
    return true;
  }

  std::string suggestion(Form form) const {
    form.aligned = true;
    const auto nearest = isa::nearest(form, context_.target);
    return nearest ? fmt::format("; the nearest on {} is {}", context_.target.text(),
                                 isa::spell(*nearest))
                   : "";
  }

  bool legal_target(const ptx::Instruction& instruction, const Reading& reading,
                    const isa::Instruction& found) {
    const Target& target = context_.target;
    const Since& since = found.since;
    if (target.arch.sm == 0 || since.has(target)) return true;
    if (!since.has(target.arch)) {
      context_.report("target-support"_rule, instruction.opcode,
                      fmt::format("{} {}{}", reading.spelled, isa::lacking(since, target),
                                  suggestion(found.form)));
    } else if (target.ptx < since.ptx) {
      context_.report("version-support"_rule, instruction.opcode,
                      fmt::format("{} requires PTX {}, the module states {}{}", reading.spelled,
                                  since.ptx.text(), target.ptx.text(), older(found.form)));
    } else {
      context_.report(
          "version-support"_rule, instruction.opcode,
          fmt::format("{} was removed after PTX {}, the module states {}{}", reading.spelled,
                      since.last.text(), target.ptx.text(), suggestion(found.form)));
    }
    return false;
  }

  // The spelling of a form before .aligned existed.
  std::string older(Form form) const {
    form.aligned = false;
    const auto found = isa::find_legacy(form);
    return found && found->since.has(context_.target)
               ? fmt::format("; before that version, write {}", isa::spell(form))
               : "";
  }

  void undocumented(const ptx::Instruction& instruction, const Reading& reading) {
    context_.report("undocumented-form"_rule, instruction.opcode,
                    fmt::format("{} is undocumented, although the assembler accepts it{}",
                                reading.spelled, suggestion(reading.text.form)));
  }

  Context& context_;
  const FunctionView& view_;
  NameMap<std::string> hints_;  // by spelling
};

}  // namespace

void check_matrix_instructions(Context& context, const FunctionView& view) {
  MatrixChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
