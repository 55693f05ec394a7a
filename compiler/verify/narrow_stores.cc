// SPDX-License-Identifier: Apache-2.0
// Stores of the low bits of a floating-point number. The manual truncates (PTX ISA 9.4.1, tables of
// operands that exceed the instruction's type); ptxas of CUDA 13.0 converts the number to an
// integer instead, if an instruction of floating-point numbers is what wrote the register. Behind a
// mov of a bit type, it truncates.
#include <fmt/format.h>

#include "compiler/verify/pass.h"

namespace tartan::inline TARTAN_ABI::verify {
namespace {

using isa::Opcode;

// The number's type, if the instruction writes one floating-point number to each of its registers.
// Halves that matrix instructions write come in pairs.
Type number_written(Context& context, const FunctionView& view, const ptx::Instruction& by) {
  const Type type = context.module.spelling(by).type();
  const bool pairs = bits(type) < 32 && view.readings.instruction(by);
  return (type == f16 || type == bf16 || type == f32 || type == f64) && !pairs ? type : Type::none;
}

void check(Context& context, const FunctionView& view, const ptx::Instruction& store) {
  const isa::Spelling& spelling = context.module.spelling(store);
  const Type stored = spelling.type();
  const auto operands = context.module.operands_of(store);
  if (info(stored).floating || bits(stored) > 32 || operands.size() < 2 ||
      operands[1].kind != ptx::OperandKind::Name)
    return;
  const std::string_view name = operands[1].text;
  const ptx::Instruction* const by = view.definitions.of(name);
  if (!by) return;
  const Type number = number_written(context, view, *by);
  if (bits(number) <= bits(stored)) return;
  context.report(
      "narrow-store"_rule, name,
      fmt::format("{} stores the low {} bits of {}, which {} on line {} wrote as {}: NVIDIA's "
                  "assembler may store the number converted to an integer; insert mov.b{} and "
                  "store its result",
                  spelling.text, bits(stored), name, by->opcode,
                  context.module.source->line(by->offset), tartan::name(number), bits(number)));
}

}  // namespace

void check_narrow_stores(Context& context, const FunctionView& view) {
  for (const ptx::Statement& statement : view.function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = context.module.instructions[statement.index];
    if (context.module.spelling(instruction).opcode == Opcode::st)
      check(context, view, instruction);
  }
}

}  // namespace tartan::inline TARTAN_ABI::verify
