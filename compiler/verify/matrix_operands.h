// SPDX-License-Identifier: Apache-2.0
// compiler/verify/matrix_operands.h - checks the operands of one matrix instruction against its
// row.
#pragma once

#include <span>

#include "compiler/verify/pass.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::verify {

class MatrixOperands {
 public:
  MatrixOperands(Context& context, const Scopes& scopes, const ptx::Instruction& instruction,
                 const isa::Instruction& row)
      : context_(context), scopes_(scopes), instruction_(instruction), row_(row) {}

  void check();

 private:
  void operand(const isa::OperandSpec& spec, const ptx::Operand& operand);
  void vector(const isa::OperandSpec& spec, const ptx::Operand& operand);
  void pair(const isa::OperandSpec& spec, const ptx::Operand& operand);
  void address(const isa::OperandSpec& spec, const ptx::Operand& operand);
  void immediate(const isa::OperandSpec& spec, const ptx::Operand& operand);
  bool floats(const isa::OperandSpec& spec, std::span<const ptx::Operand> elements) const;
  bool whole_vector(const isa::OperandSpec& spec, const ptx::Operand& operand) const;
  bool assembler_dies(const isa::OperandSpec& spec, const ptx::Operand& operand) const;
  /// One register of a vector, or a scalar one; immediates and _ where PTX accepts them.
  void element(const isa::OperandSpec& spec, const ptx::Operand& operand);
  void element(const isa::OperandSpec& spec, const ptx::Operand& operand, TypeSet types);
  TypeSet mixture(const isa::OperandSpec& spec, const ptx::Operand& operand);
  bool constant(const isa::OperandSpec& spec, const ptx::Operand& operand) const;
  bool sink(const isa::OperandSpec& spec) const;
  void variable(const isa::OperandSpec& spec, const ptx::Operand& operand, StateSpace space);
  void range(const isa::OperandSpec& spec, const ptx::Operand& operand, std::string_view what,
             int high, int step);

  void report(const Rule& rule, const ptx::Operand& operand, std::string message);
  void wrong_kind(const isa::OperandSpec& spec, const ptx::Operand& operand,
                  std::string_view expected);
  std::string label(const isa::OperandSpec& spec) const;

  Context& context_;
  const Scopes& scopes_;
  const ptx::Instruction& instruction_;
  const isa::Instruction& row_;
};

}  // namespace tartan::TARTAN_ABI::verify
