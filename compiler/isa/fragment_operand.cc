// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/fragment_operand.h"

#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr TypeSet any_32_bits{Type::b32, Type::u32, Type::s32, Type::f32, Type::f16x2},
    integers{Type::b32, Type::u32, Type::s32}, halves{Type::b32, Type::f16x2};

bool moves_bits(Opcode opcode) { return opcode == Opcode::ldmatrix || opcode == Opcode::stmatrix; }

// Types for inputs of a product in 32-bit registers.
TypeSet input_types(Type element, const Form& form) {
  if (element == f16) return halves;
  const bool floating = info(element).floating;
  switch (form.opcode) {
    case Opcode::wgmma: return floating ? halves : any_32_bits;
    case Opcode::mma:
      if (form.block_scale ||
          (form.sparsity == Sparsity::dense && (element == bf16 || element == tf32)))
        return Type::b32;
      return any_32_bits;
    case Opcode::wmma_load:
      if (bits(element) < 8) return any_32_bits;
      break;
    default: break;
  }
  return floating ? TypeSet(Type::b32) : integers;
}

// .b32 fits every 32-bit operand, others as measured with the assembler.
TypeSet register_types(Type type, Type element, bool input, Role role, const Form& form) {
  if (type == f64) {
    const bool accumulator =
        form.opcode == Opcode::wmma_mma && (role == Role::c || role == Role::d);
    if (form.opcode == Opcode::mma || accumulator)
      return {Type::f64, Type::b64, Type::s64, Type::u64};
    return {Type::f64, Type::b64};
  }
  if (type == f32) {
    const bool any =
        form.opcode == Opcode::mma && form.sparsity != Sparsity::dense && bits(form.a) > 8;
    return any ? any_32_bits : TypeSet{Type::f32, Type::b32};
  }
  if (moves_bits(form.opcode)) return any_32_bits;
  if (input) return input_types(element, form);
  return element == f16 ? halves : integers;
}

}  // namespace

FragmentOperand fragment_operand(const OperandRow& row, const Form& form) {
  const Fragment fragment = isa::fragment(form, row.fragment);
  const bool input = row.fragment == Operand::a || row.fragment == Operand::b;
  const Type type = fragment.type == f64 || fragment.type == f32 ? fragment.type : b32;
  return {type, row.elements == any_matrices ? 0 : fragment.registers,
          register_types(type, fragment.type, input, row.role, form)};
}

}  // namespace tartan::TARTAN_ABI::isa
