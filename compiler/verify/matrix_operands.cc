// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/matrix_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/counted.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::OperandSpec;
using isa::Role;

std::string_view kind_name(ptx::OperandKind kind) {
  switch (kind) {
    case ptx::OperandKind::Name: return "a bare name";
    case ptx::OperandKind::Integer: return "an integer";
    case ptx::OperandKind::Float: return "a floating-point number";
    case ptx::OperandKind::Vector: return "a vector {...}";
    case ptx::OperandKind::Address: return "an address [...]";
    case ptx::OperandKind::Pair: return "a pair p|q";
    case ptx::OperandKind::Not: return "a negated predicate";
    case ptx::OperandKind::Negative: return "a negated register";
    case ptx::OperandKind::List: return "a list (...)";
    case ptx::OperandKind::String: return "a string";
    case ptx::OperandKind::Element: return "an element of an array";
  }
  return "";
}

// The element type of a role, which determines the register types.
Type element_type(const isa::Instruction& row, Role role) {
  const isa::Form& form = row.form;
  const bool load = form.opcode == isa::Opcode::wmma_load || form.opcode == isa::Opcode::wmma_store;
  if (load) return form.d;
  return role == Role::a ? form.a : role == Role::b ? form.b : role == Role::c ? form.c : form.d;
}

constexpr TypeSet any_32_bits{Type::b32, Type::u32, Type::s32, Type::f32, Type::f16x2};

bool moves_bits(isa::Opcode opcode) {
  return opcode == isa::Opcode::ldmatrix || opcode == isa::Opcode::stmatrix ||
         opcode == isa::Opcode::movmatrix;
}

// Types for inputs of a product in 32-bit registers.
TypeSet fitting_input(Type element, const isa::Form& form) {
  if (element == f16) return {Type::b32, Type::f16x2};
  switch (form.opcode) {
    case isa::Opcode::wgmma:
      return info(element).floating ? TypeSet{Type::b32, Type::f16x2} : any_32_bits;
    case isa::Opcode::mma:
      if (form.block_scale ||
          (form.sparsity == isa::Sparsity::dense && (element == bf16 || element == tf32)))
        return Type::b32;
      return any_32_bits;
    case isa::Opcode::wmma_load:
      if (bits(element) < 8) return any_32_bits;
      break;
    default: break;
  }
  if (info(element).floating) return Type::b32;
  return {Type::b32, Type::u32, Type::s32};
}

// The register types that fit an operand: .b32 fits every 32-bit operand, others as measured with
// the assembler.
TypeSet fitting(const OperandSpec& spec, const isa::Instruction& row) {
  const isa::Form& form = row.form;
  const bool fragment =
      spec.role == Role::a || spec.role == Role::b || spec.role == Role::c || spec.role == Role::d;
  switch (spec.type) {
    case Type::pred: return Type::pred;
    case Type::b64: return {Type::b64, Type::u64, Type::s64};
    case Type::b16: return {Type::b16, Type::u16, Type::s16};
    case Type::f64: {
      const bool accumulator =
          form.opcode == isa::Opcode::wmma_mma && (spec.role == Role::c || spec.role == Role::d);
      if (form.opcode == isa::Opcode::mma || accumulator)
        return {Type::f64, Type::b64, Type::s64, Type::u64};
      return {Type::f64, Type::b64};
    }
    case Type::f32: {
      const bool any = form.opcode == isa::Opcode::mma && form.sparsity != isa::Sparsity::dense &&
                       bits(form.a) > 8;
      return any ? any_32_bits : TypeSet{Type::f32, Type::b32};
    }
    default: break;
  }
  if (spec.role == Role::stride) return {Type::b32, Type::u32, Type::s32};
  if (!fragment || moves_bits(form.opcode)) return any_32_bits;
  const Type element = element_type(row, spec.role);
  const bool input = spec.role == Role::a || spec.role == Role::b || form.operand == Operand::a ||
                     form.operand == Operand::b;
  if (input) return fitting_input(element, form);
  return element == f16 ? TypeSet{Type::b32, Type::f16x2}
                        : TypeSet{Type::b32, Type::u32, Type::s32};
}

std::string type_list(TypeSet types) {
  std::string out;
  for (const TypeInfo& row : type_table)
    if (types.has(row.type)) out += fmt::format("{}.{}", out.empty() ? "" : " or ", row.name);
  return out;
}

}  // namespace

std::string MatrixOperands::label(const OperandSpec& spec) const {
  return fmt::format("operand {} of {}", name(spec.role), isa::spell(row_.form));
}

void MatrixOperands::report(const Rule& rule, const ptx::Operand& operand, std::string message) {
  context_.report(rule, operand.offset, std::max<std::size_t>(operand.text.size(), 1),
                  std::move(message));
}

void MatrixOperands::wrong_kind(const OperandSpec& spec, const ptx::Operand& operand,
                                std::string_view expected) {
  report("operand-kind"_rule, operand,
         fmt::format("{}: expected {}, found {}", label(spec), expected, kind_name(operand.kind)));
}

void MatrixOperands::check() {
  const auto operands = context_.module.operands_of(instruction_);
  const std::size_t expected = row_.operands.size();
  if (operands.size() != expected) {
    context_.report(
        "operand-count"_rule, instruction_.opcode,
        fmt::format("wrong number of operands: {} expects {} ({}), found {}", isa::spell(row_.form),
                    expected, isa::operands_text(row_), operands.size()));
    return;
  }
  for (std::size_t i = 0; i < expected; ++i) operand(row_.operands[i], operands[i]);
}

void MatrixOperands::operand(const OperandSpec& spec, const ptx::Operand& operand) {
  switch (spec.kind) {
    case isa::OperandKind::Vector: return vector(spec, operand);
    case isa::OperandKind::Address: return address(spec, operand);
    case isa::OperandKind::Immediate: return immediate(spec, operand);
    case isa::OperandKind::Pair: return pair(spec, operand);
    case isa::OperandKind::Register: break;
  }
  // Metadata and scales may have their own braces.
  const bool braces =
      spec.role == Role::metadata || spec.role == Role::scale_a || spec.role == Role::scale_b;
  if (braces && operand.kind == ptx::OperandKind::Vector && operand.count == 1)
    return element(spec, context_.module.children(operand)[0]);
  element(spec, operand);
}

void MatrixOperands::vector(const OperandSpec& spec, const ptx::Operand& operand) {
  if (whole_vector(spec, operand)) return;
  if (operand.kind != ptx::OperandKind::Vector)
    return wrong_kind(spec, operand,
                      spec.count == 1 ? "a vector of one register, {...}"
                                      : fmt::format("a vector of {} registers", spec.count));
  const auto elements = context_.module.children(operand);
  const int count = static_cast<int>(elements.size());
  const bool counts =
      spec.count == 0 ? count == 1 || count == 2 || count == 4 : count == spec.count;
  if (!counts)
    return report("register-count"_rule, operand,
                  fmt::format("{}: expected {}, found {}", label(spec),
                              spec.count == 0 ? "1, 2 or 4 registers"
                                              : detail::counted(spec.count, "register"),
                              count));
  const TypeSet mixed = mixture(spec, operand);
  for (const ptx::Operand& each : elements)
    element(spec, each, mixed.mask != 0 ? mixed : fitting(spec, row_));
  // The vector's type follows from its registers; without any, from constants: integers are s32,
  // 0f3F800000 is f32.
  const auto typeless = [](const ptx::Operand& each) {
    return each.kind != ptx::OperandKind::Name || each.text == "_";
  };
  const bool integers =
      spec.role == Role::c && count > 1 &&
      (row_.form.c == s32 || (row_.form.opcode == isa::Opcode::wmma_store && row_.form.d == s32));
  const bool sink = std::any_of(elements.begin(), elements.end(),
                                [](const ptx::Operand& each) { return each.text == "_"; });
  if (std::all_of(elements.begin(), elements.end(), typeless) && (sink || !integers) &&
      !floats(spec, elements))
    report("operand-kind"_rule, operand,
           fmt::format("{}: expected at least one register, found none", label(spec)));
}

// A vector of constants only, whose own type fits.
bool MatrixOperands::floats(const OperandSpec& spec, std::span<const ptx::Operand> elements) const {
  const auto number = [](const ptx::Operand& each) { return each.kind == ptx::OperandKind::Float; };
  const auto single = [](const ptx::Operand& each) { return each.type == f32; };
  if (!std::all_of(elements.begin(), elements.end(), number)) return false;
  return fitting(spec, row_).has(f64) ||
         (fitting(spec, row_).has(f32) && std::any_of(elements.begin(), elements.end(), single));
}

// Of a whole vector register: in wmma, and as a result that is a source as well.
bool MatrixOperands::assembler_dies(const OperandSpec& spec, const ptx::Operand& operand) const {
  const isa::Opcode opcode = row_.form.opcode;
  if (opcode == isa::Opcode::wmma_load || opcode == isa::Opcode::wmma_store ||
      opcode == isa::Opcode::wmma_mma)
    return true;
  return spec.role == Role::d && std::ranges::count(context_.module.operands_of(instruction_),
                                                    operand.text, &ptx::Operand::text) > 1;
}

// A register declared with .v2 or .v4, without braces.
bool MatrixOperands::whole_vector(const OperandSpec& spec, const ptx::Operand& operand) const {
  if (operand.kind != ptx::OperandKind::Name || operand.text.find('.') != std::string_view::npos)
    return false;
  const NameInfo found = scopes_.find(operand.text);
  const bool fits = spec.count == 0 ? found.vector > 1 : found.vector == spec.count;
  return found.kind == NameKind::Register && found.vector > 1 && fits &&
         !assembler_dies(spec, operand) && fitting(spec, row_).has(found.type);
}

// Registers of several types in one vector: .b types combine with any type of their size, signed
// with unsigned. The vector then counts as .b, which fits every operand. Returns the types that
// occur; only the first if some do not combine; none if there is only one.
TypeSet MatrixOperands::mixture(const OperandSpec& spec, const ptx::Operand& operand) {
  TypeSet types, clash;
  Type joined = Type::none;
  bool several = false;
  for (const ptx::Operand& each : context_.module.children(operand)) {
    if (each.kind != ptx::OperandKind::Name) continue;
    const NameInfo found = scopes_.find(base_name(each.text));
    if (found.kind != NameKind::Register) continue;
    if (types.mask == 0 && fitting(spec, row_).has(found.type)) clash = found.type;
    types.mask |= TypeSet(found.type).mask;
    if (row_.form.opcode == isa::Opcode::wmma_mma && spec.role == Role::b && row_.form.b == tf32)
      continue;
    if (joined == Type::none || joined == found.type) {
      joined = found.type;
      continue;
    }
    const Type whole = bits(joined) == 64 ? Type::b64 : Type::b32;
    const auto integer = [](Type type) { return !info(type).floating && type != Type::f16x2; };
    if (bits(joined) != bits(found.type) || bits(joined) != bits(spec.type) ||
        !(joined == whole || found.type == whole || (integer(joined) && integer(found.type))))
      return clash;
    joined = whole;
    several = true;
  }
  return several ? types : TypeSet{};
}

// A constant among the registers of a fragment that is read.
bool MatrixOperands::constant(const OperandSpec& spec, const ptx::Operand& operand) const {
  const isa::Opcode opcode = row_.form.opcode;
  const bool number = operand.kind == ptx::OperandKind::Integer;
  if (!number && operand.kind != ptx::OperandKind::Float) return false;
  if (spec.role == Role::a_descriptor || spec.role == Role::b_descriptor ||
      spec.role == Role::stride)
    return number;
  if (spec.kind != isa::OperandKind::Vector || spec.role == Role::d) return false;
  if (opcode == isa::Opcode::wmma_mma && spec.role == Role::b && row_.form.b != f16 &&
      row_.form.b != bf16)
    return false;
  if (opcode == isa::Opcode::wmma_store && !number) return operand.type == f32 && spec.type == f32;
  if (opcode == isa::Opcode::wmma_mma && !number && spec.role == Role::c && row_.form.c == f16)
    return operand.type == f32;
  return !number || (spec.type != Type::f32 && (spec.type != Type::f64 || spec.role != Role::c));
}

// _ among the registers of a result: illegal if the result is also read, and for tf32 in wmma.mma.
bool MatrixOperands::sink(const OperandSpec& spec) const {
  if (spec.role != Role::d || spec.kind != isa::OperandKind::Vector ||
      row_.form.opcode == isa::Opcode::wgmma)
    return false;
  return row_.form.opcode != isa::Opcode::wmma_mma || row_.form.a != tf32;
}

void MatrixOperands::element(const OperandSpec& spec, const ptx::Operand& operand) {
  element(spec, operand, fitting(spec, row_));
}

void MatrixOperands::element(const OperandSpec& spec, const ptx::Operand& operand, TypeSet types) {
  if (constant(spec, operand)) return;
  if (spec.role == Role::scale_d && operand.kind == ptx::OperandKind::Integer)
    return range(spec, operand, name(spec.role), 1, 1);
  const bool negated = spec.type == Type::pred && operand.kind == ptx::OperandKind::Not;
  const ptx::Operand& reg = negated ? context_.module.children(operand)[0] : operand;
  const auto expected = [&] { return fmt::format("a register of type {}", type_list(types)); };
  if (reg.kind != ptx::OperandKind::Name) return wrong_kind(spec, operand, expected());
  const std::string_view base = base_name(reg.text);
  if (base == "_") {
    if (!sink(spec))
      report("operand-kind"_rule, operand,
             fmt::format("{}: expected {}, found _", label(spec), expected()));
    return;
  }
  const NameInfo found = scopes_.find(base);
  if (found.kind == NameKind::Unknown) return;  // the names pass reports it
  if (found.kind == NameKind::Special)
    return report(
        "operand-kind"_rule, operand,
        fmt::format("{}: expected {}, found the special register {}; move it to a register first",
                    label(spec), expected(), reg.text));
  if (found.kind != NameKind::Register) return wrong_kind(spec, operand, expected());
  const bool scalar =
      (found.vector == 1) == (base == reg.text);  // an element of a vector is a scalar, too
  if (!types.has(found.type) || !scalar)
    report(
        "register-type"_rule, operand,
        fmt::format("{}: expected registers of type {}, {} is {}.{}", label(spec), type_list(types),
                    reg.text, scalar || found.vector == 1 ? "" : fmt::format(".v{} ", found.vector),
                    tartan::name(found.type)));
}

void MatrixOperands::address(const OperandSpec& spec, const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Address)
    return wrong_kind(spec, operand, "an address [...]");
  const auto parts = context_.module.children(operand);
  if (parts.size() != 1)
    return wrong_kind(spec, operand, "an address of one register and an offset");
  if (parts[0].kind != ptx::OperandKind::Name || parts[0].text != base_name(parts[0].text))
    return wrong_kind(spec, parts[0], "an address in a register or a variable");
  const NameInfo found = scopes_.find(parts[0].text);
  if (found.kind == NameKind::Unknown) return;
  if (found.kind == NameKind::Variable) return variable(spec, parts[0], found.space);
  if (found.kind != NameKind::Register)
    return report("operand-kind"_rule, parts[0],
                  fmt::format("{}: expected a register or a variable as address, found {}",
                              label(spec), parts[0].text));
  const TypeSet types{Type::b32, Type::u32, Type::s32, Type::b64, Type::u64, Type::s64};
  if (!types.has(found.type))
    report("register-type"_rule, parts[0],
           fmt::format("illegal address: expected a 32 or 64-bit integer register, {} is .{}",
                       parts[0].text, tartan::name(found.type)));
}

void MatrixOperands::variable(const OperandSpec& spec, const ptx::Operand& operand,
                              StateSpace space) {
  const isa::Opcode opcode = row_.form.opcode;
  const StateSpace wanted = memory_of(row_.form.space);
  const bool generic = wanted == StateSpace::none;
  const bool fits = generic ? space == StateSpace::global || space == StateSpace::shared ||
                                  space == StateSpace::local
                            : space == wanted;
  if (fits) return;
  const bool only_shared = opcode == isa::Opcode::ldmatrix || opcode == isa::Opcode::stmatrix;
  report(
      "operand-kind"_rule, operand,
      fmt::format("{}: expected an address in {} memory, {} is in another state space", label(spec),
                  !generic      ? tartan::name(wanted)
                  : only_shared ? "shared"
                                : "global or shared",
                  operand.text));
}

void MatrixOperands::range(const OperandSpec& spec, const ptx::Operand& operand,
                           std::string_view what, int high, int step) {
  const auto value = static_cast<std::int64_t>(operand.value);
  const bool sign_only = spec.low == -1;
  const bool good = sign_only ? value == -1 || value == 1
                              : value >= spec.low && value <= high && value % step == 0;
  if (good) return;
  const std::string legal = sign_only   ? "-1 or 1"
                            : high == 0 ? "0"
                            : step > 1  ? fmt::format("0 or {}", high)
                                        : fmt::format("{} to {}", spec.low, high);
  report("immediate-range"_rule, operand,
         fmt::format("{} of {}: expected {}, found {}", what, isa::spell(row_.form), legal, value));
}

void MatrixOperands::immediate(const OperandSpec& spec, const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Integer) return wrong_kind(spec, operand, "an immediate");
  range(spec, operand, name(spec.role), spec.high, 1);
}

void MatrixOperands::pair(const OperandSpec& spec, const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Vector || operand.count != 2)
    return wrong_kind(spec, operand, "{byte-id, thread-id}");
  const auto parts = context_.module.children(operand);
  for (std::size_t i = 0; i < 2; ++i) {
    if (parts[i].kind == ptx::OperandKind::Integer)
      range(spec, parts[i], i == 0 ? "byte-id" : "thread-id", i == 0 ? spec.high : spec.threads - 1,
            i == 0 ? spec.step : 1);
    else element(spec, parts[i]);
  }
}

}  // namespace tartan::TARTAN_ABI::verify
