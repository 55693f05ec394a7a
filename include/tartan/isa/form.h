// SPDX-License-Identifier: Apache-2.0
// tartan/isa/form.h - one matrix instruction form: a field for every qualifier of its spelling (PTX
// ISA 9.7.14 and 9.7.15).
//
// The rows of the tables (compiler/isa/tables.h) say which combinations of qualifiers exist; a form
// is one of them. The PTX parser turns `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32` into a
// form, with its qualifiers in any order; `spell` writes a form in the manual's order. Registers,
// lane maps and targets come from the form's row.
//
//   auto read = isa::parse_form("ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16");  // CuTe's order
//   isa::spell(read.form);      // the manual's: "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/isa/opcode.h"
#include "tartan/isa/state_space.h"
#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI {

/// Elements along m, n and k. Instructions that move one matrix use m (rows) and n (columns).
struct Shape {
  std::int16_t m = 0, n = 0, k = 0;
  constexpr bool operator==(const Shape&) const = default;
  std::string text() const;  // "m16n8k16", "m8n8"
};

/// The memory order of a matrix: row-major or column-major.
enum class Major : std::uint8_t { none, row, col };

/// The matrices of D = A * B + C.
enum class Operand : std::uint8_t { none, a, b, c, d };

constexpr std::string_view name(Major major) {
  constexpr std::string_view names[] = {"", "row", "col"};
  return names[static_cast<int>(major)];
}
constexpr std::string_view name(Operand operand) {
  constexpr std::string_view names[] = {"", "a", "b", "c", "d"};
  return names[static_cast<int>(operand)];
}

namespace isa {

/// The role of an operand. The order in PTX text is the order in Instruction::operands.
enum class Role : std::uint8_t {
  d,
  a,
  b,
  c,  // fragments
  address,
  stride,  // memory
  metadata,
  selector,  // sparsity
  scale_a,
  scale_b,
  select_a,
  select_b,  // block scales and their {byte-id, thread-id}
  a_descriptor,
  b_descriptor,
  scale_d,  // wgmma
  imm_scale_a,
  imm_scale_b,
  imm_trans_a,
  imm_trans_b,
  none,
};

constexpr std::string_view name(Role role) {
  constexpr std::string_view names[] = {"d",
                                        "a",
                                        "b",
                                        "c",
                                        "addr",
                                        "stride",
                                        "meta",
                                        "selector",
                                        "scale-a",
                                        "scale-b",
                                        "{byte-id-a,thread-id-a}",
                                        "{byte-id-b,thread-id-b}",
                                        "a-desc",
                                        "b-desc",
                                        "scale-d",
                                        "imm-scale-a",
                                        "imm-scale-b",
                                        "imm-trans-a",
                                        "imm-trans-b",
                                        ""};
  return names[static_cast<int>(role)];
}

/// Rounding of wmma with f64.
enum class Rounding : std::uint8_t { none, rn, rz, rm, rp };
/// The bitwise operation of products of single bits, whose results are counted.
enum class BitOp : std::uint8_t { none, and_popc, xor_popc };
/// Whether A is sparse, and how its metadata must be ordered.
enum class Sparsity : std::uint8_t { dense, sp, sp_ordered_metadata };
/// The .kind qualifier of mma.
enum class Kind : std::uint8_t { none, f8f6f4, mxf8f6f4, mxf4, mxf4nvf4 };

/// One form of a matrix instruction: every qualifier has a value. A row of the table covers many.
struct Form {
  Opcode opcode = Opcode::none;
  Operand operand = Operand::none;  // wmma.load.{a,b,c}, wmma.store.d
  Shape shape;
  Major a_major = Major::none;  // wmma.load and wmma.store: the one layout they have
  Major b_major = Major::none;
  Type d = Type::none;  // loads and stores: the element type; ldmatrix with formats: the
                        // destination format
  Type a = Type::none;  // ldmatrix with formats: the source format
  Type b = Type::none;
  Type c = Type::none;
  std::uint8_t count = 0;  // .x1 .x2 .x4; .x8 is read, but no documented form has it
  bool trans = false;
  StateSpace space = StateSpace::none;  // of the address: none, global, shared, shared_cta
  bool stride = false;  // wmma.load and wmma.store: the operand is written (it has no qualifier)
  bool a_in_registers = false;  // wgmma: A is a vector, not a descriptor (it has no qualifier)
  bool satfinite = false;
  Rounding rounding = Rounding::none;
  BitOp bit_op = BitOp::none;
  Sparsity sparsity = Sparsity::dense;
  Kind kind = Kind::none;
  bool block_scale = false;
  std::uint8_t scale_vec = 0;    // 1, 2 or 4; 0 where it is not written
  Type scale_type = Type::none;  // ue8m0, ue4m3
  bool aligned = true;           // required by every version from 6.3 on

  constexpr bool operator==(const Form&) const = default;
};

/// The matrix opcode that `text` (an instruction up to its first blank, qualifiers included) begins
/// with; none for any other instruction.
Opcode matrix_opcode(std::string_view text);

/// The result of parsing a spelling: the form, and the qualifiers that were not understood.
struct FormText {
  Form form;
  bool sync = false;
  std::vector<std::string_view> unknown;   // qualifiers that no form of the opcode has
  std::vector<std::string_view> repeated;  // qualifiers given twice; .sync may be
  int types = 0;                           // how many element types were written
};

/// Parses a spelling, qualifiers in any order; `text` starts with a matrix opcode. The order
/// matters only among types and among layouts.
FormText parse_form(std::string_view text);

/// The form in the manual's order of qualifiers.
std::string spell(const Form& form);

/// The name of the family in `tartan isa` and facts: "mma.sp.block_scale", "wmma.load", ...
std::string_view family(const Form& form);

}  // namespace isa
}  // namespace tartan::TARTAN_ABI
