// SPDX-License-Identifier: Apache-2.0
// Matches the vectors of registers that hold a fragment. What they may be beside registers of one
// type follows the assembler.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/counted.h"
#include "compiler/verify/operand_matcher.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Form;
using isa::Opcode;
using isa::Role;

bool is_wmma(const Form& form) {
  return form.opcode == Opcode::wmma_load || form.opcode == Opcode::wmma_store ||
         form.opcode == Opcode::wmma_mma;
}

bool is_number(const ptx::Operand& operand) {
  return operand.kind == ptx::OperandKind::Integer || operand.kind == ptx::OperandKind::Float;
}

// A constant among the registers of a fragment that is read.
bool takes_constant(const ptx::Operand& operand, Role role, Type type, const Form& form) {
  const bool integer = operand.kind == ptx::OperandKind::Integer;
  if (role == Role::d) return false;
  if (form.opcode == Opcode::wmma_mma && role == Role::b && form.b != f16 && form.b != bf16)
    return false;
  if (form.opcode == Opcode::wmma_store && !integer) return operand.type == f32 && type == f32;
  if (form.opcode == Opcode::wmma_mma && !integer && role == Role::c && form.c == f16)
    return operand.type == f32;
  return !integer || (type != Type::f32 && (type != Type::f64 || role != Role::c));
}

// _ among the registers of a result: illegal if the result is also read, and for tf32 in wmma.mma.
bool takes_sink(Role role, const Form& form) {
  return role == Role::d && form.opcode != Opcode::wgmma &&
         (form.opcode != Opcode::wmma_mma || form.a != tf32);
}

}  // namespace

bool OperandMatcher::fragment_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  const Form form = isa::form_of(wanted.spelling);
  // A register declared with .v2 or .v4, without braces. The assembler dies of it in wmma; A of
  // wgmma is only known by its braces.
  if (is_register(operand)) {
    const NameInfo& info = names_.of(operand);
    return operand.text.find('.') == std::string_view::npos && info.vector > 1 &&
           fragment_count_fits(info.vector, wanted) && !is_wmma(form) &&
           (form.opcode != Opcode::wgmma || wanted.row.written) && wanted.registers.has(info.type);
  }
  if (operand.kind != ptx::OperandKind::Vector ||
      !fragment_count_fits(static_cast<int>(operand.count), wanted))
    return false;
  const auto elements = module_.children(operand);
  const TypeSet types = fragment_types(elements, wanted, form);
  return std::ranges::all_of(elements,
                             [&](const ptx::Operand& each) {
                               return fragment_element_fits(each, wanted, types, form);
                             }) &&
         fragment_has_type(elements, wanted, form);
}

bool OperandMatcher::fragment_count_fits(int count, const Wanted& wanted) {
  if (wanted.row.elements == isa::any_matrices) return count == 1 || count == 2 || count == 4;
  return count == wanted.elements;
}

bool OperandMatcher::fragment_element_fits(const ptx::Operand& element, const Wanted& wanted,
                                           TypeSet types, const Form& form) const {
  const Role role = wanted.row.role;
  if (is_number(element)) return takes_constant(element, role, wanted.type, form);
  if (element.kind != ptx::OperandKind::Name) return false;
  const std::string_view base = base_name(element.text);
  if (base == "_") return takes_sink(role, form);
  const NameInfo& info = names_.of(element);
  // An element of a vector is a scalar, too.
  return info.kind == NameKind::Register && types.has(info.type) &&
         (info.vector == 1) == (base == element.text);
}

// Registers of several types in one vector: .b types combine with any type of their size, signed
// with unsigned. The vector then counts as .b, which fits every operand. Returns the types that
// occur, or only the first if some do not combine.
TypeSet OperandMatcher::fragment_types(std::span<const ptx::Operand> elements, const Wanted& wanted,
                                       const Form& form) const {
  TypeSet types, clash;
  Type joined = Type::none;
  bool several = false;
  for (const ptx::Operand& each : elements) {
    if (!is_register(each)) continue;
    const Type type = names_.of(each).type;
    if (types.mask == 0 && wanted.registers.has(type)) clash = type;
    types.mask |= TypeSet(type).mask;
    if (form.opcode == Opcode::wmma_mma && wanted.row.role == Role::b && form.b == tf32) continue;
    if (joined == Type::none || joined == type) {
      joined = type;
      continue;
    }
    const Type whole = bits(joined) == 64 ? Type::b64 : Type::b32;
    const auto integer = [](Type each) { return !info(each).floating && each != Type::f16x2; };
    if (bits(joined) != bits(type) || bits(joined) != bits(wanted.type) ||
        !(joined == whole || type == whole || (integer(joined) && integer(type))))
      return clash.mask ? clash : wanted.registers;
    joined = whole;
    several = true;
  }
  return several ? types : wanted.registers;
}

// The vector's type follows from its registers; without any, from constants: integers are s32,
// 0f3F800000 is f32.
bool OperandMatcher::fragment_has_type(std::span<const ptx::Operand> elements, const Wanted& wanted,
                                       const Form& form) const {
  const auto typeless = [](const ptx::Operand& each) {
    return each.kind != ptx::OperandKind::Name || each.text == "_";
  };
  if (!std::ranges::all_of(elements, typeless)) return true;
  const Type written = form.opcode == Opcode::wmma_store ? form.d : form.c;
  const bool sink =
      std::ranges::any_of(elements, [](const auto& each) { return each.text == "_"; });
  if (wanted.row.role == Role::c && elements.size() > 1 && written == s32 && !sink) return true;
  const auto is_float = [](const ptx::Operand& each) {
    return each.kind == ptx::OperandKind::Float;
  };
  const auto is_single = [](const ptx::Operand& each) { return each.type == f32; };
  return std::ranges::all_of(elements, is_float) &&
         (wanted.registers.has(f64) ||
          (wanted.registers.has(f32) && std::ranges::any_of(elements, is_single)));
}

OperandMatcher::Expectation OperandMatcher::fragment_expectation(const ptx::Operand& operand,
                                                                 const Wanted& want) const {
  const std::string count = want.row.elements == isa::any_matrices
                                ? "1, 2 or 4 registers"
                                : detail::counted(want.elements, "register");
  if (operand.kind != ptx::OperandKind::Vector)
    return {&"operand-kind"_rule, fmt::format("a vector {{...}} of {}", count), &operand};
  if (!fragment_count_fits(static_cast<int>(operand.count), want))
    return {&"register-count"_rule, count, &operand};
  const Form form = isa::form_of(want.spelling);
  const auto elements = module_.children(operand);
  const TypeSet types = fragment_types(elements, want, form);
  for (const ptx::Operand& each : elements) {
    if (fragment_element_fits(each, want, types, form)) continue;
    return {is_register(each) ? &"register-type"_rule : &"operand-kind"_rule,
            "registers of type " + types_text(types), &each};
  }
  return {&"operand-kind"_rule, "at least one register that is not _", &operand};
}

}  // namespace tartan::TARTAN_ABI::verify
