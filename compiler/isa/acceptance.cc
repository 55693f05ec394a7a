// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/acceptance.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

bool shared_only(StateSpace space) { return space != StateSpace::global; }

// `form` reduced to the columns of its family: a form with anything else set is illegal.
Form bare(const Form& form) {
  Form out;
  out.opcode = form.opcode;
  out.shape = form.shape;
  return out;
}

bool majors_fit(bool any, const Form& f) {
  if (any) return f.a_major != Major::none && f.b_major != Major::none;
  return f.a_major == Major::row && f.b_major == Major::col;
}

}  // namespace

bool accepts(const MatrixMove& row, const Form& f) {
  if (row.opcode != f.opcode || !(row.shape == f.shape) || row.format != f.d || !row.from.has(f.a))
    return false;
  if (row.counts ? !(f.count == 1 || f.count == 2 || f.count == 4) || !(row.counts & f.count)
                 : f.count)
    return false;
  if (row.trans != Trans::Optional && f.trans != (row.trans == Trans::Always)) return false;
  if (row.opcode == Opcode::movmatrix ? f.space != StateSpace::none : !shared_only(f.space))
    return false;
  Form same = bare(f);
  same.d = f.d, same.a = f.a, same.count = f.count, same.trans = f.trans, same.space = f.space;
  return same == f;
}

bool accepts_load(const Wmma& row, const Form& f) {
  if (!(row.shape == f.shape) || f.a_major == Major::none) return false;
  if (f.operand == Operand::a || f.operand == Operand::b) {
    if (!row.ab.has(f.d)) return false;
    if (!row.any_major && f.a_major != (f.operand == Operand::a ? Major::row : Major::col))
      return false;
  } else if (!row.cd.has(f.d)) {
    return false;
  }
  Form same = bare(f);
  same.operand = f.operand, same.a_major = f.a_major, same.d = f.d, same.space = f.space,
  same.stride = f.stride;
  return same == f;
}

bool accepts_product(const Wmma& row, const Form& f) {
  if (!(row.shape == f.shape) || !majors_fit(row.any_major, f)) return false;
  if (!row.ab.has(f.a) || f.a != f.b || !row.cd.has(f.d) || !row.cd.has(f.c) ||
      row.bit_op != f.bit_op)
    return false;
  if ((f.satfinite && !row.satfinite) || (f.rounding != Rounding::none && !row.roundings))
    return false;
  Form same = bare(f);
  same.a_major = f.a_major, same.b_major = f.b_major, same.d = f.d, same.a = f.a, same.b = f.b,
  same.c = f.c;
  same.bit_op = f.bit_op, same.satfinite = f.satfinite, same.rounding = f.rounding;
  return same == f;
}

bool accepts(const Mma& row, const Form& f) {
  if (!(row.shape == f.shape) || !majors_fit(row.options & any_major, f)) return false;
  if (row.d != f.d || !row.a.has(f.a) || !row.b.has(f.b) || row.c != f.c) return false;
  if (row.kind != f.kind || row.bit_op != f.bit_op || row.scale_type != f.scale_type) return false;
  if (row.sparse ? f.sparsity == Sparsity::dense ||
                       (f.sparsity == Sparsity::sp && row.plain_sp == Version{})
                 : f.sparsity != Sparsity::dense)
    return false;
  if (f.block_scale != (row.scale_vec != 0)) return false;
  if (f.scale_vec ? f.scale_vec != row.scale_vec : (row.options & needs_vec) != 0) return false;
  if ((f.satfinite && !(row.options & satfinite)) ||
      (f.rounding != Rounding::none && !(row.options & roundings)))
    return false;
  Form same = bare(f);
  same.a_major = f.a_major, same.b_major = f.b_major, same.d = f.d, same.a = f.a, same.b = f.b,
  same.c = f.c;
  same.kind = f.kind, same.bit_op = f.bit_op, same.scale_type = f.scale_type,
  same.sparsity = f.sparsity;
  same.block_scale = f.block_scale, same.scale_vec = f.scale_vec, same.satfinite = f.satfinite,
  same.rounding = f.rounding;
  return same == f;
}

bool accepts(const Wgmma& row, const Form& f) {
  if (f.shape.m != 64 || !legal_n(row, f.shape.n)) return false;
  if (f.sparsity == Sparsity::sp_ordered_metadata) return false;
  const bool sparse = f.sparsity == Sparsity::sp;
  if (f.shape.k != (sparse ? 2 * row.k : row.k) || (sparse && row.sparse == Version{}))
    return false;
  if (row.d != f.d || !row.a.has(f.a) || !row.b.has(f.b) || f.c != f.d || row.bit_op != f.bit_op)
    return false;
  if (f.satfinite && !row.satfinite) return false;
  Form same = bare(f);
  same.d = f.d, same.a = f.a, same.b = f.b, same.c = f.c, same.sparsity = f.sparsity,
  same.bit_op = f.bit_op;
  same.satfinite = f.satfinite, same.a_in_registers = f.a_in_registers;
  return same == f;
}

}  // namespace tartan::TARTAN_ABI::isa
