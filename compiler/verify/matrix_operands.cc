// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/matrix_operands.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::verify {
namespace {

using isa::OperandKind;
using isa::OperandSpec;
using isa::Role;

std::string_view kind_name(ptx::OperandKind kind) {
  switch (kind) {
    case ptx::OperandKind::Name: return "a name";
    case ptx::OperandKind::Integer: return "an integer";
    case ptx::OperandKind::Float: return "a floating-point number";
    case ptx::OperandKind::Vector: return "a vector {...}";
    case ptx::OperandKind::Address: return "an address [...]";
    case ptx::OperandKind::Pair: return "a pair p|q";
    case ptx::OperandKind::Not: return "a negated predicate";
    case ptx::OperandKind::List: return "a list (...)";
    case ptx::OperandKind::String: return "a string";
  }
  return "";
}

// The element type behind a role, for the choice of register types.
Type element_type(const isa::Instruction& row, Role role) {
  const isa::Form& form = row.form;
  const bool load = form.opcode == isa::Opcode::wmma_load || form.opcode == isa::Opcode::wmma_store;
  if (load) return form.d;
  return role == Role::a ? form.a : role == Role::b ? form.b : role == Role::c ? form.c : form.d;
}

// Which register types fit a slot (facts measured with the assembler): .b32 fits every 32-bit slot; a float accumulator also takes .f32, f16 data
// .f16x2, integers .u32 and .s32; bf16 and tf32 inputs take .b32 alone.
TypeSet fitting(const OperandSpec& spec, const isa::Instruction& row) {
  const isa::Opcode opcode = row.form.opcode;
  // ldmatrix, stmatrix and movmatrix move bits: any 32-bit register holds them.
  if (opcode == isa::Opcode::ldmatrix || opcode == isa::Opcode::stmatrix || opcode == isa::Opcode::movmatrix)
    return {Type::b32, Type::u32, Type::s32, Type::f32, Type::f16x2};
  const Type element = element_type(row, spec.role);
  switch (spec.type) {
    case Type::pred: return Type::pred;
    case Type::f64: return {Type::f64, Type::b64};
    case Type::b64: return {Type::b64, Type::u64, Type::s64};
    case Type::f32: return {Type::f32, Type::b32};
    case Type::b16: return {Type::b16, Type::u16};
    default: break;
  }
  if (element == f16 && (spec.role == Role::d || spec.role == Role::a || spec.role == Role::b || spec.role == Role::c))
    return {Type::b32, Type::f16x2};
  if (element == bf16 || element == tf32) return Type::b32;
  return {Type::b32, Type::u32, Type::s32};
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
  context_.report(rule, operand.offset, std::max<std::size_t>(operand.text.size(), 1), std::move(message));
}

void MatrixOperands::wrong_kind(const OperandSpec& spec, const ptx::Operand& operand, std::string_view expected) {
  report("operand-kind"_rule, operand, fmt::format("{} takes {}, found {}", label(spec), expected, kind_name(operand.kind)));
}

void MatrixOperands::check() {
  const auto operands = context_.module.operands_of(instruction_);
  const std::size_t expected = row_.operands.size();
  if (operands.size() != expected) {
    context_.report("operand-count"_rule, instruction_.opcode,
                    fmt::format("{} takes {} operands ({}), found {}", isa::spell(row_.form), expected, isa::operands_text(row_), operands.size()));
    return;
  }
  for (std::size_t i = 0; i < expected; ++i) operand(row_.operands[i], operands[i]);
}

void MatrixOperands::operand(const OperandSpec& spec, const ptx::Operand& operand) {
  switch (spec.kind) {
    case OperandKind::Vector: return vector(spec, operand);
    case OperandKind::Address: return address(spec, operand);
    case OperandKind::Immediate: return immediate(spec, operand);
    case OperandKind::Pair: return pair(spec, operand);
    case OperandKind::Register: break;
  }
  // Metadata and scales may stand in braces of their own.
  const bool braces = spec.role == Role::scale_a || spec.role == Role::scale_b;
  if (braces && operand.kind == ptx::OperandKind::Vector && operand.count == 1) return element(spec, context_.module.children(operand)[0]);
  element(spec, operand);
}

void MatrixOperands::vector(const OperandSpec& spec, const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Vector) return wrong_kind(spec, operand, fmt::format("a vector of {} registers", spec.count));
  const auto elements = context_.module.children(operand);
  if (static_cast<int>(elements.size()) != spec.count)
    return report("register-count"_rule, operand,
                  fmt::format("{} takes {} register{}, got {}", label(spec), spec.count, spec.count == 1 ? "" : "s", elements.size()));
  for (const ptx::Operand& each : elements) element(spec, each);
}

void MatrixOperands::element(const OperandSpec& spec, const ptx::Operand& operand) {
  if (operand.kind == ptx::OperandKind::Integer && spec.role != Role::d && spec.type != Type::pred) {
    const bool registers_only = spec.role == Role::metadata || spec.role == Role::scale_a || spec.role == Role::scale_b;
    if (!registers_only) return;
  }
  const bool negated = spec.type == Type::pred && operand.kind == ptx::OperandKind::Not;
  const ptx::Operand& reg = negated ? context_.module.children(operand)[0] : operand;
  if (reg.kind != ptx::OperandKind::Name) return wrong_kind(spec, operand, fmt::format("a register of type {}", type_list(fitting(spec, row_))));
  const std::string_view base = base_name(reg.text);
  if (base == "_" && spec.role == Role::d) return;
  const NameInfo found = scopes_.find(base);
  if (found.kind == NameKind::Unknown) return;  // the names pass says so
  const TypeSet types = fitting(spec, row_);
  if (found.kind == NameKind::Special) return;
  if (found.kind != NameKind::Register) return wrong_kind(spec, operand, fmt::format("a register of type {}", type_list(types)));
  if (!types.has(found.type))
    report("register-type"_rule, operand, fmt::format("{} takes registers of type {}, {} is .{}", label(spec), type_list(types), base, tartan::name(found.type)));
}

void MatrixOperands::address(const OperandSpec& spec, const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Address) return wrong_kind(spec, operand, "an address [...]");
  const auto parts = context_.module.children(operand);
  if (parts.size() != 1) return wrong_kind(spec, operand, "an address of one register and an offset");
  if (parts[0].kind != ptx::OperandKind::Name) return;
  const NameInfo found = scopes_.find(base_name(parts[0].text));
  if (found.kind != NameKind::Register) return;
  const TypeSet types{Type::b32, Type::u32, Type::s32, Type::b64, Type::u64, Type::s64};
  if (!types.has(found.type))
    report("register-type"_rule, parts[0], fmt::format("an address is a 32 or 64-bit integer register, {} is .{}", parts[0].text, tartan::name(found.type)));
}

void MatrixOperands::range(const OperandSpec& spec, const ptx::Operand& operand, std::string_view what, int high, int step) {
  const auto value = static_cast<std::int64_t>(operand.value);
  const bool sign_only = spec.low == -1;
  const bool good = sign_only ? value == -1 || value == 1 : value >= spec.low && value <= high && value % step == 0;
  if (good) return;
  const std::string legal = sign_only ? "-1 or 1" : high == 0 ? "0" : step > 1 ? fmt::format("0 or {}", high) : fmt::format("{} to {}", spec.low, high);
  report("immediate-range"_rule, operand, fmt::format("{} of {} is {}, got {}", what, isa::spell(row_.form), legal, value));
}

void MatrixOperands::immediate(const OperandSpec& spec, const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Integer) return wrong_kind(spec, operand, "an immediate");
  range(spec, operand, name(spec.role), spec.high, 1);
}

void MatrixOperands::pair(const OperandSpec& spec, const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Vector || operand.count != 2) return wrong_kind(spec, operand, "{byte-id, thread-id}");
  const auto parts = context_.module.children(operand);
  for (std::size_t i = 0; i < 2; ++i) {
    if (parts[i].kind == ptx::OperandKind::Integer) range(spec, parts[i], i == 0 ? "byte-id" : "thread-id", i == 0 ? spec.high : spec.threads - 1, i == 0 ? spec.step : 1);
    else element(spec, parts[i]);
  }
}

}  // namespace tartan::verify
