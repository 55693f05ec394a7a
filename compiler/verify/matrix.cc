// SPDX-License-Identifier: Apache-2.0
// Matrix instructions against the tables: spelling, target, version, number and kind of operands, register types, immediates.
#include <fmt/format.h>

#include <unordered_map>

#include "compiler/isa/instruction.h"
#include "compiler/verify/matrix_operands.h"
#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

using isa::Form;
using isa::FormText;
using isa::Opcode;

// What a spelling means; the same text is judged once.
struct Reading {
  FormText text;
  std::string spelled;                         // the form in the manual's order
  std::optional<isa::Instruction> plain;       // without stride, A in a descriptor
  std::optional<isa::Instruction> alternative; // with stride, A in registers; none where the family has no choice
};

std::string listed(const std::vector<std::string_view>& words) {
  std::string out;
  for (const std::string_view word : words) out += fmt::format("{}.{}", out.empty() ? "" : ", ", word);
  return out;
}

Reading read(std::string_view opcode) {
  Reading out{isa::parse_form(opcode), {}, {}, {}};
  Form form = out.text.form;
  out.spelled = isa::spell(form);
  // A spelling with more or fewer types than the form writes is none: f16 wmma.mma with four types, say.
  if (!out.text.unknown.empty() || !out.text.repeated.empty() || !out.text.sync || isa::parse_form(out.spelled).types != out.text.types) return out;
  out.plain = isa::find(form);
  form.stride = form.opcode == Opcode::wmma_load || form.opcode == Opcode::wmma_store;
  form.a_in_registers = form.opcode == Opcode::wgmma;
  if (form.stride || form.a_in_registers) out.alternative = isa::find(form);
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
      // Most instructions are others: look at one letter first.
      const char first = instruction.opcode[0];
      if ((first == 'm' || first == 'w' || first == 'l' || first == 's') && isa::matrix_opcode(instruction.opcode) != Opcode::none)
        check(instruction);
    }
  }

 private:
  void check(const ptx::Instruction& instruction) {
    const Reading& reading = find(instruction.opcode);
    if (!legal_spelling(instruction, reading)) return;
    const isa::Instruction& found = choose(instruction, reading);
    if (!legal_target(instruction, reading, found)) return;
    MatrixOperands(context_, view_.scopes, instruction, found).check();
  }

  const Reading& find(std::string_view opcode) {
    const auto at = readings_.find(opcode);
    return at != readings_.end() ? at->second : readings_.emplace(opcode, read(opcode)).first->second;
  }

  bool legal_spelling(const ptx::Instruction& instruction, const Reading& reading) {
    const FormText& text = reading.text;
    const std::string_view opcode = instruction.opcode;
    if (!text.unknown.empty()) {
      context_.report("unknown-qualifier"_rule, opcode,
                      fmt::format("{} takes no qualifier {}{}", isa::family(text.form), listed(text.unknown), suggestion(text.form)));
      return false;
    }
    if (!text.repeated.empty()) {
      context_.report("unknown-qualifier"_rule, opcode,
                      fmt::format("qualifier {} of {} is one too many{}", listed(text.repeated), isa::family(text.form), suggestion(text.form)));
      return false;
    }
    if (!text.sync || !text.form.aligned) {
      context_.report("unknown-form"_rule, opcode,
                      fmt::format("{} needs .sync.aligned{}", isa::family(text.form), text.sync ? ", .aligned is missing" : ""));
      return false;
    }
    if (!reading.plain && !reading.alternative) {
      context_.report("unknown-form"_rule, opcode, fmt::format("there is no instruction {}{}", opcode, suggestion(text.form)));
      return false;
    }
    return true;
  }

  std::string suggestion(Form form) const {
    form.aligned = true;
    const auto nearest = isa::nearest(form, context_.target);
    return nearest ? fmt::format("; the nearest on {} is {}", context_.target.text(), isa::spell(*nearest)) : "";
  }

  // Which of the two signatures the operands mean.
  const isa::Instruction& choose(const ptx::Instruction& instruction, const Reading& reading) const {
    if (!reading.alternative) return *reading.plain;
    if (!reading.plain) return *reading.alternative;
    if (reading.text.form.opcode != Opcode::wgmma) return instruction.count >= 3 ? *reading.alternative : *reading.plain;
    const auto operands = context_.module.operands_of(instruction);
    const bool vector = operands.size() > 1 && operands[1].kind == ptx::OperandKind::Vector;
    return vector ? *reading.alternative : *reading.plain;
  }

  bool legal_target(const ptx::Instruction& instruction, const Reading& reading, const isa::Instruction& found) {
    const Target& target = context_.target;
    if (target.arch.sm == 0 || found.since.has(target)) return true;
    if (!found.since.has(target.arch)) {
      const Arch oldest = isa::oldest(found.since);
      context_.report("target-support"_rule, instruction.opcode,
                      fmt::format("{} exists from {} on{}, the target is {}{}", reading.spelled, oldest.text(), reach(found.since), target.arch.text(),
                                  suggestion(found.form)));
      return false;
    }
    context_.report("version-support"_rule, instruction.opcode,
                    fmt::format("{} exists from PTX {} on, the module states {}", reading.spelled, found.since.ptx.text(), target.ptx.text()));
    return false;
  }

  static std::string_view reach(const Since& since) {
    switch (since.reach) {
      case Reach::Onward: return "";
      case Reach::Family: return ", for targets with suffix a or f";
      case Reach::ArchOnly: return ", for targets with suffix a";
      case Reach::ExactArch: return " and nowhere else";
    }
    return "";
  }

  Context& context_;
  const FunctionView& view_;
  std::unordered_map<std::string_view, Reading> readings_;
};

}  // namespace

void check_matrix_instructions(Context& context, const FunctionView& view) { MatrixChecker(context, view).run(); }

}  // namespace tartan::verify
