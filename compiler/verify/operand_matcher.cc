// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/operand_matcher.h"

#include <algorithm>
#include <bit>

#include "compiler/isa/fragment_operand.h"
#include "compiler/isa/sparse_counts.h"
#include "compiler/isa/special_registers.h"
#include "tartan/isa/tensor_memory.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Fit;
using isa::OperandRow;
using isa::Signature;
using isa::Spelling;
using isa::operator""_q;

Type doubled(Type type) {
  switch (type) {
    case Type::u16: return Type::u32;
    case Type::s16: return Type::s32;
    case Type::u32: return Type::u64;
    case Type::s32: return Type::s64;
    case Type::b16: return Type::b32;
    case Type::b32: return Type::b64;
    case Type::b64: return Type::b128;
    default: return type;
  }
}

Type halved(Type type) {
  switch (type) {
    case Type::b32: return Type::b16;
    case Type::b64: return Type::b32;
    case Type::b128: return Type::b64;
    default: return type;
  }
}

int dimensions(const Spelling& spelling) {
  return spelling.has("1d"_q)   ? 1
         : spelling.has("2d"_q) ? 2
         : spelling.has("3d"_q) ? 3
         : spelling.has("4d"_q) ? 4
                                : 5;
}

constexpr unsigned generic_spaces = isa::in_global | isa::in_shared | isa::in_local;

int coordinates(const Spelling& spelling) {
  const bool rows = spelling.has("tile::gather4"_q) || spelling.has("tile::scatter4"_q);
  return rows ? 5 : dimensions(spelling);
}

// The dimensions of an image; 4 for .3d and cubes, whose vectors have four elements.
int texel_dimensions(const Spelling& spelling) {
  constexpr isa::QualifierSet one = "1d a1d", two = "2d a2d 2dms a2dms";
  if (!(spelling.words & one).empty()) return 1;
  return (spelling.words & two).empty() ? 4 : 2;
}

int stated_elements(const OperandRow& row, const Spelling& spelling) {
  switch (row.elements) {
    case isa::as_written: return isa::written_elements(spelling);
    case isa::image_offsets: return spelling.has("im2col"_q) ? dimensions(spelling) - 2 : 2;
    case isa::as_repeated: return isa::tensor_access(spelling.words).registers();
    case isa::lane_masks: return spelling.has("cta_group::2"_q) ? 8 : 4;
    case isa::texel_offsets:
    case isa::gradients: return texel_dimensions(spelling);
    case isa::sparse_metadata: return isa::sparse_counts(spelling).metadata;
    case isa::sparse_values: return isa::sparse_counts(spelling).values;
    case isa::dense_values: return isa::sparse_counts(spelling).dense;
    default: return row.elements;
  }
}

// The spaces whose variables an address may name.
unsigned stated_spaces(const Spelling& spelling) {
  unsigned out = 0;
  for (const StateSpace each : isa::state_spaces(spelling)) out |= isa::space_bit(each);
  return out;
}

unsigned qualified_spaces(const Spelling& spelling) {
  const unsigned stated = stated_spaces(spelling);
  return stated ? stated : generic_spaces;
}

}  // namespace

std::size_t OperandMatcher::required(const Operands& rows) {
  std::size_t out = 0;
  while (out < rows.size && !rows[out]->optional) ++out;
  return out;
}

const Since* OperandMatcher::missing(const ptx::Instruction& instruction, const Spelling& spelling,
                                     const Signature& signature, const Target& target) const {
  if (const Since* since = isa::missing(signature, spelling, target)) return since;
  const auto operands = module_.operands_of(instruction);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto parts = module_.children(operands[i]);
    const bool pair = operands[i].kind == ptx::OperandKind::Pair;
    if (!pair && parts.size() != 3) continue;
    const OperandRow& row = *isa::operands(signature, spelling)[i];
    const bool handle =
        row.sampled && parts.size() == 3 && (is_register(parts[0]) || is_register(parts[1]));
    if ((pair || handle) && !row.part_since.has(target)) return &row.part_since;
  }
  return nullptr;
}

OperandMatcher::Wanted OperandMatcher::wanted(const OperandRow& row,
                                              const Spelling& spelling) const {
  if (row.fragment != Operand::none) {
    const isa::FragmentOperand fragment = isa::fragment_operand(row, isa::form_of(spelling));
    return {row, spelling, fragment.type, fragment.registers, false, fragment.types};
  }
  Type type = row.type.written < 0 ? row.type.fixed
                                   : spelling.type(static_cast<std::size_t>(row.type.written));
  if (row.type.scale > 0) type = doubled(type);
  if (row.type.scale < 0) type = halved(type);
  return {row, spelling, type, stated_elements(row, spelling)};
}

bool OperandMatcher::match(const ptx::Instruction& instruction, const Spelling& spelling,
                           const Signature& signature) const {
  const Operands rows = isa::operands(signature, spelling);
  if (instruction.count < required(rows) || instruction.count > rows.size) return false;
  const auto operands = module_.operands_of(instruction);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!fits_among(operands, i, wanted(*rows[i], spelling))) return false;
  return true;
}

bool OperandMatcher::fits_among(std::span<const ptx::Operand> operands, std::size_t i,
                                const Wanted& wanted) const {
  return fits(operands[i], wanted) && !exceeds_next(operands, i, wanted.row) &&
         !is_read_whole(operands, i, wanted.row);
}

// The assembler dies of a fragment without braces that is a result and a source.
bool OperandMatcher::is_read_whole(std::span<const ptx::Operand> operands, std::size_t i,
                                   const OperandRow& row) {
  return row.fragment != Operand::none && row.written &&
         operands[i].kind == ptx::OperandKind::Name &&
         std::ranges::count(operands, operands[i].text, &ptx::Operand::text) > 1;
}

bool OperandMatcher::exceeds_next(std::span<const ptx::Operand> operands, std::size_t i,
                                  const OperandRow& row) {
  if (!row.at_most_next || i + 1 >= operands.size()) return false;
  const ptx::Operand &one = operands[i], &next = operands[i + 1];
  return one.kind == ptx::OperandKind::Integer && next.kind == ptx::OperandKind::Integer &&
         static_cast<std::uint32_t>(one.value) > static_cast<std::uint32_t>(next.value);
}

bool OperandMatcher::fits(const ptx::Operand& operand, const Wanted& wanted) const {
  const unsigned accepts = wanted.row.accepts;
  if (wanted.row.fragment != Operand::none) return fragment_fits(operand, wanted);
  switch (operand.kind) {
    case ptx::OperandKind::Name: return name_fits(operand, wanted);
    case ptx::OperandKind::Integer: return integer_fits(operand, wanted);
    case ptx::OperandKind::Float: return float_fits(operand, wanted);
    case ptx::OperandKind::Vector: return vector_fits(operand, wanted);
    case ptx::OperandKind::Address:
      return accepts & isa::an_address && address_fits(operand, wanted);
    case ptx::OperandKind::Pair: return pair_fits(operand, wanted);
    case ptx::OperandKind::Not: {
      if (!(accepts & isa::a_negation)) return false;
      const NameInfo& info = names_.of(module_.children(operand)[0]);
      return info.kind == NameKind::Register && info.type == Type::pred;
    }
    case ptx::OperandKind::List: return accepts & isa::a_list;
    case ptx::OperandKind::Negative: return accepts & isa::a_minus && minus_fits(operand, wanted);
    case ptx::OperandKind::String: return accepts & isa::a_string;
    case ptx::OperandKind::Element: return element_fits(operand, wanted);
  }
  return false;
}

bool OperandMatcher::minus_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  OperandRow inner = wanted.row;
  inner.accepts = isa::a_register;
  return fits(module_.children(operand)[0], {inner, wanted.spelling, wanted.type, wanted.elements});
}

// If the operand has one of the instruction's written types, the assembler accepts registers of
// .f16x2 for 32-bit integers, too.
bool OperandMatcher::register_fits(Type type, const Wanted& wanted) {
  if (wanted.row.registers.mask) return wanted.row.registers.has(type);
  if (isa::register_fits(type, wanted.type, wanted.row.fit)) return true;
  const bool bf = wanted.type == Type::bf16 || wanted.type == Type::bf16x2;
  if (wanted.in_vector && info(wanted.type).floating && !bf && !info(type).floating)
    return type != Type::pred && bits(type) == bits(wanted.type);
  return type == Type::f16x2 && wanted.row.type.written >= 0 && !info(wanted.type).floating &&
         (wanted.row.fit == Fit::Wider ? bits(wanted.type) <= 32 : bits(wanted.type) == 32);
}

// mov.u32 r, v of a variable in global memory: its address has 64 bits. The assembler takes v+4.
bool OperandMatcher::is_half(const ptx::Operand& operand, const NameInfo& info, Type type) const {
  return module_.address_size != 32 && info.space == StateSpace::global && bits(type) == 32 &&
         !operand.value;
}

bool OperandMatcher::name_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  const unsigned accepts = wanted.row.accepts;
  const NameInfo& info = names_.of(operand);
  if (operand.text == "_")
    return accepts & isa::a_sink &&
           (takes_scalar(wanted) || wanted.row.elements == isa::as_written);
  switch (info.kind) {
    case NameKind::Register:
      if (is_whole_vector(operand)) return whole_vector_fits(operand, wanted);
      return accepts & isa::a_register && shape_fits(operand, wanted) &&
             register_fits(info.type, wanted) && (!operand.value || sum_fits(info.type, wanted));
    case NameKind::Special: return special_fits(operand, wanted);
    case NameKind::Variable:
      return operand.text == base_name(operand.text) && !is_half(operand, info, wanted.type) &&
             (accepts & isa::a_variable || (operand.value && takes_sum(wanted.row))) &&
             variable_fits(info, wanted);
    case NameKind::Function:
      return accepts & isa::a_function && wanted.elements <= 1 && !operand.value &&
             function_fits(wanted);
    case NameKind::Label: return accepts & isa::a_label && !operand.value;
    case NameKind::Unknown: return false;
  }
  return false;
}

bool OperandMatcher::variable_fits(const NameInfo& info, const Wanted& wanted) {
  const unsigned named = wanted.row.accepts & isa::a_variable ? stated_spaces(wanted.spelling) : 0,
                 spaces = wanted.row.spaces ? wanted.row.spaces : named;
  return !info.local_param &&
         (info.type == Type::none ? wanted.type == u64 : bits(wanted.type) >= 16) &&
         !tartan::info(wanted.type).floating && (!spaces || isa::space_bit(info.space) & spaces);
}

// The assembler takes a sum, as in %r1+4, wherever a register alone may be read.
bool OperandMatcher::takes_sum(const OperandRow& row) {
  return row.accepts & isa::a_register && !row.written && !row.plain &&
         row.selector == isa::Selector::None;
}

// It dies of sums of floating-point registers and predicates.
bool OperandMatcher::sum_fits(Type type, const Wanted& wanted) {
  return takes_sum(wanted.row) && type != Type::pred && !info(type).floating && bits(type) <= 64;
}

// t[4] or t[r]: a place, as [t+16], or its address, where a variable's name may stand.
bool OperandMatcher::element_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  const NameInfo& info = names_.of(operand);
  if (info.kind != NameKind::Variable || !info.variable || !info.variable->array) return false;
  if (!index_fits(module_.children(operand)[0])) return false;
  if (wanted.row.indexed)
    return isa::space_bit(info.space) & wanted_spaces(wanted) &&
           !(wanted.row.written && info.constant);
  return wanted.row.accepts & isa::a_variable && !is_half(operand, info, wanted.type) &&
         variable_fits(info, wanted);
}

bool OperandMatcher::index_fits(const ptx::Operand& index) const {
  if (index.kind == ptx::OperandKind::Integer) return true;
  const NameInfo& info = names_.of(index);
  return info.kind == NameKind::Register && info.vector == 1 &&
         index.text == base_name(index.text) && info.type != Type::pred &&
         !tartan::info(info.type).floating && bits(info.type) <= 64;
}

// Whether the suffix names a vector element: .x to .w, or .r to .a.
bool is_element(std::string_view suffix) {
  return suffix.size() == 2 &&
         std::string_view("xyzwrgba").find(suffix[1]) != std::string_view::npos;
}

// A register of .v2 or .v4 without a suffix.
bool OperandMatcher::is_whole_vector(const ptx::Operand& operand) const {
  return is_register(operand) && names_.of(operand).vector > 1 &&
         operand.text == base_name(operand.text);
}

// It stands for the braces with its elements.
bool OperandMatcher::whole_vector_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  if (operand.value || !(wanted.row.accepts & isa::a_register) || !shape_fits(operand, wanted))
    return false;
  return register_fits(names_.of(operand).type,
                       {wanted.row, wanted.spelling, wanted.type, 1, wanted.elements > 1});
}

// A register of .v2 or .v4 is a vector, %v.x an element of it; other suffixes are selectors.
bool OperandMatcher::shape_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  const std::string_view behind = operand.text.substr(base_name(operand.text).size());
  const int width = names_.of(operand).vector;
  if (width > 1 && behind.empty())
    return wanted.row.accepts & isa::a_vector && width == wanted.elements;
  if (!takes_scalar(wanted)) return false;
  if (width > 1) return is_element(behind) && wanted.row.selector == isa::Selector::None;
  return behind.empty() ? !wanted.row.selects : isa::selector_fits(behind, wanted.row.selector);
}

// A function as callee, or as an address: the assembler accepts it for every number.
bool OperandMatcher::function_fits(const Wanted& wanted) {
  if (wanted.type == Type::none) return true;
  return wanted.row.type.written >= 0 && bits(wanted.type) >= 32 &&
         !tartan::info(wanted.type).floating;
}

// A 32-bit special register also fits 16-bit types. Registers with elements .x, .y, .z are vectors
// when written without one.
bool OperandMatcher::special_fits(const ptx::Operand& operand, const Wanted& wanted) {
  const unsigned accepts = wanted.row.accepts;
  const TypeInfo& type = tartan::info(wanted.type);
  if (operand.text == "WARP_SZ") return accepts & isa::an_integer && !type.floating;
  const std::string_view base = base_name(operand.text);
  const isa::SpecialRegisterRow* special = isa::find_special_register(base);
  const std::string_view behind = operand.text.substr(base.size());
  const bool element = is_element(behind);
  if (!behind.empty() && !element) return false;
  const bool once_16 = special && special->vector && special->since.sm < 90;
  if (special && special->vector != element)
    return special->vector && accepts & isa::a_special_vector && (once_16 || type.bits != 16);
  const bool in_sum = operand.value && takes_sum(wanted.row);
  if (!(accepts & isa::a_special || in_sum) || type.floating) return false;
  const Type has = special ? special->type : u32;
  if (has == Type::pred || wanted.type == Type::pred) return has == wanted.type;
  if (type.bits == bits(has)) return true;
  if (wanted.row.fit == Fit::Wider) return bits(has) >= type.bits;
  if (base == "%gridid") return true;  // it once had 16 and 32 bits; those with .x had 16
  return type.bits == 16 && once_16;
}

// Constants may be elements of vectors, but not replace them.
bool OperandMatcher::takes_scalar(const Wanted& wanted) {
  return !(wanted.row.accepts & isa::a_vector) ||
         (wanted.row.accepts & isa::a_register && wanted.elements == 1);
}

bool OperandMatcher::integer_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  if (!(wanted.row.accepts & isa::an_integer) || !takes_scalar(wanted)) return false;
  if (wanted.type != Type::none && info(wanted.type).floating) return false;
  const auto value = static_cast<std::int64_t>(operand.value);
  if (!wanted.row.ranged) return true;
  if (value < wanted.row.low || value > wanted.row.high) return false;
  if (wanted.row.step == 0) return (value & (value - 1)) == 0;
  const auto above = static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(wanted.row.low);
  return above % static_cast<std::uint64_t>(wanted.row.step) == 0;
}

// A 32-bit or 64-bit constant is converted to a floating-point type, but not to a .b type.
bool OperandMatcher::float_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  if (!(wanted.row.accepts & isa::a_float) || !takes_scalar(wanted)) return false;
  if (wanted.row.ranged) {
    const double value = operand.type == f32
                             ? std::bit_cast<float>(static_cast<std::uint32_t>(operand.value))
                             : std::bit_cast<double>(operand.value);
    if (value <= static_cast<double>(wanted.row.low) ||
        value > static_cast<double>(wanted.row.high))
      return false;
  }
  if (wanted.type == f32 || wanted.type == f64) return true;
  const bool single = operand.text.starts_with("0f") || operand.text.starts_with("0F");
  return (wanted.type == b32 || wanted.type == b64) && bits(wanted.type) == (single ? 32 : 64);
}

bool OperandMatcher::pair_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  if (!(wanted.row.accepts & isa::a_pair)) return false;
  const auto children = module_.children(operand);
  const isa::SinkInPair sinks = wanted.row.sinks;
  const auto fits_or_sink = [&](const ptx::Operand& each, Type type, isa::SinkInPair other) {
    if (each.kind != ptx::OperandKind::Name) return false;
    if (each.text == "_") return sinks != other;
    const NameInfo& info = names_.of(each);
    return info.kind == NameKind::Register && isa::register_fits(info.type, type, Fit::Exact);
  };
  if (!fits_or_sink(children[1], Type::pred, isa::SinkInPair::First)) return false;
  if (wanted.row.accepts & isa::a_vector)
    return children[0].kind == ptx::OperandKind::Vector && vector_fits(children[0], wanted);
  return fits_or_sink(children[0], wanted.type, isa::SinkInPair::Second);
}

bool OperandMatcher::vector_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  if (!(wanted.row.accepts & isa::a_vector) || !count_fits(operand, wanted)) return false;
  const OperandRow element = element_row(wanted);
  const auto elements = module_.children(operand);
  const Wanted each{element, wanted.spelling, wanted.type, 1, wanted.elements > 1};
  if (wanted.row.threads == 0) return elements_fit(elements, each);
  return fits(elements[0], each) &&
         fits(elements[1], {thread_id_row(wanted), wanted.spelling, wanted.type, 1, true});
}

// The second one of {byte-id, thread-id}.
OperandRow OperandMatcher::thread_id_row(const Wanted& vector) {
  OperandRow out = element_row(vector);
  out.high = vector.row.threads - 1;
  out.step = 1;
  return out;
}

// Unused elements of a result may be _.
OperandRow OperandMatcher::element_row(const Wanted& vector) {
  OperandRow out = vector.row;
  out.accepts = static_cast<std::uint16_t>((out.accepts & ~isa::a_vector) | isa::a_register);
  if (out.elements == isa::as_written) out.accepts |= out.written ? isa::a_sink : isa::a_special;
  out.elements = 0;
  return out;
}

bool OperandMatcher::count_fits(const ptx::Operand& vector, const Wanted& wanted) {
  const auto count = static_cast<int>(vector.count);
  if (wanted.row.elements != isa::texel_offsets) return count == wanted.elements;
  return count >= wanted.elements && (count == 1 || count == 2 || count == 4);
}

// Registers must all have one size, and not mix integers with floating point: they determine the
// elements' type, which a constant must match.
bool OperandMatcher::elements_fit(std::span<const ptx::Operand> elements,
                                  const Wanted& each) const {
  int width = 0;
  bool floating = false, integer = false, constant = false, sinks = true, registers = false;
  for (const ptx::Operand& one : elements) {
    if (!fits(one, each)) return false;
    constant |= one.kind == ptx::OperandKind::Integer;
    floating |= one.kind == ptx::OperandKind::Float;
    sinks &= one.text == "_";
    if (one.kind != ptx::OperandKind::Name || one.text == "_") continue;
    registers = true;
    const TypeInfo& type = info(names_.of(one).type);
    floating |= type.floating;
    integer |= type.name[0] == 's' || type.name[0] == 'u';
    if (width && type.bits && width != type.bits) return false;
    width = std::max(width, type.bits);
  }
  if (each.row.registered && !registers) return false;
  return !(floating && (integer || constant)) && !(sinks && !elements.empty());
}

bool OperandMatcher::address_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  if (wanted.row.spaces & isa::as_image) return image_fits(operand, wanted);
  const auto children = module_.children(operand);
  const AddressParts parts = address_parts(wanted);
  if (children.size() != parts.size) return false;
  if (!operand.text.empty() && !(wanted.row.unified && is_register(children[0]))) return false;
  if (parts.size > 1 && operand.value) return false;
  for (std::size_t i = 0; i < parts.size; ++i)
    if (!part_fits(children[i], parts[i], wanted)) return false;
  return true;
}

int OperandMatcher::tensor_coordinates(const Wanted& wanted) {
  return wanted.row.coordinates < 0 ? coordinates(wanted.spelling)
                                    : static_cast<int>(wanted.row.coordinates);
}

bool OperandMatcher::is_register(const ptx::Operand& operand) const {
  return operand.kind == ptx::OperandKind::Name && names_.of(operand).kind == NameKind::Register;
}

unsigned OperandMatcher::wanted_spaces(const Wanted& wanted) {
  return wanted.row.spaces == isa::as_qualified ? qualified_spaces(wanted.spelling)
                                                : wanted.row.spaces;
}

// A write to global memory needs the whole address; so does a generic mbarrier.
bool OperandMatcher::takes_whole(const Wanted& wanted) const {
  const bool global = wanted_spaces(wanted) & isa::in_global;
  return module_.address_size != 32 && (((wanted.row.written || wanted.row.whole) && global) ||
                                        (wanted.type == u64 && !stated_spaces(wanted.spelling)));
}

bool OperandMatcher::base_fits(const ptx::Operand& base, const Wanted& wanted) const {
  const unsigned spaces = wanted_spaces(wanted);
  if (base.kind == ptx::OperandKind::Integer) return spaces == isa::in_local;
  if (base.kind != ptx::OperandKind::Name || base.text.find('.') != std::string_view::npos)
    return false;
  const NameInfo& info = names_.of(base);
  if (info.kind == NameKind::Register) {
    const TypeInfo& type = tartan::info(info.type);
    if (wanted.row.registers.mask) return wanted.row.registers.has(info.type);
    // Tensor memory: mma accepts only .b32.
    if (spaces == isa::in_tensor)
      return type.type == b32 || (type.bits == 32 && !type.floating && wanted.type == u32);
    // With 16 bits the assembler warns.
    if (takes_whole(wanted) && (wanted.row.written ? type.bits != 64 : type.bits == 32))
      return false;
    if (wanted.type == u32 && type.bits < 32) return false;
    return !type.floating && type.type != Type::pred && type.bits >= 16 && type.bits <= 64;
  }
  if (info.kind != NameKind::Variable || info.type == Type::none) return false;
  return isa::space_bit(info.space) & spaces && !(wanted.row.written && info.constant);
}

}  // namespace tartan::TARTAN_ABI::verify
