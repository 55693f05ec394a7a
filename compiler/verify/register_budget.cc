// SPDX-License-Identifier: Apache-2.0
// Directives that setmaxnreg requires of a kernel.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/verify/pass.h"

namespace tartan::inline TARTAN_ABI::verify {
namespace {

// Whether the assembler can determine how many registers the kernel starts with.
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

void check_register_budget(Context& context, const FunctionView& view) {
  bool reported = false;
  for (const ptx::Statement& statement : view.function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = context.module.instructions[statement.index];
    if (reported || !view.function.entry ||
        context.module.spelling(instruction).opcode != isa::Opcode::setmaxnreg ||
        bounded(context, view.function))
      continue;
    reported = true;
    context.report(
        "register-bounds"_rule, instruction.opcode,
        fmt::format("{} has no effect, the assembler ignores it: kernel {} (line {}) states "
                    "neither .maxnreg nor .minnctapersm with .maxntid or .reqntid",
                    instruction.opcode, view.function.name,
                    context.module.source->line(view.function.offset)));
  }
}

}  // namespace tartan::inline TARTAN_ABI::verify
