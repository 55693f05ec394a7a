// SPDX-License-Identifier: Apache-2.0
// compiler/isa/fragment_operand.h - the registers of an operand that names a fragment.
#pragma once

#include "tartan/isa/signature.h"

namespace tartan::TARTAN_ABI::isa {

/// How many registers, and of which types.
struct FragmentOperand {
  Type type = Type::none;  // b32, f32 or f64
  int registers = 0;       // 0: 1, 2 or 4
  TypeSet types;           // what the assembler takes
};

/// Of a row with `fragment`, in a form that one of its signature's spellings means.
FragmentOperand fragment_operand(const OperandRow& row, const Form& form);

}  // namespace tartan::TARTAN_ABI::isa
