// SPDX-License-Identifier: Apache-2.0
// Checks matrix instructions against the tables: spelling, target, version, number and kind of
// operands, register types, immediates.
#include <fmt/format.h>

#include "compiler/verify/matrix_operands.h"
#include "compiler/verify/pass.h"
#include "tartan/isa/instruction.h"

namespace tartan::inline TARTAN_ABI::verify {
namespace {

using isa::Form;
using isa::FormText;
using isa::Opcode;

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
      const Opcode opcode = context_.module.spelling(instruction).opcode;
      if (isa::is_matrix(opcode)) check(instruction);
      else if (opcode >= Opcode::wgmma_fence && opcode <= Opcode::wgmma_wait_group)
        check_order(instruction);
    }
  }

 private:
  // wgmma.fence, wgmma.commit_group and wgmma.wait_group N: .sync, with or without .aligned.
  void check_order(const ptx::Instruction& instruction) {
    static const Since since = isa::find(isa::wgmma_forms().front())->since;
    const std::string_view opcode = instruction.opcode;
    const std::string_view words = opcode.substr(6), name = words.substr(0, words.find('.'));
    if (name != "fence" && name != "commit_group" && name != "wait_group") return;
    const std::string_view rest = words.substr(name.size());
    if (rest != ".sync.aligned" && rest != ".sync")
      return context_.report(
                 "unknown-form"_rule, opcode,
                 fmt::format("illegal wgmma.{}: expected wgmma.{}.sync.aligned", name, name)),
             void();
    const Target& target = context_.target;
    if (target.arch.sm != 0 && !since.has(target))
      context_.report(since.has(target.arch) ? "version-support"_rule : "target-support"_rule,
                      opcode,
                      fmt::format("{} requires {} and PTX {}, the target is {} and PTX {}", opcode,
                                  isa::oldest(since).text(), since.ptx.text(), target.arch.text(),
                                  target.ptx.text()));
    const auto operands = context_.module.operands_of(instruction);
    const std::size_t expected = name == "wait_group" ? 1 : 0;
    if (operands.size() != expected)
      context_.report("operand-count"_rule, opcode,
                      fmt::format("wrong number of operands: {} expects {}, found {}", opcode,
                                  expected, operands.size()));
    else if (expected && (operands[0].kind != ptx::OperandKind::Integer ||
                          static_cast<std::int64_t>(operands[0].value) < 0))
      context_.report(
          "operand-kind"_rule, opcode,
          fmt::format(
              "{} expects a constant of at least 0, the number of groups that may remain in flight",
              opcode));
  }

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
      context_.report("unknown-qualifier"_rule, opcode,
                      fmt::format("{} does not accept {}{}", isa::family(text.form),
                                  listed(text.unknown), suggestion(text.form)));
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
      const std::string until = since.last_sm ? fmt::format(" to sm_{}", since.last_sm) : "";
      context_.report("target-support"_rule, instruction.opcode,
                      fmt::format("{} requires {}{}{}, the target is {}{}", reading.spelled,
                                  isa::oldest(since).text(), until, reach(since),
                                  target.arch.text(), suggestion(found.form)));
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

  static std::string_view reach(const Since& since) {
    switch (since.reach) {
      case Reach::Onward: return "";
      case Reach::Family: return " (targets with suffix a or f only)";
      case Reach::ArchOnly: return " (targets with suffix a only)";
      case Reach::ExactArch: return " (and no other target)";
    }
    return "";
  }

  Context& context_;
  const FunctionView& view_;
};

}  // namespace

void check_matrix_instructions(Context& context, const FunctionView& view) {
  MatrixChecker(context, view).run();
}

}  // namespace tartan::inline TARTAN_ABI::verify
