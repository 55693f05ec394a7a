// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic (PTX ISA 9.0, 9.7.1), and the names that it shares with floating point.
#include <algorithm>
#include <bit>
#include <limits>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Arithmetic wraps: it is done on unsigned values of at least 32 bits.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <typename T>
constexpr Wrapping<T> wrapping(T x) {
  return static_cast<Wrapping<T>>(x);
}

template <typename T>
struct Wide;
template <>
struct Wide<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Wide<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Wide<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Wide<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct Wide<std::uint64_t> {
  using type = UInt128;
};
template <>
struct Wide<std::int64_t> {
  using type = Int128;
};

template <typename T>
T high_half(T a, T b) {
  using W = typename Wide<T>::type;
  return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
}

struct Add {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(wrapping(a) + wrapping(b));
  }
};
struct Subtract {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(wrapping(a) - wrapping(b));
  }
};
struct MultiplyLow {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};
struct MultiplyHigh {
  template <typename T>
  static T apply(T a, T b) {
    return high_half(a, b);
  }
};
struct MultiplyWide {
  template <typename T>
  static typename Wide<T>::type apply(T a, T b) {
    using W = typename Wide<T>::type;
    return static_cast<W>(static_cast<W>(a) * static_cast<W>(b));
  }
};
struct MultiplyAddLow {
  template <typename T>
  static T apply(T a, T b, T c) {
    return static_cast<T>(wrapping(a) * wrapping(b) + wrapping(c));
  }
};
struct MultiplyAddHigh {
  template <typename T>
  static T apply(T a, T b, T c) {
    return static_cast<T>(wrapping(high_half(a, b)) + wrapping(c));
  }
};
struct MultiplyAddWide {
  template <typename T>
  static typename Wide<T>::type apply(T a, T b, typename Wide<T>::type c) {
    using W = typename Wide<T>::type;
    return Add::apply<W>(static_cast<W>(static_cast<W>(a) * static_cast<W>(b)), c);
  }
};
// Division by zero gives all ones; the smallest number divided by -1 wraps.
struct Divide {
  template <typename T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return static_cast<T>(0 - wrapping(a));
    return static_cast<T>(a / b);
  }
};
// The remainder by zero is all ones too.
struct Remainder {
  template <typename T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};
struct Minimum {
  template <typename T>
  static T apply(T a, T b) {
    return std::min(a, b);
  }
};
struct Maximum {
  template <typename T>
  static T apply(T a, T b) {
    return std::max(a, b);
  }
};
template <typename F>
struct Relu {
  template <typename T>
  static T apply(T a, T b) {
    return std::max<T>(F::template apply<T>(a, b), 0);
  }
};
struct Absolute {
  template <typename T>
  static T apply(T a) {
    return a < 0 ? static_cast<T>(0 - wrapping(a)) : a;
  }
};
struct Negate {
  template <typename T>
  static T apply(T a) {
    return static_cast<T>(0 - wrapping(a));
  }
};
struct SumOfDifferences {
  template <typename T>
  static T apply(T a, T b, T c) {
    return static_cast<T>(wrapping(c) +
                          (a < b ? wrapping(b) - wrapping(a) : wrapping(a) - wrapping(b)));
  }
};
struct SaturatingAdd {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(std::int64_t{a} + b, std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::int32_t>::max()));
  }
};
struct SaturatingSubtract {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(std::int64_t{a} - b, std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::int32_t>::max()));
  }
};
struct SaturatingMultiplyAddHigh {
  static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
    return SaturatingAdd::apply(high_half(a, b), c);
  }
};

// 24-bit operands, a 48-bit product: its low or its high 32 bits.
template <typename T, bool High>
struct Multiply24 {
  static std::int64_t narrow24(T x) {
    if constexpr (std::is_signed_v<T>)
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << 8) >> 8;
    else return x & 0xFFFFFF;
  }
  static T apply(T a, T b) {
    return static_cast<T>((narrow24(a) * narrow24(b)) >> (High ? 16 : 0));
  }
  static T apply(T a, T b, T c) { return Add::apply<T>(apply(a, b), c); }
};
template <bool High>
struct SaturatingMultiplyAdd24 {
  static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
    return SaturatingAdd::apply(Multiply24<std::int32_t, High>::apply(a, b), c);
  }
};

// Two 16-bit halves.
template <typename F, typename T>
struct Halves {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    const auto low =
        static_cast<std::uint16_t>(F::template apply<T>(static_cast<T>(a), static_cast<T>(b)));
    const auto high = static_cast<std::uint16_t>(
        F::template apply<T>(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return static_cast<std::uint32_t>(high) << 16 | low;
  }
};

template <typename F>
Handler binary_of(Type type) {
  switch (type) {
    case Type::u16:
    case Type::b16: return binary<F, std::uint16_t, std::uint16_t>;
    case Type::s16: return binary<F, std::int16_t, std::int16_t>;
    case Type::u32:
    case Type::b32: return binary<F, std::uint32_t, std::uint32_t>;
    case Type::s32: return binary<F, std::int32_t, std::int32_t>;
    case Type::u64:
    case Type::b64: return binary<F, std::uint64_t, std::uint64_t>;
    case Type::s64: return binary<F, std::int64_t, std::int64_t>;
    default: return nullptr;
  }
}

template <typename F>
Handler ternary_of(Type type) {
  switch (type) {
    case Type::u16: return ternary<F, std::uint16_t, std::uint16_t>;
    case Type::s16: return ternary<F, std::int16_t, std::int16_t>;
    case Type::u32: return ternary<F, std::uint32_t, std::uint32_t>;
    case Type::s32: return ternary<F, std::int32_t, std::int32_t>;
    case Type::u64: return ternary<F, std::uint64_t, std::uint64_t>;
    case Type::s64: return ternary<F, std::int64_t, std::int64_t>;
    default: return nullptr;
  }
}

Type wide_type(Type type) {
  switch (type) {
    case Type::u16: return Type::u32;
    case Type::s16: return Type::s32;
    case Type::u32: return Type::u64;
    case Type::s32: return Type::s64;
    default: return Type::none;
  }
}

bool is_packed(Type type) { return type == Type::u16x2 || type == Type::s16x2; }

Handler multiply_wide(Type type) {
  switch (type) {
    case Type::u16: return binary<MultiplyWide, std::uint32_t, std::uint16_t>;
    case Type::s16: return binary<MultiplyWide, std::int32_t, std::int16_t>;
    case Type::u32: return binary<MultiplyWide, std::uint64_t, std::uint32_t>;
    case Type::s32: return binary<MultiplyWide, std::int64_t, std::int32_t>;
    default: return nullptr;
  }
}

Handler multiply_add_wide(Type type) {
  switch (type) {
    case Type::u16:
      return ternary<MultiplyAddWide, std::uint32_t, std::uint16_t, std::uint16_t, std::uint32_t>;
    case Type::s16:
      return ternary<MultiplyAddWide, std::int32_t, std::int16_t, std::int16_t, std::int32_t>;
    case Type::u32:
      return ternary<MultiplyAddWide, std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t>;
    case Type::s32:
      return ternary<MultiplyAddWide, std::int64_t, std::int32_t, std::int32_t, std::int64_t>;
    default: return nullptr;
  }
}

void emit_unary(Decoder& d, Handler handler, Type type) {
  if (!d.expect_operands(2, 2)) return;
  const std::uint32_t to = d.destination(0, type), a = d.source(1, type);
  Op& op = d.emit(handler);
  op.d = to;
  op.a = a;
}

void emit_binary(Decoder& d, Handler handler, Type to_type, Type type) {
  if (!d.expect_operands(3, 3)) return;
  const std::uint32_t to = d.destination(0, to_type), a = d.source(1, type), b = d.source(2, type);
  Op& op = d.emit(handler);
  op.d = to;
  op.a = a;
  op.b = b;
}

void emit_ternary(Decoder& d, Handler handler, Type to_type, Type type) {
  if (!d.expect_operands(4, 4)) return;
  const std::uint32_t to = d.destination(0, to_type), a = d.source(1, type), b = d.source(2, type),
                      c = d.source(3, to_type);
  Op& op = d.emit(handler);
  op.d = to;
  op.a = a;
  op.b = b;
  op.c = c;
}

template <typename F>
void decode_packed(Decoder& d) {
  const bool is_signed = d.spelling.type() == Type::s16x2;
  emit_binary(d,
              is_signed ? binary<Halves<F, std::int16_t>, std::uint32_t, std::uint32_t>
                        : binary<Halves<F, std::uint16_t>, std::uint32_t, std::uint32_t>,
              Type::b32, Type::b32);
}

void decode_add(Decoder& d) {
  if (decode_float_pairs(d) || decode_packed_integers(d)) return;
  if (d.spelling.has("cc")) return decode_carry(d);
  const Type type = d.spelling.type();
  if (is_packed(type)) return decode_packed<Add>(d);
  if (info(type).floating) return decode_float_arithmetic(d);
  if (d.spelling.has("sat"))
    return emit_binary(
        d, type == Type::s32 ? binary<SaturatingAdd, std::int32_t, std::int32_t> : nullptr, type,
        type);
  emit_binary(d, binary_of<Add>(type), type, type);
}

void decode_sub(Decoder& d) {
  if (decode_float_pairs(d) || decode_packed_integers(d)) return;
  if (d.spelling.has("cc")) return decode_carry(d);
  const Type type = d.spelling.type();
  if (info(type).floating) return decode_float_arithmetic(d);
  if (d.spelling.has("sat"))
    return emit_binary(
        d, type == Type::s32 ? binary<SaturatingSubtract, std::int32_t, std::int32_t> : nullptr,
        type, type);
  emit_binary(d, binary_of<Subtract>(type), type, type);
}

void decode_mul(Decoder& d) {
  if (decode_float_pairs(d)) return;
  const Type type = d.spelling.type();
  if (info(type).floating) return decode_float_arithmetic(d);
  const std::string_view half = d.spelling.any("lo hi wide");
  if (half == "wide") return emit_binary(d, multiply_wide(type), wide_type(type), type);
  if (half.empty()) return d.unsupported();
  emit_binary(d, half == "lo" ? binary_of<MultiplyLow>(type) : binary_of<MultiplyHigh>(type), type,
              type);
}

void decode_mad(Decoder& d) {
  if (d.spelling.has("cc")) return decode_carry(d);
  const Type type = d.spelling.type();
  if (info(type).floating) return decode_float_arithmetic(d);
  const std::string_view half = d.spelling.any("lo hi wide");
  if (half == "wide") return emit_ternary(d, multiply_add_wide(type), wide_type(type), type);
  if (half.empty()) return d.unsupported();
  if (d.spelling.has("sat"))
    return emit_ternary(d,
                        type == Type::s32 && half == "hi"
                            ? ternary<SaturatingMultiplyAddHigh, std::int32_t, std::int32_t>
                            : nullptr,
                        type, type);
  emit_ternary(d,
               half == "lo" ? ternary_of<MultiplyAddLow>(type) : ternary_of<MultiplyAddHigh>(type),
               type, type);
}

void decode_mul24(Decoder& d) {
  const Type type = d.spelling.type();
  const bool high = d.spelling.has("hi"), is_signed = type == Type::s32;
  if (!high && !d.spelling.has("lo")) return d.unsupported();
  if (!is_signed && type != Type::u32) return d.unsupported();
  emit_binary(d,
              is_signed
                  ? (high ? binary<Multiply24<std::int32_t, true>, std::int32_t, std::int32_t>
                          : binary<Multiply24<std::int32_t, false>, std::int32_t, std::int32_t>)
                  : (high ? binary<Multiply24<std::uint32_t, true>, std::uint32_t, std::uint32_t>
                          : binary<Multiply24<std::uint32_t, false>, std::uint32_t, std::uint32_t>),
              type, type);
}

void decode_mad24(Decoder& d) {
  const Type type = d.spelling.type();
  const bool high = d.spelling.has("hi"), is_signed = type == Type::s32;
  if (!high && !d.spelling.has("lo")) return d.unsupported();
  if (!is_signed && type != Type::u32) return d.unsupported();
  if (d.spelling.has("sat"))
    return emit_ternary(d,
                        high && is_signed
                            ? ternary<SaturatingMultiplyAdd24<true>, std::int32_t, std::int32_t>
                            : nullptr,
                        type, type);
  emit_ternary(
      d,
      is_signed ? (high ? ternary<Multiply24<std::int32_t, true>, std::int32_t, std::int32_t>
                        : ternary<Multiply24<std::int32_t, false>, std::int32_t, std::int32_t>)
                : (high ? ternary<Multiply24<std::uint32_t, true>, std::uint32_t, std::uint32_t>
                        : ternary<Multiply24<std::uint32_t, false>, std::uint32_t, std::uint32_t>),
      type, type);
}

void decode_div(Decoder& d) {
  const Type type = d.spelling.type();
  if (info(type).floating) return decode_float_arithmetic(d);
  emit_binary(d, binary_of<Divide>(type), type, type);
}

void decode_rem(Decoder& d) {
  const Type type = d.spelling.type();
  emit_binary(d, binary_of<Remainder>(type), type, type);
}

template <typename F>
void decode_extremum(Decoder& d) {
  if (decode_packed_integers(d)) return;
  const Type type = d.spelling.type();
  if (info(type).floating) return decode_float_arithmetic(d);
  const bool relu = d.spelling.has("relu");
  if (is_packed(type)) {
    if (!relu) return decode_packed<F>(d);
    if (type != Type::s16x2) return d.unsupported();
    return emit_binary(d, binary<Halves<Relu<F>, std::int16_t>, std::uint32_t, std::uint32_t>,
                       Type::b32, Type::b32);
  }
  if (relu)
    return emit_binary(d, type == Type::s32 ? binary<Relu<F>, std::int32_t, std::int32_t> : nullptr,
                       type, type);
  emit_binary(d, binary_of<F>(type), type, type);
}

template <typename F>
void decode_sign(Decoder& d) {
  if (decode_packed_integers(d)) return;
  const Type type = d.spelling.type();
  if (info(type).floating) return decode_float_arithmetic(d);
  switch (type) {
    case Type::s16: return emit_unary(d, unary<F, std::int16_t, std::int16_t>, type);
    case Type::s32: return emit_unary(d, unary<F, std::int32_t, std::int32_t>, type);
    case Type::s64: return emit_unary(d, unary<F, std::int64_t, std::int64_t>, type);
    default: return d.unsupported();
  }
}

void decode_sad(Decoder& d) {
  const Type type = d.spelling.type();
  emit_ternary(d, ternary_of<SumOfDifferences>(type), type, type);
}

}  // namespace

constexpr EmulatedRow integer_rows[] = {
    computation(Opcode::add, decode_add, Flow::Spreads, Meaning::Computes),
    computation(Opcode::sub, decode_sub, Flow::Spreads, Meaning::Computes),
    computation(Opcode::mul, decode_mul, Flow::Spreads, Meaning::Computes),
    computation(Opcode::mad, decode_mad, Flow::Spreads, Meaning::Computes),
    computation(Opcode::mul24, decode_mul24, Flow::Spreads, Meaning::Bits),
    computation(Opcode::mad24, decode_mad24, Flow::Spreads, Meaning::Bits),
    computation(Opcode::div, decode_div, Flow::Spreads, Meaning::Computes),
    computation(Opcode::rem, decode_rem, Flow::Spreads, Meaning::Bits),
    computation(Opcode::min, decode_extremum<Minimum>, Flow::Spreads, Meaning::Computes),
    computation(Opcode::max, decode_extremum<Maximum>, Flow::Spreads, Meaning::Computes),
    computation(Opcode::abs, decode_sign<Absolute>, Flow::Spreads, Meaning::Computes),
    computation(Opcode::neg, decode_sign<Negate>, Flow::Spreads, Meaning::Computes),
    computation(Opcode::sad, decode_sad, Flow::Spreads, Meaning::Bits),
};
static_assert(are_rows_of(integer_rows, topics::integer));

}  // namespace tartan::TARTAN_ABI::emulator
