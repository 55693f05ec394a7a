// SPDX-License-Identifier: Apache-2.0
// Describes operands that no signature accepts.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/verify/operand_matcher.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::OperandRow;
using isa::Signature;
using isa::Spelling;

// "a constant from 24 to 256 in steps of 8 (the nearest is 40)"
std::string range_text(const OperandRow& row, std::int64_t value) {
  constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  if (row.low == row.high) return std::to_string(row.low);
  const std::string range = row.high == unlimited && row.step == 1
                                ? fmt::format("a constant of at least {}", row.low)
                                : fmt::format("a constant from {} to {}", row.low, row.high);
  if (row.step == 1) return range;
  const auto width = static_cast<std::uint64_t>(row.high) - static_cast<std::uint64_t>(row.low);
  if (width == static_cast<std::uint64_t>(row.step))
    return fmt::format("{} or {}", row.low, row.high);
  if (row.step == 0) return range + " that is a power of two";
  if (row.high == unlimited) return fmt::format("a multiple of {}", row.step);
  const std::int64_t within = std::clamp(value, row.low, row.high) + row.step / 2;
  return fmt::format("{} in steps of {} (the nearest is {})", range, row.step,
                     within / row.step * row.step);
}

std::string_view kind_text(const OperandRow& row, bool one) {
  if (row.spaces & isa::as_image) return "an image in brackets";
  if (row.accepts & isa::an_address) return "an address";
  if (row.accepts & isa::a_vector && !one) return "a vector";
  if (row.accepts & isa::a_label) return "a label";
  if (row.accepts & isa::a_function && !(row.accepts & isa::an_integer))
    return "a function or the register of its address";
  if (!(row.accepts & isa::a_register)) return "a constant";
  return row.accepts & isa::an_integer ? "a register or a constant" : "a register";
}

// "in .global or .shared memory"
std::string spaces_text(unsigned spaces) {
  if (spaces == isa::in_register) return "in a register";
  if (spaces == isa::in_tensor) return "in tensor memory";
  std::string out;
  for (const StateSpace each : memory_spaces)
    if (spaces & isa::space_bit(each))
      out += fmt::format("{} .{}", out.empty() ? "in" : " or", tartan::name(each));
  return out + " memory";
}

// The expected suffix of a register.
std::string_view shape_text(const OperandRow& row) {
  switch (row.selector) {
    case isa::Selector::None:
      return row.accepts & isa::a_vector && row.elements != 1 ? "a vector" : "one register";
    case isa::Selector::Part:
      return row.selects ? "a part of a register, .b0 to .b3, .h0 or .h1,"
                         : "a register or its .b0 to .b3, .h0 or .h1";
    case isa::Selector::Halves: return "a register or two halves, as .h10 or .h32,";
    case isa::Selector::Bytes: return "a register or four bytes, as .b3210 or .b7654,";
    case isa::Selector::SomeHalves: return "a register or its .h0, .h1 or .h10";
    case isa::Selector::SomeBytes: return "a register or its bytes, the highest first, as .b320,";
  }
  return {};
}

}  // namespace

bool OperandMatcher::takes_kind(const ptx::Operand& operand, const OperandRow& row) {
  switch (operand.kind) {
    case ptx::OperandKind::Vector: return row.accepts & isa::a_vector;
    case ptx::OperandKind::Address: return row.accepts & isa::an_address;
    case ptx::OperandKind::Integer: return row.accepts & isa::an_integer;
    default: return row.fragment == Operand::none;
  }
}

OperandMismatch OperandMatcher::mismatch(const ptx::Instruction& instruction,
                                         const Spelling& spelling, const Signature& signature,
                                         std::size_t from) const {
  const Operands rows = isa::operands(signature, spelling);
  const std::size_t least = required(rows), most = rows.size;
  const auto operands = module_.operands_of(instruction);
  const std::size_t end = std::min<std::size_t>(operands.size(), most);
  int strange = 0;
  for (std::size_t k = 0; k < end; ++k) strange += !takes_kind(operands[k], *rows[k]);
  std::size_t i = from;
  while (i < end && fits_among(operands, i, wanted(*rows[i], spelling))) ++i;
  if (instruction.count < least || instruction.count > most)
    return {&"operand-count"_rule,
            {},
            least == most ? fmt::format("wrong number of operands: expected {}, found {}", most,
                                        instruction.count)
                          : fmt::format("wrong number of operands: expected {} to {}, found {}",
                                        least, most, instruction.count),
            -1,
            strange};
  if (i >= operands.size()) return {};
  const Wanted want = wanted(*rows[i], spelling);
  const ptx::Operand& operand = operands[i];
  const std::string name =
      isa::operand_name(signature, static_cast<std::size_t>(rows[i] - signature.operands.begin()));
  if (want.row.spaces & isa::as_image && operand.kind == ptx::OperandKind::Address) {
    OperandMismatch out = image_mismatch(operand, want);
    out.message = fmt::format("operand {}: expected {}", name, out.message);
    out.matched = static_cast<int>(i);
    out.strange = strange;
    return out;
  }
  const bool result = want.row.written && !(want.row.accepts & isa::an_address);
  const Expectation wants =
      exceeds_next(operands, i, want.row)
          ? Expectation{&"immediate-range"_rule,
                        fmt::format("a constant of at most {}", operands[i + 1].text), &operand}
          : expectation(operand, want);
  // A vector is where its first element is.
  const ptx::Operand* at = wants.found;
  if (at->kind == ptx::OperandKind::Vector && !module_.children(*at).empty())
    at = &module_.children(*at)[0];
  return {wants.rule, at->text,
          fmt::format("expected {} as operand {}, found {}{}", wants.text, name,
                      found(*wants.found), parameter_hint(*wants.found, result)),
          static_cast<int>(i), strange};
}

// Whether the operands match the rows when as many as the vector at row `at` needs are one of them.
bool OperandMatcher::fits_in_braces(const ptx::Instruction& instruction, const Spelling& spelling,
                                    const Operands& rows, std::size_t at) const {
  const auto operands = module_.operands_of(instruction);
  const Wanted vector = wanted(*rows[at], spelling);
  if (!(vector.row.accepts & isa::a_vector) || vector.elements < 2) return false;
  const auto count = static_cast<std::size_t>(vector.elements);
  if (at + count > operands.size()) return false;
  const std::size_t whole = operands.size() - count + 1;
  if (whole < required(rows) || whole > rows.size) return false;
  for (std::size_t i = 0; i < whole; ++i)
    if (i != at && !fits(operands[i < at ? i : i + count - 1], wanted(*rows[i], spelling)))
      return false;
  ptx::Operand braces{.kind = ptx::OperandKind::Vector};
  braces.first = instruction.first + static_cast<std::uint32_t>(at);
  braces.count = static_cast<std::uint32_t>(count);
  return vector_fits(braces, vector);
}

std::string OperandMatcher::braces_hint(const ptx::Instruction& instruction,
                                        const Spelling& spelling) const {
  for (const Signature* signature : spelling.signatures) {
    const Operands rows = isa::operands(*signature, spelling);
    for (std::size_t at = 0; at < rows.size; ++at) {
      if (!fits_in_braces(instruction, spelling, rows, at)) continue;
      const auto count = static_cast<std::size_t>(wanted(*rows[at], spelling).elements);
      std::string out;
      for (const ptx::Operand& each : module_.operands_of(instruction).subspan(at, count))
        out += fmt::format("{}{}", out.empty() ? "write {" : ", ", each.text);
      return out + "} in braces";
    }
  }
  return {};
}

OperandMatcher::Expectation OperandMatcher::expectation(const ptx::Operand& operand,
                                                        const Wanted& want) const {
  if (want.row.fragment != Operand::none) return fragment_expectation(operand, want);
  const bool to_register = is_register(operand) && want.row.accepts & isa::a_register;
  if (want.row.ranged && operand.kind == ptx::OperandKind::Integer)
    return {&"immediate-range"_rule, range_text(want.row, static_cast<std::int64_t>(operand.value)),
            &operand};
  if (operand.kind == ptx::OperandKind::Vector && want.row.accepts & isa::a_vector) {
    if (count_fits(operand, want)) return element_expectation(operand, want);
    if (want.elements > 1)
      return {&"register-count"_rule, fmt::format("{} registers", want.elements), &operand};
  }
  if (operand.kind == ptx::OperandKind::Address && want.row.accepts & isa::an_address)
    return address_expectation(operand, want);
  if (operand.kind == ptx::OperandKind::Element && want.row.indexed)
    return indexed_expectation(operand, want);
  if (to_register && operand.value && !sum_fits(names_.of(operand).type, want))
    return {&"operand-kind"_rule, "a register without a constant, which only integers take",
            &operand};
  if (to_register && !shape_fits(operand, want))
    return {&"operand-kind"_rule, std::string(shape_text(want.row)), &operand};
  if (to_register && want.type == Type::none)
    return {&"register-type"_rule, std::string(kind_text(want.row, true)), &operand};
  if (to_register)
    return {&"register-type"_rule,
            "a register of type " +
                types_text(want.row.registers.mask ? want.row.registers : TypeSet(want.type)),
            &operand};
  std::string text(kind_text(want.row, takes_scalar(want)));
  if (want.type != Type::none && !(want.row.accepts & isa::an_address))
    text +=
        " of type " + types_text(want.row.registers.mask ? want.row.registers : TypeSet(want.type));
  return {&"operand-kind"_rule, std::move(text), &operand};
}

OperandMatcher::Expectation OperandMatcher::address_expectation(const ptx::Operand& operand,
                                                                const Wanted& want) const {
  const auto parts = module_.children(operand);
  const AddressParts wanted = address_parts(want);
  if (wanted[0] == AddressPart::Base && (parts.empty() || !base_fits(parts[0], want)))
    return base_expectation(parts.empty() ? operand : parts[0], want);
  if (want.row.remote || wanted.size > 2) {
    const bool counts = parts.size() == wanted.size;
    const ptx::Operand* wrong = &operand;
    for (std::size_t i = 0; counts && i < parts.size() && wrong == &operand; ++i)
      if (!part_fits(parts[i], wanted[i], want)) wrong = &parts[i];
    return {&"operand-kind"_rule, fmt::format("an address of the form {}", form_of(wanted)), wrong};
  }
  if (want.row.coordinates == 0)
    return {&"operand-kind"_rule,
            operand.text.empty() ? "a plain address without coordinates"
                                 : "an address without .unified",
            &operand};
  return {&"operand-kind"_rule,
          fmt::format("an address with {} coordinates in braces", tensor_coordinates(want)),
          parts.size() == 2 ? &parts[1] : &operand};
}

OperandMatcher::Expectation OperandMatcher::indexed_expectation(const ptx::Operand& element,
                                                                const Wanted& want) const {
  const NameInfo& info = names_.of(element);
  const ptx::Operand& index = module_.children(element)[0];
  if (info.kind != NameKind::Variable || !info.variable || !info.variable->array)
    return {&"operand-kind"_rule, "an array in front of [", &element};
  if (!index_fits(index)) return {&"register-type"_rule, "an index of an integer type", &index};
  return base_expectation(element, want);
}

OperandMatcher::Expectation OperandMatcher::base_expectation(const ptx::Operand& base,
                                                             const Wanted& want) const {
  if (is_register(base))
    return {&"register-type"_rule,
            fmt::format("an address in a register of {}", want.row.registers.mask ? "32 or 64 bits"
                                                          : wanted_spaces(want) == isa::in_tensor
                                                              ? "32 bits"
                                                          : takes_whole(want) ? "64 bits"
                                                                              : "an integer type"),
            &base};
  const bool name = base.kind == ptx::OperandKind::Name || base.kind == ptx::OperandKind::Element;
  if (name && names_.of(base).constant && want.row.written)
    return {&"operand-kind"_rule, "a writable address", &base};
  return {&"operand-kind"_rule, "an address " + spaces_text(wanted_spaces(want)), &base};
}

// The first element that does not fit, of a vector with the right number of elements.
OperandMatcher::Expectation OperandMatcher::element_expectation(const ptx::Operand& vector,
                                                                const Wanted& want) const {
  const OperandRow row = element_row(want);
  const Wanted each{row, want.spelling, want.type, 1, want.elements > 1};
  const auto elements = module_.children(vector);
  const auto wrong = std::find_if(elements.begin(), elements.end(),
                                  [&](const auto& element) { return !fits(element, each); });
  if (want.row.threads) {  // {byte-id, thread-id}
    if (wrong == elements.begin()) return expectation(*wrong, each);
    const OperandRow second = thread_id_row(want);
    return expectation(elements[1], {second, want.spelling, want.type, 1, true});
  }
  return {&"register-type"_rule,
          fmt::format("a vector of elements of type .{}", tartan::name(want.type)),
          wrong == elements.end() ? &vector : &*wrong};
}

// ".b32 or .f16x2"
std::string OperandMatcher::types_text(TypeSet types) {
  std::string out;
  for (const TypeInfo& each : type_table)
    if (types.has(each.type)) out += fmt::format("{}.{}", out.empty() ? "" : " or ", each.name);
  return out;
}

// A kernel's parameters are memory.
std::string_view OperandMatcher::parameter_hint(const ptx::Operand& operand, bool result) const {
  if (operand.kind != ptx::OperandKind::Name) return {};
  const NameInfo& info = names_.of(operand);
  if (info.kind != NameKind::Variable || info.space != StateSpace::param) return {};
  if (!info.constant) return {};
  return result ? "; it cannot be written: expected a register" : "; load it with ld.param first";
}

std::string OperandMatcher::found(const ptx::Operand& operand) const {
  switch (operand.kind) {
    case ptx::OperandKind::Element:
    case ptx::OperandKind::Name: {
      const NameInfo& info = names_.of(operand);
      if (info.kind == NameKind::Register)
        return fmt::format("{} of type {}.{}", operand.text,
                           info.vector > 1 && base_name(operand.text) == operand.text
                               ? fmt::format(".v{} ", info.vector)
                               : "",
                           tartan::name(info.type));
      if (info.kind == NameKind::Variable && info.type != Type::none)
        return fmt::format("{} in .{} memory", operand.text, tartan::name(info.space));
      return std::string(operand.text);
    }
    case ptx::OperandKind::Integer:
    case ptx::OperandKind::Float:
    case ptx::OperandKind::String: return std::string(operand.text.substr(0, 40));
    case ptx::OperandKind::Vector: return fmt::format("a vector of {}", operand.count);
    case ptx::OperandKind::Address:
      return operand.count > 1 ? fmt::format("an address of {} parts", operand.count)
                               : std::string("an address") + std::string(operand.text);
    case ptx::OperandKind::Pair: return "a pair";
    case ptx::OperandKind::Not: return "a negated predicate";
    case ptx::OperandKind::Negative: return "a negated register";
    case ptx::OperandKind::List: return "a list";
  }
  return {};
}

}  // namespace tartan::TARTAN_ABI::verify
