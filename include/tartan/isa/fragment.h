// SPDX-License-Identifier: Apache-2.0
// tartan/isa/fragment.h - lane maps: which element of a matrix each lane's registers hold.
//
// Lanes form eight groups of four. In an m16n8 product a group owns a row (A, C, D) or a column
// (B); its four members take neighbouring 32-bit registers along the other axis. E elements share a
// register, the first in the low bits:
//
//   A, k = 8E            registers r: 0 | 2      B   r: 0      C, D   i: 0 1
//   row g                          ---+---              ---             ----
//   row g + 8                       1 | 3               1               2 3
//   columns E*t ..      first half | second half of k   rows E*t ..      columns 2t, 2t+1
//
// mma maps are the manual's (PTX ISA 9.0, 9.7.14.5). The manual leaves wmma fragments unspecified;
// the maps here were recorded on sm_90. Every map is proven a bijection below, at compile time.
#pragma once

#include "tartan/isa/form.h"

namespace tartan::TARTAN_ABI::isa {

/// The registers of an operand.
struct Fragment {
  Type type = Type::none;  // of an element
  int rows = 0, cols = 0;  // of the matrix; A of sparse forms: the compressed one (k/2 columns)
  int matrices =
      1;  // independent matrices: ldmatrix .x4 has 4, mma.m8n8k4 on f16 has 4 (one per quad pair)
  int registers = 0;       // per lane
  int register_bits = 32;  // 64 for f64
  int per_register = 1;    // E
  int container_bits = 0;  // bits from one element of a register to the next
  int copies = 1;  // wmma on f16: the fragment repeats itself this often; later copies are ignored
                   // by wmma.mma

  constexpr int elements() const { return registers * per_register; }
  constexpr bool operator==(const Fragment&) const = default;
};

/// A place in an operand's matrix. ldmatrix and stmatrix: in memory (row = the row whose address
/// was given, col = element of that row).
struct Coord {
  int matrix = 0, row = 0, col = 0;
  constexpr bool operator==(const Coord&) const = default;
};

/// Bits that an element of a form's A or B occupies in its register: kind::f8f6f4 and mxf8f6f4 keep
/// elements of six and four bits in bytes.
constexpr int container_bits(const Form& form, Type type) {
  return form.kind == Kind::f8f6f4 || form.kind == Kind::mxf8f6f4 ? 8 : bits(type);
}

namespace detail {

constexpr bool quad_pairs(const Form& f) {
  return f.opcode == Opcode::mma && f.shape == Shape{8, 8, 4} && f.a != f64;
}
constexpr bool is_wmma(const Form& f) {
  return f.opcode == Opcode::wmma_mma || f.opcode == Opcode::wmma_load ||
         f.opcode == Opcode::wmma_store;
}

constexpr Fragment make(Type type, int rows, int cols, int container, int lanes, int matrices) {
  Fragment out;
  out.type = type;
  out.rows = rows;
  out.cols = cols;
  out.matrices = matrices;
  out.container_bits = container;
  out.register_bits = container == 64 ? 64 : 32;
  out.per_register = out.register_bits / container;
  const int registers = rows * cols * matrices / out.per_register / lanes;
  out.registers = registers > 0 ? registers : 1;  // undocumented forms may not fill it
  return out;
}

constexpr Fragment move_fragment(const Form& f) {
  // In registers each value of a packed format takes one byte; in memory a row has 16 bytes in
  // every format. stmatrix.m16n8 stores its matrices transposed: 8 rows of 16 bytes.
  const int container = f.d == b16 ? 16 : 8;
  const bool turned = f.opcode == Opcode::stmatrix;
  return make(f.d, turned ? f.shape.n : f.shape.m, turned ? f.shape.m : f.shape.n, container, 32,
              f.count ? f.count : 1);
}

}  // namespace detail

/// The fragment of `operand` in `form`, which must exist. Loads and stores have one operand and
/// ignore `operand`.
constexpr Fragment fragment(const Form& f, Operand operand) {
  if (f.opcode == Opcode::ldmatrix || f.opcode == Opcode::stmatrix || f.opcode == Opcode::movmatrix)
    return detail::move_fragment(f);
  Type type = operand == Operand::a   ? f.a
              : operand == Operand::b ? f.b
              : operand == Operand::c ? f.c
                                      : f.d;
  if (f.opcode == Opcode::wmma_load || f.opcode == Opcode::wmma_store) {
    operand = f.operand;
    type = f.d;
  }
  const int lanes = f.opcode == Opcode::wgmma ? 128 : 32;
  const int matrices = detail::quad_pairs(f) ? 4 : 1;
  const bool sparse = f.sparsity != Sparsity::dense;
  const int container =
      operand == Operand::a || operand == Operand::b ? container_bits(f, type) : bits(type);
  Fragment out;
  if (operand == Operand::a)
    out = detail::make(type, f.shape.m, sparse ? f.shape.k / 2 : f.shape.k, container, lanes,
                       matrices);
  else if (operand == Operand::b)
    out = detail::make(type, f.shape.k, f.shape.n, container, lanes, matrices);
  else out = detail::make(type, f.shape.m, f.shape.n, container, lanes, matrices);
  if (detail::is_wmma(f) && type == f16 && (operand == Operand::a || operand == Operand::b)) {
    out.copies = 8 / out.registers;
    out.registers = 8;
  }
  return out;
}

namespace detail {

// mma.m8n8k4 on f16: four products, one per quad pair (lanes 4q.. and 16+4q..).
constexpr Coord quad_pair_coord(const Form& f, Operand operand, int lane, int i) {
  const int matrix = lane % 16 / 4, in_quad = lane % 4, high = lane / 16;
  switch (operand) {
    case Operand::a:
      if (f.a_major == Major::row) return {matrix, in_quad + 4 * high, i};
      return {matrix, i + 4 * high, in_quad};
    case Operand::b:
      if (f.b_major == Major::row) return {matrix, in_quad, i + 4 * high};
      return {matrix, i, in_quad + 4 * high};
    default:
      if ((operand == Operand::c ? f.c : f.d) == f16) return {matrix, in_quad + 4 * high, i};
      return {matrix, (lane & 1) + (i & 2) + 4 * high, (i & 4) + (lane & 2) + (i & 1)};
  }
}

// sm_90's wmma fragments: an m16n16 product is two m16n8 products side by side, m32n8 two stacked,
// m8n32 the transpose of m32n8.
constexpr Coord wmma_coord(const Form& f, const Fragment& fragment, Operand operand, int lane,
                           int i) {
  const int group = lane / 4, member = lane % 4, e = i % fragment.per_register;
  const int per = fragment.per_register;
  const int r = i / per % (fragment.registers / fragment.copies);
  const bool floats = bits(fragment.type) >= 16 && fragment.type != s32 && fragment.type != f64;
  if (operand == Operand::a || operand == Operand::b) {
    // `outer` runs along m (A) or n (B), `along` along k.
    int outer = group, along = per * member + e;
    if (!floats) {
      outer += 8 * r;
    } else {
      const int rows = operand == Operand::a ? fragment.rows : fragment.cols;
      const bool k_first = rows == 8 || (operand == Operand::b && f.shape.n == 16);
      const int k_bit = k_first ? r & 1 : r >> 1 & 1;
      along += 4 * per * k_bit;
      if (rows == 16) outer += 8 * (k_first ? r >> 1 & 1 : r & 1);
      if (rows == 32) outer += 8 * (r & 1) + 16 * (r >> 2);
    }
    return operand == Operand::a ? Coord{0, outer, along} : Coord{0, along, outer};
  }
  if (f.shape.m == 8 && f.shape.n == 8) return {0, group, 2 * member + i};
  if (f.shape.m == 32) return {0, group + 8 * (i >> 1), 2 * member + (i & 1)};
  if (f.shape.m == 8) return {0, 2 * member + (i & 1), group + 8 * (i >> 1)};
  return {0, group + 8 * (i >> 1 & 1), 2 * member + (i & 1) + 8 * (i >> 2)};
}

// mma and wgmma. A warpgroup's lane is 0..127: each of its warps owns 16 rows.
constexpr Coord mma_coord(const Form& f, const Fragment& fragment, Operand operand, int lane,
                          int i) {
  const int warp = lane / 32, group = lane % 32 / 4, member = lane % 4;
  const int per = fragment.per_register, r = i / per, e = i % per;
  if (operand == Operand::a) {
    const bool tall = f.shape.m > 8;
    const int row = 16 * warp + group + (tall ? 8 * (r & 1) : 0);
    return {0, row, per * member + e + 4 * per * (tall ? r >> 1 : r)};
  }
  if (operand == Operand::b) return {0, per * member + e + 4 * per * r, group};
  if (f.shape.m == 8) return {0, group, 2 * member + i};
  return {0, 16 * warp + group + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * member + (i & 1)};
}

// ldmatrix, stmatrix: coordinates in memory. movmatrix: coordinates in the matrix that it reads
// (element of the transposed result).
constexpr Coord move_coord(const Form& f, int lane, int i) {
  const int group = lane / 4, member = lane % 4;
  if (f.d == b16) {
    const int matrix = i / 2, along = 2 * member + i % 2;
    return f.trans ? Coord{matrix, along, group} : Coord{matrix, group, along};
  }
  const int r = i / 4, byte = i % 4;
  if (f.opcode == Opcode::stmatrix)
    return {r, 2 * member + (byte & 1),
            group + 8 * (byte >> 1)};  // m16n8: stored transposed, 8 rows of 16
  if (f.shape.m == 16) return {r / 2, 4 * member + byte, group + 8 * (r % 2)};
  return {r, group, 4 * member + byte};
}

}  // namespace detail

/// Where element `i` (0 .. fragment.elements()-1; register i / E, position i % E from the low bits)
/// of `lane` sits.
constexpr Coord coord(const Form& f, Operand operand, int lane, int i) {
  if (f.opcode == Opcode::ldmatrix || f.opcode == Opcode::stmatrix || f.opcode == Opcode::movmatrix)
    return detail::move_coord(f, lane, i);
  const Fragment frag = fragment(f, operand);
  if (f.opcode == Opcode::wmma_load || f.opcode == Opcode::wmma_store) operand = f.operand;
  if (detail::is_wmma(f)) return detail::wmma_coord(f, frag, operand, lane, i);
  if (detail::quad_pairs(f)) return detail::quad_pair_coord(f, operand, lane, i);
  return detail::mma_coord(f, frag, operand, lane, i);
}

/// ldmatrix, stmatrix: the lane whose address register points to `row` of matrix `matrix` (16-byte
/// rows).
constexpr int address_lane(const Form& f, int matrix, int row) {
  const int rows = f.opcode == Opcode::ldmatrix
                       ? f.shape.m
                       : 8;  // stmatrix.m16n8 writes the 8 rows of the transposed matrix
  return rows * matrix + row;
}

// ---- Sparse A: the metadata (PTX ISA 9.0, 9.7.14.6; maps as recorded on sm_90).

/// Dense columns that one 4-bit code covers.
constexpr int columns_per_code(Type a) { return bits(a) == 32 ? 2 : bits(a) == 4 ? 8 : 4; }
/// Codes per row of A.
constexpr int codes_per_row(const Form& f) {
  return f.shape.k /
         (f.kind == Kind::f8f6f4 || f.kind == Kind::mxf8f6f4 ? 4 : columns_per_code(f.a));
}
/// The number of legal selectors: 0 .. selectors-1. A warp's metadata words hold 16 lanes' worth
/// for one row of codes each.
constexpr int selectors(const Form& f) {
  return f.opcode == Opcode::wgmma ? (codes_per_row(f) == 8 ? 2 : 1) : 16 / codes_per_row(f);
}

/// Where the metadata of a sparse A is: the bits of one code.
struct MetadataBits {
  int lane;    // whose metadata register
  int lowest;  // bit of it, of four
};

/// Where code `j` of row `row` of A is.
constexpr MetadataBits metadata(const Form& f, int row, int j, int selector) {
  const int warp = row / 16, half = row % 16 / 8, group = row % 8;
  const int first = 32 * warp + 4 * group;
  const bool integers = !info(f.a).floating;
  switch (codes_per_row(f)) {
    case 4: return {first + selector, 16 * half + 4 * j};
    case 8:
      if (integers) return {first + 2 * selector + half, 4 * j};
      return {first + 2 * selector + j / 4, 16 * half + 4 * (j % 4)};
    default: return {first + half + 2 * (j / 8), 4 * (j % 8)};
  }
}

}  // namespace tartan::TARTAN_ABI::isa
