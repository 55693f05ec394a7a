// SPDX-License-Identifier: Apache-2.0
// Directives that setmaxnreg requires of a kernel.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ptx/kernel_directives.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

// The most threads of a block that the kernel states; 0: none.
std::uint64_t stated_threads(const Context& context, const ptx::Function& kernel) {
  for (const std::string_view name : {".reqntid", ".maxntid"})
    if (const ptx::Directive* found = ptx::find_directive(context.module, kernel, name)) {
      std::uint64_t threads = 1;
      for (const ptx::Operand& extent : context.module.operands_of(*found)) threads *= extent.value;
      return threads;
    }
  return 0;
}

bool is_product(const Context& context, const ptx::Instruction& instruction) {
  return context.module.spelling(instruction).opcode == isa::Opcode::wgmma;
}

// What of a kernel's body is of interest.
struct Findings {
  const ptx::Instruction* change = nullptr;  // the first setmaxnreg
  bool has_products = false;                 // wgmma, or calls in a module that has it
};
Findings look_through(const Context& context, const ptx::Function& kernel) {
  Findings out;
  bool calls = false;
  for (const ptx::Statement& statement : kernel.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = context.module.instructions[statement.index];
    const isa::Opcode opcode = context.module.spelling(instruction).opcode;
    if (opcode == isa::Opcode::setmaxnreg && !out.change) out.change = &instruction;
    out.has_products |= is_product(context, instruction);
    calls |= opcode == isa::Opcode::call;
  }
  if (out.change && calls)
    out.has_products |= std::ranges::any_of(
        context.module.instructions,
        [&](const ptx::Instruction& each) { return is_product(context, each); });
  return out;
}

// Whether the assembler may know how many registers the kernel starts with, without which it
// ignores setmaxnreg. With wgmma it does for more than 192 threads, where there are enough
// accumulators (ptxas 13.0).
bool may_be_bounded(const Context& context, const ptx::Function& kernel, bool has_products) {
  constexpr std::uint64_t unbounded = 192;
  const auto states = [&](std::string_view name) {
    return ptx::find_directive(context.module, kernel, name) != nullptr;
  };
  const std::uint64_t threads = stated_threads(context, kernel);
  return states(".maxnreg") ||
         (threads && (states(".minnctapersm") || (has_products && threads > unbounded)));
}

}  // namespace

void check_register_budget(Context& context, const FunctionView& view) {
  if (!view.function.entry) return;
  const Findings found = look_through(context, view.function);
  if (!found.change || may_be_bounded(context, view.function, found.has_products)) return;
  context.report("register-bounds"_rule, found.change->opcode,
                 fmt::format("{} has no effect, the assembler ignores it: kernel {} (line {}) "
                             "states neither .maxnreg nor .minnctapersm with .maxntid or .reqntid",
                             found.change->opcode, view.function.name,
                             context.module.source->line(view.function.offset)));
}

}  // namespace tartan::TARTAN_ABI::verify
