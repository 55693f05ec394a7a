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

// setmaxnreg.inc.sync.aligned.u32 N
void check_register_count(Context& context, const ptx::Instruction& instruction) {
  constexpr std::int64_t least = 24, most = 256, step = 8;
  const auto operands = context.module.operands_of(instruction);
  if (operands.size() != 1 || operands[0].kind != ptx::OperandKind::Integer) return;
  const auto value = static_cast<std::int64_t>(operands[0].value);
  if (value >= least && value <= most && value % step == 0) return;
  const std::int64_t nearest = (std::clamp(value, least, most) + step / 2) / step * step;
  context.report(
      "immediate-range"_rule, operands[0].text,
      fmt::format("{} takes {} to {} registers in steps of {}, got {}; the nearest is {}",
                  instruction.opcode, least, most, step, value, nearest));
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
    if (instruction.opcode.starts_with("setmaxnreg.")) check_register_count(context, instruction);
    if (reported || !view.function.entry || !instruction.opcode.starts_with("setmaxnreg.") ||
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
