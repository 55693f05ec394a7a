// SPDX-License-Identifier: Apache-2.0
// Video instructions (PTX ISA 9.0, 9.7.19): arithmetic on a byte, a half or a word of each source,
// and on two halves or four bytes side by side, with saturation and a second operation on c.
//
//   vadd.s32.u32.s32.sat.min  d, a.b0, b.h1, c;      scalar: one part of each source
//   vadd.s32.u32.s32          d.h1, a.b0, b.h1, c;   scalar: the result replaces a part of c
//   vadd4.u32.u32.s32         d.b31, a.b7210, b, c;  bytes; those that the mask leaves out are c's
//   vadd4.u32.u32.s32.add     d, a, b, c;            their sum, and c
//
// Parts are extended by their type and computed with. A result is clamped (.sat) or cut to the
// destination's type; only then comes the second operation. So the manual has it, and so are
// instructions on halves and bytes. A GPU has no scalar video instructions: NVIDIA's assembler
// writes each as a few others, on 64-bit numbers where 32 bits do not hold the result, and leaves
// the manual in places. Scalar forms are computed as that code does (ptxas 13.0, sm_75 to sm_100a):
//
//   .sat of all of d   vshl and vshr: what 34 bits hold of the result is clamped; others: to s32
//                      from both sides, to u32 from below alone
//   .sat of a part     vshl and vshr: to 32 bits, not to the part's; others: what is negative or
//                      beyond 32 bits becomes the largest, as what is beyond the part's type does
//   d.h1               takes the upper half of the result, not the lower
//   .min, .max         compare 64 bits: the result of vadd and vsub, and a clamped shift, is
//                      extended by its sign even where d is u32; vset takes a's type for d's
//   vmad               the sources of the product, and c, are signed numbers of 32 bits whatever
//                      their types
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

enum class Operation : std::uint8_t {
  add,
  subtract,
  difference,
  minimum,
  maximum,
  average,
  shift_left,
  shift_right,
  equal,
  not_equal,
  less,
  at_most,
  greater,
  at_least,
};

enum class Second : std::uint8_t { none, add, minimum, maximum, merge };

// Where a part of a register is.
struct Part {
  std::uint8_t first = 0, width = 32;
};

constexpr std::uint8_t a_signed = 1, b_signed = 2, d_signed = 4, saturates = 8, wraps = 16;

// What a handler needs to know, in Op::value.
struct Form {
  Operation operation = Operation::add;
  Second second = Second::none;
  std::uint8_t flags = 0;
  std::uint8_t lanes = 1;  // of a register: 1, 2 or 4
  // Scalar: the parts. Else which elements of (a, b) are taken, three bits each, the lowest first,
  // and the mask of those that are computed.
  Part a, b, d;
  std::uint16_t a_elements = 0, b_elements = 0;
  std::uint8_t mask = 0;
};

std::int64_t extended(std::uint32_t word, Part part, bool is_signed) {
  const std::uint64_t up = std::uint64_t{word} << (64 - part.first - part.width);
  return is_signed ? static_cast<std::int64_t>(up) >> (64 - part.width)
                   : static_cast<std::int64_t>(up >> (64 - part.width));
}

std::uint32_t ones(std::uint32_t width) { return width == 32 ? ~0u : (1u << width) - 1; }

std::int64_t compute(Operation operation, std::int64_t a, std::int64_t b, bool wrap) {
  const int distance = static_cast<int>(wrap ? b & 31 : std::clamp<std::int64_t>(b, 0, 32));
  switch (operation) {
    case Operation::add: return a + b;
    case Operation::subtract: return a - b;
    case Operation::difference: return std::abs(a - b);
    case Operation::minimum: return std::min(a, b);
    case Operation::maximum: return std::max(a, b);
    case Operation::average: return (a + b + (a + b >= 0)) >> 1;
    case Operation::shift_left:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << distance);
    case Operation::shift_right: return a >> distance;
    case Operation::equal: return a == b;
    case Operation::not_equal: return a != b;
    case Operation::less: return a < b;
    case Operation::at_most: return a <= b;
    case Operation::greater: return a > b;
    case Operation::at_least: return a >= b;
  }
  return 0;
}

std::int64_t clamped(std::int64_t value, std::uint32_t width, bool is_signed) {
  const std::int64_t one = 1;
  const std::int64_t low = is_signed ? -(one << (width - 1)) : 0,
                     high = (is_signed ? one << (width - 1) : one << width) - 1;
  return std::clamp(value, low, high);
}

std::uint32_t word_of(std::int64_t value) { return static_cast<std::uint32_t>(value); }

bool is_shift(Operation operation) {
  return operation == Operation::shift_left || operation == Operation::shift_right;
}

std::int64_t saturated(const Form& form, std::int64_t value) {
  const bool is_signed = form.flags & d_signed;
  if (is_shift(form.operation)) return clamped(value << 30 >> 30, 32, is_signed);
  if (form.d.width == 32)
    return is_signed ? clamped(value, 32, true) : std::max<std::int64_t>(value, 0);
  const std::int64_t highest = ones(form.d.width - is_signed);
  return value < 0 ? highest : std::min(value, highest);
}

// .min and .max: whether the result, and not c, is the smaller one.
bool is_below(const Form& form, std::int64_t value, std::uint32_t c) {
  if (form.operation == Operation::add || form.operation == Operation::subtract ||
      (is_shift(form.operation) && form.flags & saturates))
    value = static_cast<std::int32_t>(value);
  return form.flags & d_signed ? value < static_cast<std::int32_t>(c)
                               : static_cast<std::uint64_t>(value) < c;
}

std::uint32_t scalar(const Form& form, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::int64_t value = compute(form.operation, extended(a, form.a, form.flags & a_signed),
                               extended(b, form.b, form.flags & b_signed), form.flags & wraps);
  if (form.flags & saturates) value = saturated(form, value);
  const std::uint32_t word = word_of(value);
  switch (form.second) {
    case Second::none: return word;
    case Second::add: return word + c;
    case Second::minimum: return is_below(form, value, c) ? word : c;
    case Second::maximum: return is_below(form, value, c) ? c : word;
    case Second::merge: break;
  }
  const std::uint32_t field = ones(form.d.width),
                      shift = form.d.first == 16 && form.d.width == 16 ? 16 : 0;
  return (c & ~(field << form.d.first)) | (word >> shift & field) << form.d.first;
}

std::uint32_t parallel(const Form& form, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t width = 32u / form.lanes;
  const auto element = [&](std::uint32_t index, bool is_signed) {
    const auto first = static_cast<std::uint8_t>(index % form.lanes * width);
    return extended(index < form.lanes ? a : b, {first, static_cast<std::uint8_t>(width)},
                    is_signed);
  };
  std::uint32_t out = c;
  for (std::uint32_t i = 0; i < form.lanes; ++i) {
    if (!(form.mask >> i & 1)) continue;
    std::int64_t value =
        compute(form.operation, element(form.a_elements >> 3 * i & 7, form.flags & a_signed),
                element(form.b_elements >> 3 * i & 7, form.flags & b_signed), false);
    if (form.flags & saturates) value = clamped(value, width, form.flags & d_signed);
    if (form.second == Second::add) {
      out += word_of(value);
      continue;
    }
    const std::uint32_t field = ones(width);
    out = (out & ~(field << i * width)) | (word_of(value) & field) << i * width;
  }
  return out;
}

// vmad: what follows the product, in Op::value.
struct MultiplyForm {
  Part a, b;
  std::uint8_t flags = 0, scale = 0;
  bool plus_one = false, negated = false, c_negated = false;
};

std::uint32_t multiply_add(const MultiplyForm& form, std::uint32_t a, std::uint32_t b,
                           std::uint32_t c) {
  const bool is_signed = form.flags & (a_signed | b_signed) || form.negated || form.c_negated;
  const auto factor = [](std::uint32_t word, Part part, bool extends) {
    return std::int64_t{static_cast<std::int32_t>(extended(word, part, extends))};
  };
  const std::int64_t product = factor(a, form.a, form.flags & a_signed) *
                               factor(b, form.b, form.flags & b_signed),
                     addend = static_cast<std::int32_t>(form.c_negated ? ~c : c);
  std::int64_t sum =
      (form.negated ? -product : product) + addend + (form.plus_one || form.c_negated);
  sum = is_signed || form.scale == 0
            ? sum >> form.scale
            : static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) >> form.scale);
  if (form.flags & saturates) sum = clamped(sum, 32, is_signed);
  return word_of(sum);
}

template <typename F,
          std::uint32_t (*compute_one)(const F&, std::uint32_t, std::uint32_t, std::uint32_t)>
void run(Warp& warp, const Op& op) {
  F form;
  std::memcpy(static_cast<void*>(&form), warp.program->slots.data() + op.list, sizeof form);
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b),
             *c = lanes<std::uint32_t>(warp, op.c);
  each_lane(warp.mask, [&](int i) { d[i] = compute_one(form, a[i], b[i], c[i]); });
}

// ---- Decoding.

template <typename F>
std::uint32_t append(Decoder& d, const F& form) {
  std::uint32_t words[(sizeof form + 3) / 4] = {};
  std::memcpy(words, &form, sizeof form);
  return d.append(words);
}

// An operand `r1.b0`, taken apart; empty selector: all of it.
struct Selected {
  ptx::Operand operand;
  std::string_view selector;
};

Selected selected(const Decoder& d, const ptx::Operand& given) {
  ptx::Operand operand = given;
  if (operand.kind == ptx::OperandKind::Negative) operand = d.children(operand)[0];
  const std::size_t dot = operand.text.rfind('.');
  if (operand.kind != ptx::OperandKind::Name || dot == std::string_view::npos || dot == 0)
    return {operand, {}};
  const std::string_view selector = operand.text.substr(dot + 1);
  if (selector.size() < 2 || (selector[0] != 'b' && selector[0] != 'h') ||
      selector.find_first_not_of("01234567", 1) != std::string_view::npos)
    return {operand, {}};
  operand.text = operand.text.substr(0, dot);
  return {operand, selector};
}

std::optional<Part> part_of(std::string_view selector) {
  if (selector.empty()) return Part{};
  const auto width = static_cast<std::uint8_t>(selector[0] == 'b' ? 8 : 16);
  const int index = selector[1] - '0';
  if (selector.size() != 2 || index >= 32 / width) return std::nullopt;
  return Part{static_cast<std::uint8_t>(index * width), width};
}

// .b7654 names the elements from the highest down: three bits each, the lowest first.
std::optional<std::uint16_t> elements_of(std::string_view selector, std::uint32_t count,
                                         std::uint32_t first) {
  std::uint16_t out = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t element =
        selector.empty() ? first + i : static_cast<std::uint32_t>(selector[count - i] - '0');
    if (element >= 2 * count) return std::nullopt;
    out = static_cast<std::uint16_t>(out | element << 3 * i);
  }
  return out;
}

std::optional<std::uint8_t> mask_of(std::string_view selector, std::uint32_t count) {
  if (selector.empty()) return static_cast<std::uint8_t>((1u << count) - 1);
  std::uint8_t out = 0;
  for (std::size_t i = 1; i < selector.size(); ++i) {
    const auto element = static_cast<std::uint32_t>(selector[i] - '0');
    if (element >= count) return std::nullopt;
    out = static_cast<std::uint8_t>(out | 1u << element);
  }
  return out;
}

bool is_word(Type type) { return type == Type::u32 || type == Type::s32; }

// The types of the sources, in front of which the destination's stands; vset takes that of a.
bool read_types(Decoder& d, bool has_destination, std::uint8_t& flags) {
  const std::size_t first = has_destination ? 1 : 0;
  if (d.spelling.types() != 2 + first) return false;
  const Type a = d.spelling.type(first), b = d.spelling.type(first + 1),
             to = has_destination ? d.spelling.type(0) : a;
  flags =
      static_cast<std::uint8_t>((a == Type::s32 ? a_signed : 0) | (b == Type::s32 ? b_signed : 0) |
                                (to == Type::s32 ? d_signed : 0));
  return is_word(a) && is_word(b) && is_word(to);
}

struct OperationRow {
  Opcode scalar, halves, bytes;
  Operation operation;
};
constexpr OperationRow operations[] = {
    {Opcode::vadd, Opcode::vadd2, Opcode::vadd4, Operation::add},
    {Opcode::vsub, Opcode::vsub2, Opcode::vsub4, Operation::subtract},
    {Opcode::vabsdiff, Opcode::vabsdiff2, Opcode::vabsdiff4, Operation::difference},
    {Opcode::vmin, Opcode::vmin2, Opcode::vmin4, Operation::minimum},
    {Opcode::vmax, Opcode::vmax2, Opcode::vmax4, Operation::maximum},
    {Opcode::none, Opcode::vavrg2, Opcode::vavrg4, Operation::average},
    {Opcode::vshl, Opcode::none, Opcode::none, Operation::shift_left},
    {Opcode::vshr, Opcode::none, Opcode::none, Operation::shift_right},
};
constexpr std::pair<isa::Qualifier, Operation> comparisons[] = {
    {"eq"_q, Operation::equal},   {"ne"_q, Operation::not_equal}, {"lt"_q, Operation::less},
    {"le"_q, Operation::at_most}, {"gt"_q, Operation::greater},   {"ge"_q, Operation::at_least},
};

bool is_comparison(Opcode opcode) {
  return opcode == Opcode::vset || opcode == Opcode::vset2 || opcode == Opcode::vset4;
}

// The operation of the opcode, or the comparison that the spelling names.
std::optional<Operation> read_operation(Decoder& d) {
  const Opcode opcode = d.spelling.opcode();
  for (const OperationRow& row : operations)
    if (opcode == row.scalar || opcode == row.halves || opcode == row.bytes) return row.operation;
  if (is_comparison(opcode))
    for (const auto& [name, operation] : comparisons)
      if (d.spelling.has(name)) return operation;
  return std::nullopt;
}

Second read_second(Decoder& d) {
  const std::string_view name = d.spelling.any("add min max");
  return name == "add"   ? Second::add
         : name == "min" ? Second::minimum
         : name == "max" ? Second::maximum
                         : Second::none;
}

void emit(Decoder& d, Handler handler, std::uint32_t form, const Selected& to, const Selected& a,
          const Selected& b, const ptx::Operand* c) {
  const std::uint32_t destination = d.destination(to.operand, Type::u32),
                      left = d.source(a.operand, Type::u32), right = d.source(b.operand, Type::u32),
                      third = c ? d.source(*c, Type::u32) : left;
  Op& op = d.emit(handler);
  op.list = form;
  op.d = destination;
  op.a = left;
  op.b = right;
  op.c = third;
}

void decode_scalar(Decoder& d) {
  Form form;
  const auto operation = read_operation(d);
  if (!operation || !read_types(d, d.spelling.opcode() != Opcode::vset, form.flags))
    return d.unsupported();
  form.operation = *operation;
  if (form.operation == Operation::shift_left || form.operation == Operation::shift_right) {
    const bool wrap = d.spelling.has("wrap");
    if (wrap == d.spelling.has("clamp") || form.flags & b_signed) return d.unsupported();
    if (wrap) form.flags |= wraps;
  }
  if (d.spelling.has("sat")) form.flags |= saturates;
  form.second = read_second(d);
  if (!d.expect_operands(3, 4)) return;
  const Selected to = selected(d, d.operand(0)), a = selected(d, d.operand(1)),
                 b = selected(d, d.operand(2));
  const auto a_part = part_of(a.selector), b_part = part_of(b.selector),
             d_part = part_of(to.selector);
  if (!a_part || !b_part || !d_part) return d.unsupported("parts are .b0 to .b3, .h0 and .h1");
  form.a = *a_part;
  form.b = *b_part;
  form.d = *d_part;
  if (!to.selector.empty()) {
    if (form.second != Second::none)
      return d.unsupported("a secondary operation requires all of the destination");
    form.second = Second::merge;
  }
  const bool has_third = form.second != Second::none;
  if (has_third != (d.operand_count() == 4))
    return d.unsupported(has_third ? "expected a third source"
                                   : "a third source requires .add, .min, .max or a part of d");
  emit(d, run<Form, scalar>, append(d, form), to, a, b, has_third ? &d.operand(3) : nullptr);
}

template <std::uint8_t Lanes>
void decode_parallel(Decoder& d) {
  Form form{.lanes = Lanes};
  const auto operation = read_operation(d);
  if (!operation || !read_types(d, !is_comparison(d.spelling.opcode()), form.flags))
    return d.unsupported();
  form.operation = *operation;
  if (d.spelling.has("sat")) form.flags |= saturates;
  form.second = d.spelling.has("add") ? Second::add : Second::merge;
  if (form.flags & saturates && form.second == Second::add)
    return d.unsupported(".sat and .add exclude each other");
  if (!d.expect_operands(4, 4)) return;
  const Selected to = selected(d, d.operand(0)), a = selected(d, d.operand(1)),
                 b = selected(d, d.operand(2));
  for (const Selected* each : {&a, &b})
    if (!each->selector.empty() && each->selector.size() != std::size_t{form.lanes} + 1)
      return d.unsupported("a selector names one source element per result element");
  const char letter = form.lanes == 2 ? 'h' : 'b';
  for (const Selected* each : {&to, &a, &b})
    if (!each->selector.empty() && each->selector[0] != letter)
      return d.unsupported(form.lanes == 2 ? "expected half selectors, .h"
                                           : "expected byte selectors, .b");
  const auto a_elements = elements_of(a.selector, form.lanes, 0),
             b_elements = elements_of(b.selector, form.lanes, form.lanes);
  const auto mask = mask_of(to.selector, form.lanes);
  if (!a_elements || !b_elements || !mask) return d.unsupported("element selector out of range");
  form.a_elements = *a_elements;
  form.b_elements = *b_elements;
  form.mask = *mask;
  emit(d, run<Form, parallel>, append(d, form), to, a, b, &d.operand(3));
}

void decode_multiply_add(Decoder& d) {
  MultiplyForm form;
  if (!read_types(d, true, form.flags)) return d.unsupported();
  if (d.spelling.has("sat")) form.flags |= saturates;
  form.plus_one = d.spelling.has("po");
  const std::string_view scale = d.spelling.any("shr7 shr15");
  form.scale = scale == "shr7" ? 7 : scale == "shr15" ? 15 : 0;
  if (!d.expect_operands(4, 4)) return;
  const auto negative = [&](std::size_t i) {
    return d.operand(i).kind == ptx::OperandKind::Negative;
  };
  form.negated = negative(1) != negative(2);
  form.c_negated = negative(3);
  if (form.plus_one && (form.negated || form.c_negated))
    return d.unsupported("with .po, neither the product nor c can be negated");
  if (form.negated && form.c_negated)
    return d.unsupported("the product and c cannot both be negated");
  const Selected to = selected(d, d.operand(0)), a = selected(d, d.operand(1)),
                 b = selected(d, d.operand(2)), c = selected(d, d.operand(3));
  const auto a_part = part_of(a.selector), b_part = part_of(b.selector);
  if (!a_part || !b_part || !to.selector.empty() || !c.selector.empty())
    return d.unsupported("parts, .b0 to .b3, .h0 and .h1, apply to a and b");
  form.a = *a_part;
  form.b = *b_part;
  emit(d, run<MultiplyForm, multiply_add>, append(d, form), to, a, b, &c.operand);
}

}  // namespace

constexpr EmulatedRow video_rows[] = {
    computation(Opcode::vadd, decode_scalar, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vsub, decode_scalar, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vabsdiff, decode_scalar, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vmin, decode_scalar, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vmax, decode_scalar, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vshl, decode_scalar, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vshr, decode_scalar, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vset, decode_scalar, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vmad, decode_multiply_add, Flow::Spreads, Meaning::Bits),
    computation(Opcode::vadd2, decode_parallel<2>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vsub2, decode_parallel<2>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vavrg2, decode_parallel<2>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vabsdiff2, decode_parallel<2>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vmin2, decode_parallel<2>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vmax2, decode_parallel<2>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vset2, decode_parallel<2>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vadd4, decode_parallel<4>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vsub4, decode_parallel<4>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vavrg4, decode_parallel<4>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vabsdiff4, decode_parallel<4>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vmin4, decode_parallel<4>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vmax4, decode_parallel<4>, Flow::Spreads, Meaning::Fields),
    computation(Opcode::vset4, decode_parallel<4>, Flow::Spreads, Meaning::Fields),
};
static_assert(are_rows_of(video_rows, topics::video));

}  // namespace tartan::TARTAN_ABI::emulator
