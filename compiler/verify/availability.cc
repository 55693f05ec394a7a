// SPDX-License-Identifier: Apache-2.0
// Instructions around the copy engine, on targets and in versions that have them; what setmaxnreg
// takes, and what a kernel must state for it.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/isa/asynchronous.h"
#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

std::string spelled(const isa::AsynchronousRow& row) {
  return row.qualifier.empty() ? std::string(row.words)
                               : fmt::format("{} with .{}", row.words, row.qualifier);
}

void check_since(Context& context, const ptx::Instruction& instruction) {
  const Target& target = context.target;
  const isa::AsynchronousRow* row = isa::missing(instruction.opcode, target);
  if (!row) return;
  if (!row->since.has(target.arch))
    context.report(
        "target-support"_rule, instruction.opcode,
        fmt::format("{} exists from {} on{}, the target is {}", spelled(*row),
                    isa::oldest(row->since).text(),
                    row->since.reach == Reach::Onward ? "" : ", for targets with suffix a or f",
                    target.arch.text()));
  else
    context.report("version-support"_rule, instruction.opcode,
                   fmt::format("{} exists from PTX {} on, the module states {}", spelled(*row),
                               row->since.ptx.text(), target.ptx.text()));
}

// Whether the assembler can tell how many registers the kernel starts with.
bool bounded(const Context& context, const ptx::Function& function) {
  const auto states = [&](std::string_view name) {
    return std::ranges::any_of(function.directives, [&](std::uint32_t index) {
      return context.module.directives[index].name == name;
    });
  };
  return states(".maxnreg") ||
         (states(".minnctapersm") && (states(".maxntid") || states(".reqntid")));
}

}  // namespace

void check_availability(Context& context, const FunctionView& view) {
  const bool known = context.target.arch.sm != 0 && context.target.ptx != Version{};
  bool reported = false;
  for (const ptx::Statement& statement : view.function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = context.module.instructions[statement.index];
    if (instruction.opcode.empty()) continue;
    if (known) check_since(context, instruction);
    if (reported || !view.function.entry ||
        context.module.spelling(instruction).opcode != isa::Opcode::setmaxnreg ||
        bounded(context, view.function))
      continue;
    reported = true;
    context.report("register-bounds"_rule, instruction.opcode,
                   fmt::format("{} is ignored by the assembler: kernel {} (line {}) states neither "
                               ".maxnreg nor .minnctapersm beside .maxntid or .reqntid",
                               instruction.opcode, view.function.name,
                               context.module.source->line(view.function.offset)));
  }
}

}  // namespace tartan::verify
