// SPDX-License-Identifier: Apache-2.0
#include "dsl/fragment.h"

#include <fmt/format.h>

#include "dsl/state.h"

namespace tartan {

std::string MmaShape::text() const { return (wmma ? "wmma " : "") + shape.text(); }

isa::Form FragmentKind::form() const {
  isa::Form out{.opcode = shape.wmma ? isa::Opcode::wmma_mma : isa::Opcode::mma,
                .shape = shape.shape};
  out.a_major = Major::row, out.b_major = Major::col;
  out.d = out.a = out.b = out.c = type;
  return out;
}

std::string FragmentKind::text() const {
  constexpr std::string_view letters[] = {"?", "A", "B", "C", "D"};
  return fmt::format("{} of {} ({})", letters[static_cast<int>(operand)], shape.text(), name(type));
}

FragmentVariable& FragmentVariable::operator=(const Fragment& fragment) {
  detail::KernelState::assign(*this, fragment);
  return *this;
}

FragmentVariable::operator Fragment() const { return detail::KernelState::read(*this); }

}  // namespace tartan
