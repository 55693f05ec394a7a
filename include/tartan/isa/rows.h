// SPDX-License-Identifier: Apache-2.0
// tartan/isa/rows.h - the columns of the matrix instruction tables: one row per PTX signature. The
// rows are in compiler/isa/tables.h.
//
// Every other part of Tartan reads these rows and keeps no list of its own: the parser and printer
// take the spelling, the verifier types, targets and versions, code generation the operands, the
// emulator and the pictures the lane maps. A new instruction is a new row.
//
// A column that takes several values (types of A, x1/x2/x4, layouts) makes one row stand for
// several forms; `forms()` in tartan/isa/instruction.h expands them. Derived values have no column:
// registers per operand follow from shape and type (m * k * bits / 32 lanes), the legal selectors
// from the metadata bits, the sparse K from the dense one.
#pragma once

#include <span>

#include "tartan/isa/form.h"
#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::isa {

// ---- ldmatrix, stmatrix, movmatrix (PTX ISA 9.0, 9.7.14.5.15 to 17): one matrix of rows of 16
// bytes per 32-bit register (or two).

/// Whether .trans may or must be written.
enum class Trans : std::uint8_t { Never, Optional, Always };

/// A row of ldmatrix, stmatrix or movmatrix.
struct MatrixMove {
  Opcode opcode;
  Shape shape;   // rows and columns of one matrix
  Type format;   // type in registers: b16, b8, b8x16
  TypeSet from;  // ldmatrix with formats: type in memory
  int counts;    // the sum of the .x numbers it takes; 0: none is written
  Trans trans;
  int registers;  // 32-bit registers per matrix
  Since since;
};

// ---- wmma.load, wmma.store, wmma.mma (9.7.14.4): a row is a product; its loads and stores follow
// from it.

/// A row of wmma.
struct Wmma {
  Shape shape;
  TypeSet ab;              // types of A and B (always the same for both)
  TypeSet cd;              // types of C and D, in any combination
  bool any_major = false;  // all four of row/col; otherwise A is .row and B is .col
  bool satfinite = false;
  bool roundings = false;
  BitOp bit_op = BitOp::none;
  Since since;
  Version unaligned = {};  // the version from which it exists without .aligned, until 6.2; 0.0:
                           // never. Such rows also take .satfinite until 6.4.
};

// ---- mma (9.7.14.5): dense, sparse and block-scaled.

/// Options that a row permits.
enum MmaOption : std::uint8_t {
  plain = 0,
  any_major = 1,  // all four of row/col; otherwise .row.col
  satfinite = 2,  // .satfinite may be written
  roundings = 4,  // .rn .rz .rm .rp may be written
  needs_vec = 8,  // .scale_vec must be written (otherwise it may be left out)
};

/// A row of mma.
struct Mma {
  Shape shape;  // for sparse rows, k counts the dense columns
  Type d;
  TypeSet a, b;
  Type c;
  int options;  // MmaOption bits
  Kind kind = Kind::none;
  BitOp bit_op = BitOp::none;
  int scale_vec = 0;             // block-scaled rows: scales per row of A (and column of B)
  Type scale_type = Type::none;  // their type
  Since since;                   // sparse rows: of .sp::ordered_metadata
  bool sparse = false;
  Version plain_sp = {};  // sparse rows: the version from which .sp alone is accepted; 0.0: never
};

// ---- wgmma.mma_async (9.7.15): a warpgroup's 64 x N product; N is 8 to 256, K follows from the
// types. C and D are the same registers.

/// A row of wgmma.mma_async.
struct Wgmma {
  int k;  // dense; sparse forms take twice that
  Type d;
  TypeSet a, b;
  bool every_n = false;   // N in steps of 8; otherwise 8, 16, 24, 32 and from there in steps of 16
  bool floating = false;  // takes imm-scale-a and imm-scale-b
  bool majors = false;    // takes imm-trans for operands in shared memory
  bool satfinite = false;
  BitOp bit_op = BitOp::none;
  Since since;
  Version sparse = {};  // the version from which .sp exists; 0.0: it does not
};

/// Whether `n` columns are legal for a row of the table.
constexpr bool legal_n(const Wgmma& row, int n) {
  if (n < 8 || n > 256 || n % 8) return false;
  return row.every_n || n <= 32 || n % 16 == 0;
}

/// All rows of a family.
std::span<const MatrixMove> matrix_move_rows();
std::span<const Wmma> wmma_rows();
std::span<const Mma> mma_rows();
std::span<const Wgmma> wgmma_rows();

}  // namespace tartan::TARTAN_ABI::isa
