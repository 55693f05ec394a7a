// SPDX-License-Identifier: Apache-2.0
// Proves that every lane map is a bijection: each element of each operand's matrix is in exactly
// one place (or in `copies` places).
#include "tartan/isa/fragment.h"

#include "compiler/isa/tables.h"
#include "tartan/isa/tensor_memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// Counts how often each element of the matrix is held, and compares with the number of copies.
consteval bool bijective(const Form& form, Operand operand, int lanes = 32) {
  const Fragment frag = fragment(form, operand);
  const int size = frag.matrices * frag.rows * frag.cols;
  if (frag.registers * frag.per_register * lanes != size * frag.copies) return false;
  std::uint8_t held[64 * 256] = {};
  if (size > 64 * 256) return false;
  for (int lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < frag.elements(); ++i) {
      const Coord at = coord(form, operand, lane, i);
      if (at.matrix < 0 || at.matrix >= frag.matrices || at.row < 0 || at.row >= frag.rows ||
          at.col < 0 || at.col >= frag.cols)
        return false;
      ++held[(at.matrix * frag.rows + at.row) * frag.cols + at.col];
    }
  for (int i = 0; i < size; ++i)
    if (held[i] != frag.copies) return false;
  return true;
}

consteval bool moves_bijective() {
  for (const MatrixMove& row : matrix_moves)
    for (const int count : {0, 1, 2, 4})
      for (const bool trans : {false, true}) {
        if ((row.counts & count) != count || (count == 0) != (row.counts == 0)) continue;
        if (row.trans != Trans::Optional && trans != (row.trans == Trans::Always)) continue;
        Form f{.opcode = row.opcode, .shape = row.shape, .d = row.format, .a = row.from.first()};
        f.count = static_cast<std::uint8_t>(count), f.trans = trans;
        if (!bijective(f, Operand::a)) return false;
      }
  return true;
}
static_assert(moves_bijective());

consteval bool products_bijective(Form f) {
  return bijective(f, Operand::a) && bijective(f, Operand::b) && bijective(f, Operand::c) &&
         bijective(f, Operand::d);
}

consteval bool wmmas_bijective() {
  for (const Wmma& row : wmmas)
    for (const TypeInfo& ab : type_table)
      for (const TypeInfo& cd : type_table) {
        if (!row.ab.has(ab.type) || !row.cd.has(cd.type)) continue;
        if (!products_bijective({.opcode = Opcode::wmma_mma,
                                 .shape = row.shape,
                                 .d = cd.type,
                                 .a = ab.type,
                                 .b = ab.type,
                                 .c = cd.type}))
          return false;
      }
  return true;
}
static_assert(wmmas_bijective());

// The map depends only on a type's width, so the first type of each column represents all.
consteval bool mmas_bijective(bool sparse) {
  for (const Mma& row : mmas) {
    if (row.sparse != sparse) continue;
    Form f{.opcode = Opcode::mma,
           .shape = row.shape,
           .d = row.d,
           .a = row.a.first(),
           .b = row.b.first(),
           .c = row.c};
    f.kind = row.kind;
    f.sparsity = sparse ? Sparsity::sp_ordered_metadata : Sparsity::dense;
    for (const Major a : {Major::row, Major::col})
      for (const Major b : {Major::row, Major::col}) {
        if (!(row.options & any_major) && (a != Major::row || b != Major::col)) continue;
        f.a_major = a, f.b_major = b;
        if (!products_bijective(f)) return false;
      }
  }
  return true;
}
static_assert(mmas_bijective(false));
static_assert(mmas_bijective(true));

// D's map depends on the width of its elements alone, so each width is proven once.
consteval bool wgmmas_bijective() {
  int proven = 0;  // widths, each a bit of its own
  for (const Wgmma& row : wgmmas)
    for (const bool sparse : {false, true}) {
      if (sparse && row.sparse == Version{}) continue;
      Form f{
          .opcode = Opcode::wgmma, .d = row.d, .a = row.a.first(), .b = row.b.first(), .c = row.d};
      f.sparsity = sparse ? Sparsity::sp : Sparsity::dense;
      f.shape = {64, 256, static_cast<std::int16_t>(sparse ? 2 * row.k : row.k)};
      if (!bijective(f, Operand::a, 128)) return false;
      if (proven & bits(row.d)) continue;
      if (!bijective(f, Operand::d, 128)) return false;
      proven |= bits(row.d);
    }
  return true;
}
static_assert(wgmmas_bijective());

// Every code of every row of A has its own four bits of the metadata words, for any selector.
consteval bool metadata_disjoint(const Form& f) {
  const int lanes = f.opcode == Opcode::wgmma ? 128 : 32;
  for (int selector = 0; selector < selectors(f); ++selector) {
    std::uint32_t used[128] = {};
    for (int row = 0; row < f.shape.m; ++row)
      for (int j = 0; j < codes_per_row(f); ++j) {
        const MetadataBits bits = metadata(f, row, j, selector);
        if (bits.lane < 0 || bits.lane >= lanes || bits.lowest < 0 || bits.lowest > 28)
          return false;
        if (used[bits.lane] >> bits.lowest & 15) return false;
        used[bits.lane] |= 15u << bits.lowest;
      }
  }
  return true;
}

consteval bool metadata_disjoint() {
  for (const Mma& row : mmas) {
    if (!row.sparse) continue;
    Form f{.opcode = Opcode::mma,
           .shape = row.shape,
           .d = row.d,
           .a = row.a.first(),
           .b = row.b.first(),
           .c = row.c};
    f.kind = row.kind, f.sparsity = Sparsity::sp_ordered_metadata;
    if (!metadata_disjoint(f)) return false;
  }
  return true;
}
static_assert(metadata_disjoint());

// Each cell of tensor memory that an access reaches is held by the element that holder() names, and
// there are as many cells as elements. More repetitions only continue the columns.
consteval bool tensor_accesses_bijective() {
  for (const TensorShape& shape : tensor_shapes)
    for (const int repeats : {1, 2, 4})
      for (const bool packed : {false, true}) {
        TensorAccess access{.shape = &shape, .repeats = repeats, .packed = packed};
        access.half_split_offset = access.columns();
        access.first = first_cell(shape, 16 << 16 | 5, 2);
        if (access.elements() * 32 != access.columns() * shape.lanes() * (shape.split ? 2 : 1))
          return false;
        for (int thread = 0; thread < 32; ++thread)
          for (int i = 0; i < access.elements(); ++i)
            if (holder(access, cell(access, thread, i)) != TensorHolder{thread, i}) return false;
      }
  return true;
}
static_assert(tensor_accesses_bijective());

}  // namespace
}  // namespace tartan::TARTAN_ABI::isa
