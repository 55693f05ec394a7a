// SPDX-License-Identifier: Apache-2.0
// Misaligned matrices: rows of ldmatrix and stmatrix start at multiples of 16 bytes, those of wmma
// at multiples of the fragment's size (at most 16 bytes). An address is known if it is a variable
// plus a constant.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using isa::Role;

constexpr int row_bytes = 16;

class AlignmentChecker {
 public:
  AlignmentChecker(Context& context, const FunctionView& view) : context_(context), view_(view) {}

  void run() {
    for (const ptx::Variable& variable : context_.module.variables) variables_.push_back(&variable);
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::Instruction& instruction = context_.module.instructions[statement.index];
      if (const isa::Instruction* row = view_.readings.instruction(instruction))
        check(instruction, *row);
    }
  }

 private:
  void check(const ptx::Instruction& instruction, const isa::Instruction& row) {
    const Opcode opcode = row.form.opcode;
    const bool wmma = opcode == Opcode::wmma_load || opcode == Opcode::wmma_store;
    if (!wmma && opcode != Opcode::ldmatrix && opcode != Opcode::stmatrix) return;
    const int needed = wmma ? fragment_bytes(row) : row_bytes;
    for (std::size_t i = 0; i < row.operands.size(); ++i) {
      const ptx::Operand& operand = context_.module.operands_of(instruction)[i];
      if (row.operands[i].role == Role::address) address(row, operand, needed);
      if (row.operands[i].role == Role::stride) stride(row, operand, needed);
    }
  }

  static int fragment_bytes(const isa::Instruction& row) {
    for (const isa::OperandSpec& spec : row.operands)
      if (spec.kind == isa::OperandKind::Vector)
        return std::min(row_bytes, spec.count * bits(spec.type) / 8);
    return row_bytes;
  }

  void address(const isa::Instruction& row, const ptx::Operand& operand, int needed) {
    const auto found = view_.definitions.variable(operand);
    if (!found) return;
    const auto declared =
        std::find_if(variables_.begin(), variables_.end(),
                     [&](const ptx::Variable* each) { return each->name == found->variable; });
    // If the variable itself is not aligned, nothing is known.
    if (declared == variables_.end() || static_cast<int>((*declared)->align) % needed != 0 ||
        (*declared)->align == 0)
      return;
    if (found->offset % needed == 0) return;
    context_.report(
        "misaligned-matrix"_rule, operand.offset, std::max<std::size_t>(operand.text.size(), 1),
        fmt::format("misaligned matrix: {} requires {}-byte aligned rows, {}{:+} is not a multiple",
                    isa::spell(row.form), needed, found->variable, found->offset));
  }

  void stride(const isa::Instruction& row, const ptx::Operand& operand, int needed) {
    if (operand.kind != ptx::OperandKind::Integer) return;
    const auto distance =
        static_cast<std::int64_t>(operand.value * static_cast<std::uint64_t>(bits(row.form.d)));
    if (distance % (8 * needed) == 0) return;
    context_.report("misaligned-matrix"_rule, operand.text,
                    fmt::format("misaligned matrix: {} requires {}-byte aligned rows, and a stride "
                                "of {} elements of {} is {} bytes",
                                isa::spell(row.form), needed, operand.text, name(row.form.d),
                                static_cast<double>(distance) / 8));
  }

  Context& context_;
  const FunctionView& view_;
  std::vector<const ptx::Variable*> variables_;
};

}  // namespace

void check_alignment(Context& context, const FunctionView& view) {
  AlignmentChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
