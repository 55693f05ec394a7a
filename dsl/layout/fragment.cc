// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/fragment.h"

#include <fmt/format.h>

#include "dsl/layout/fragments.h"

namespace tartan::TARTAN_ABI {

namespace {

constexpr std::string_view kind_names[] = {"", " kind::f8f6f4", " kind::mxf8f6f4", " kind::mxf4",
                                           " kind::mxf4nvf4"};

bool is_input(Operand operand) { return operand == Operand::a || operand == Operand::b; }

bool has(const isa::Mma& row, const FragmentKind& kind) {
  if (!(row.shape == kind.shape.shape) || row.kind != kind.shape.kind ||
      row.sparse != kind.shape.sparse)
    return false;
  switch (kind.operand) {
    case Operand::a: return row.a.has(kind.type);
    case Operand::b: return row.b.has(kind.type);
    case Operand::c: {
      // Also accumulators that were converted to elements of a result.
      constexpr TypeSet results{f32, f16, bf16, s8, u8, Type::e4m3, Type::e5m2};
      const bool rounded = (row.c == f32 || row.c == s32) && results.has(kind.type) &&
                           row.shape.m * row.shape.n * bits(kind.type) >= 32 * 32;
      return row.c == kind.type || row.d == kind.type || rounded;
    }
    default: return false;
  }
}

bool has(const isa::Wmma& row, const FragmentKind& kind) {
  if (!(row.shape == kind.shape.shape) || kind.shape.sparse || kind.shape.kind != isa::Kind::none)
    return false;
  return kind.operand != Operand::none && (is_input(kind.operand) ? row.ab : row.cd).has(kind.type);
}

const isa::Mma* mma_row(const FragmentKind& kind) {
  for (const isa::Mma& row : isa::mma_rows())
    if (has(row, kind)) return &row;
  return nullptr;
}

}  // namespace

std::string MmaShape::text() const {
  return fmt::format("{}{}{}{}", wmma ? "wmma " : "", sparse ? "sparse " : "", shape.text(),
                     kind_names[static_cast<int>(kind)]);
}

isa::Form FragmentKind::form() const {
  isa::Form out{.opcode = shape.wmma ? isa::Opcode::wmma_mma : isa::Opcode::mma,
                .shape = shape.shape};
  out.a_major = operand == Operand::a && major != Major::none ? major : Major::row;
  out.b_major = operand == Operand::b && major != Major::none ? major : Major::col;
  out.sparsity = shape.sparse ? isa::Sparsity::sp_ordered_metadata : isa::Sparsity::dense;
  out.kind = shape.kind;
  out.d = out.a = out.b = out.c = type;
  // The accumulators of m8n8k4 on f16 have another layout than those on f64.
  if (!shape.wmma && !is_input(operand))
    if (const isa::Mma* row = mma_row(*this)) out.a = row->a.first(), out.b = row->b.first();
  return out;
}

isa::Fragment FragmentKind::fragment() const {
  return exists() ? isa::fragment(form(), operand) : isa::Fragment{};
}

bool FragmentKind::exists() const {
  if (!shape.wmma) return mma_row(*this) != nullptr;
  for (const isa::Wmma& row : isa::wmma_rows())
    if (has(row, *this)) return true;
  return false;
}

std::string FragmentKind::text() const {
  constexpr std::string_view letters[] = {"?", "A", "B", "C", "D"};
  return fmt::format("{} of {} ({}{}{})", letters[static_cast<int>(operand)], shape.text(),
                     name(type), major == Major::none ? "" : ", ", name(major));
}

FragmentVariable& FragmentVariable::operator=(const Fragment& fragment) {
  detail::assign(*this, fragment);
  return *this;
}

FragmentVariable::operator Fragment() const { return detail::read({this, 1})[0]; }

}  // namespace tartan::TARTAN_ABI
