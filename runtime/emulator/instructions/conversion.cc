// SPDX-License-Identifier: Apache-2.0
// cvt (PTX ISA 9.0, 9.7.9.21): integers and floats of every size, and the packed formats below 32
// bits.
//
// Numbers go through int64 or double, which hold every source exactly (64-bit integers to small
// floats: rounded to odd first), and are rounded once into the destination.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/isa/hints.h"
#include "runtime/emulator/instructions/half_vectors.h"
#include "runtime/emulator/instructions/packed_formats.h"
#include "runtime/emulator/instructions/stochastic.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/instructions/wide_registers.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint8_t ftz_flag = 8, sat_flag = 16, relu_flag = 32,
                       integral_flag = 64;  // below them: the Rounding

Rounding rounding_of(const Op& op) { return static_cast<Rounding>(op.flags & 7); }

// ---- Integer to integer. op.value: the bits of the destination register.

template <typename D, typename A>
D saturated(A a) {
  using Big = Int128;
  return static_cast<D>(std::clamp<Big>(static_cast<Big>(a),
                                        static_cast<Big>(std::numeric_limits<D>::min()),
                                        static_cast<Big>(std::numeric_limits<D>::max())));
}

template <typename D, typename A>
void integer_to_integer(Warp& warp, const Op& op) {
  using To = Raw<D>;
  auto* d = lanes<To>(warp, op.d);
  const auto* a = lanes<Raw<A>>(warp, op.a);
  const auto mask = static_cast<To>(op.value);
  if (op.flags & sat_flag)
    each_lane(warp.mask,
              [=](int i) { d[i] = static_cast<To>(saturated<D>(static_cast<A>(a[i]))) & mask; });
  else
    each_lane(warp.mask,
              [=](int i) { d[i] = static_cast<To>(static_cast<D>(static_cast<A>(a[i]))) & mask; });
}

template <typename D>
Handler from_integer_type(Type from) {
  switch (from) {
    case Type::u8:
    case Type::b8: return integer_to_integer<D, std::uint8_t>;
    case Type::s8: return integer_to_integer<D, std::int8_t>;
    case Type::u16: return integer_to_integer<D, std::uint16_t>;
    case Type::s16: return integer_to_integer<D, std::int16_t>;
    case Type::u32: return integer_to_integer<D, std::uint32_t>;
    case Type::s32: return integer_to_integer<D, std::int32_t>;
    case Type::u64: return integer_to_integer<D, std::uint64_t>;
    case Type::s64: return integer_to_integer<D, std::int64_t>;
    default: return nullptr;
  }
}

Handler integer_handler(Type to, Type from) {
  switch (to) {
    case Type::u8: return from_integer_type<std::uint8_t>(from);
    case Type::s8: return from_integer_type<std::int8_t>(from);
    case Type::u16: return from_integer_type<std::uint16_t>(from);
    case Type::s16: return from_integer_type<std::int16_t>(from);
    case Type::u32: return from_integer_type<std::uint32_t>(from);
    case Type::s32: return from_integer_type<std::int32_t>(from);
    case Type::u64: return from_integer_type<std::uint64_t>(from);
    case Type::s64: return from_integer_type<std::int64_t>(from);
    default: return nullptr;
  }
}

// ---- Through double.

template <typename A>
double widened(A a) {
  if constexpr (std::is_same_v<A, Half> || std::is_same_v<A, Bfloat>) return to_float(a);
  else return static_cast<double>(a);
}

// A 64-bit integer as a double that rounds on as the integer would: what does not fit leaves a
// trace in the last bit.
template <typename A>
double to_odd(A a) {
  const bool is_negative = a < 0;
  std::uint64_t magnitude =
      is_negative ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
  if (magnitude >> 53) magnitude = (magnitude >> 11 << 11) | (magnitude & 0x7FF ? 0x800 : 0);
  const auto value = static_cast<double>(magnitude);
  return is_negative ? -value : value;
}

// A NaN of f64 keeps its sign and the payload's upper bits in a smaller type.
template <typename D>
D narrow_nan(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(quiet(x));
  if constexpr (std::is_same_v<D, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32 & 0x80000000) | 0x7F800000 |
                                static_cast<std::uint32_t>(bits >> 29 & 0x7FFFFF));
  else if constexpr (std::is_same_v<D, Bfloat>)
    return D{static_cast<std::uint16_t>((bits >> 48 & 0x8000) | 0x7F80 | (bits >> 45 & 0x7F))};
  else return D{static_cast<std::uint16_t>((bits >> 48 & 0x8000) | 0x7C00 | (bits >> 42 & 0x3FF))};
}

double to_integral(double x, Rounding round) {
  if (std::isnan(x)) return quiet(x);
  switch (round) {
    case Rounding::rz: return std::trunc(x);
    case Rounding::rm: return std::floor(x);
    case Rounding::rp: return std::ceil(x);
    default: return std::nearbyint(x);
  }
}

float narrow_to_float(double x, Rounding round) {
  if (std::isnan(x)) return std::bit_cast<float>(nan_f32);
  constexpr SmallFormat single{8, 23, true, 0x7F7FFFFF};
  return round == Rounding::rn ? static_cast<float>(x)
                               : std::bit_cast<float>(narrow(single, x, round));
}

template <typename D>
D to_number(double x, Rounding round) {
  if constexpr (std::is_same_v<D, double>) return x;
  else if constexpr (std::is_same_v<D, float>) return narrow_to_float(x, round);
  else return from_double<D>(x, round);
}

template <typename D>
D clamped(D x, double exact, bool relu) {
  if (relu) return std::isnan(exact) || !std::signbit(exact) ? x : D{};
  if constexpr (std::is_same_v<D, double> || std::is_same_v<D, float>)
    return exact > 0 ? (exact < 1 ? x : D(1)) : D(0);
  else return exact > 0 ? (exact < 1 ? x : from_float<D>(1.0f)) : D{};
}

template <typename T>
constexpr bool is_float = !std::is_integral_v<T>;

template <typename D, typename A>
D convert(A a, const Op& op) {
  const Rounding round = rounding_of(op);
  if constexpr (is_float<A> && is_float<D>) {
    double x;
    // Subnormal f32 that become f16 are not flushed.
    if constexpr (std::is_same_v<A, float> && !std::is_same_v<D, Half>)
      x = widened(op.flags & ftz_flag ? canonical_nan(flush(a)) : a);
    else x = widened(a);
    D out;
    if constexpr (std::is_same_v<A, double> && !std::is_same_v<D, double>)
      if (std::isnan(x) && !(op.flags & (sat_flag | relu_flag))) return narrow_nan<D>(x);
    // What widens or stays is moved, NaN payloads included.
    if constexpr (std::is_same_v<D, float> &&
                  (std::is_same_v<A, float> || std::is_same_v<A, Bfloat>))
      if (op.flags == 0) return static_cast<float>(x);
    if (op.flags & integral_flag) {
      out = to_number<D>(to_integral(x, round), round);
    } else if constexpr (std::is_same_v<A, D> && !std::is_same_v<A, float>) {
      out = a;  // f64 to f64, f16 to f16: nothing is rounded
      if constexpr (sizeof(D) == 2)
        if (std::isnan(x)) out = {nan_16};
    } else {
      out = to_number<D>(x, round);
      if constexpr (std::is_same_v<D, float> && std::is_same_v<A, double>)
        if ((op.flags & ftz_flag) && is_smallest(out) && is_flushed(x, 0, round, std::signbit(x)))
          out = zero_of(out);
    }
    if constexpr (std::is_same_v<D, float>)
      if (op.flags & ftz_flag) out = flush(out);
    return op.flags & (sat_flag | relu_flag) ? clamped(out, x, op.flags & relu_flag) : out;
  } else if constexpr (is_float<A>) {
    double x;
    if constexpr (std::is_same_v<A, float>) x = widened(op.flags & ftz_flag ? flush(a) : a);
    else x = widened(a);
    // NaN gives 0, or the smallest integer where 64 bits are on either side.
    constexpr bool wide = sizeof(D) == 8 || std::is_same_v<A, double>;
    if (std::isnan(x)) return wide ? static_cast<D>(std::uint64_t{1} << (8 * sizeof(D) - 1)) : D{0};
    x = to_integral(x, round);
    constexpr double bound = static_cast<double>(std::uint64_t{1} << (8 * sizeof(D) - 1)) *
                             (std::is_signed_v<D> ? 1 : 2);
    if (x >= bound) return std::numeric_limits<D>::max();
    if (x < (std::is_signed_v<D> ? -bound : 0.0)) return std::numeric_limits<D>::min();
    return static_cast<D>(x);
  } else {
    double x;
    if constexpr (sizeof(A) < 8) x = static_cast<double>(a);
    else if constexpr (std::is_same_v<D, double>) {
      x = static_cast<double>(a);
      if (round != Rounding::rn) {
        // The nearest double and the exact difference say whether to step.
        const Int128 difference = static_cast<Int128>(a) - static_cast<Int128>(x);
        const bool up = round == Rounding::rp || (round == Rounding::rz && x < 0),
                   down = round == Rounding::rm || (round == Rounding::rz && x > 0);
        if (difference > 0 && up) x = std::nextafter(x, HUGE_VAL);
        if (difference < 0 && down) x = std::nextafter(x, -HUGE_VAL);
      }
    } else x = to_odd(a);
    D out = to_number<D>(x, round);
    return op.flags & sat_flag ? clamped(out, x, false) : out;
  }
}

template <typename D, typename A>
void through_double(Warp& warp, const Op& op) {
  auto* d = lanes<Raw<D>>(warp, op.d);
  const auto* a = lanes<Raw<A>>(warp, op.a);
  each_lane(warp.mask, [=, &op](int i) {
    Raw<D> raw = Lane<D>::put(convert<D, A>(Lane<A>::get(a[i]), op));
    if constexpr (std::is_integral_v<D> && std::is_signed_v<D> && sizeof(D) < 4)
      raw = static_cast<Raw<D>>(static_cast<std::int32_t>(static_cast<D>(raw))) &
            static_cast<Raw<D>>(op.value);
    d[i] = raw;
  });
}

template <typename D>
Handler from_type(Type from) {
  switch (from) {
    case Type::f16: return through_double<D, Half>;
    case Type::bf16: return through_double<D, Bfloat>;
    case Type::f32: return through_double<D, float>;
    case Type::f64: return through_double<D, double>;
    default: break;
  }
  if constexpr (is_float<D>) {
    switch (from) {
      case Type::u8: return through_double<D, std::uint8_t>;
      case Type::s8: return through_double<D, std::int8_t>;
      case Type::u16: return through_double<D, std::uint16_t>;
      case Type::s16: return through_double<D, std::int16_t>;
      case Type::u32: return through_double<D, std::uint32_t>;
      case Type::s32: return through_double<D, std::int32_t>;
      case Type::u64: return through_double<D, std::uint64_t>;
      case Type::s64: return through_double<D, std::int64_t>;
      default: break;
    }
  }
  return nullptr;
}

Handler handler_of(Type to, Type from) {
  if (!info(to).floating && !info(from).floating) return integer_handler(to, from);
  switch (to) {
    case Type::u8: return from_type<std::uint8_t>(from);
    case Type::s8: return from_type<std::int8_t>(from);
    case Type::u16: return from_type<std::uint16_t>(from);
    case Type::s16: return from_type<std::int16_t>(from);
    case Type::u32: return from_type<std::uint32_t>(from);
    case Type::s32: return from_type<std::int32_t>(from);
    case Type::u64: return from_type<std::uint64_t>(from);
    case Type::s64: return from_type<std::int64_t>(from);
    case Type::f16: return from_type<Half>(from);
    case Type::bf16: return from_type<Bfloat>(from);
    case Type::f32: return from_type<float>(from);
    case Type::f64: return from_type<double>(from);
    default: return nullptr;
  }
}

struct Modes {
  Rounding round = Rounding::rn;
  std::uint8_t flags = 0;
  bool satfinite = false;
};

template <typename D>
struct Nearest {
  template <typename A>
  static D apply(A a) {
    return static_cast<D>(a);
  }
};
template <typename D>
Handler nearest_of(Type from) {
  switch (from) {
    case Type::u8: return unary<Nearest<D>, D, std::uint8_t>;
    case Type::s8: return unary<Nearest<D>, D, std::int8_t>;
    case Type::u16: return unary<Nearest<D>, D, std::uint16_t>;
    case Type::s16: return unary<Nearest<D>, D, std::int16_t>;
    case Type::u32: return unary<Nearest<D>, D, std::uint32_t>;
    case Type::s32: return unary<Nearest<D>, D, std::int32_t>;
    default: return nullptr;
  }
}

// From integers up to 32 bits to the nearest f32, or to the equal f64; and between f32 and 16-bit
// floats, eight at a time. Null where the modes ask for more.
Handler vector_handler(Type to, Type from, std::uint8_t flags, bool pair = false,
                       bool satfinite = false) {
  const auto round = static_cast<Rounding>(flags & 7);
  const bool plain =
      !(flags & (sat_flag | integral_flag)) && (round == Rounding::rn || round == Rounding::rz);
  if (!plain) return nullptr;
  if (to == Type::f32 && round == Rounding::rn && !pair)
    if (const Handler nearest = nearest_of<float>(from)) return nearest;
  if (to == Type::f64) return nearest_of<double>(from);
  if (from == Type::f16 && to == Type::f32) return flags & relu_flag ? nullptr : from_half();
  const bool bfloat = to == Type::bf16;
  if (from != Type::f32 || (to != Type::f16 && !(bfloat && !(flags & ftz_flag)))) return nullptr;
  return to_halves({.bfloat = bfloat,
                    .pair = pair,
                    .towards_zero = round == Rounding::rz,
                    .satfinite = satfinite,
                    .relu = (flags & relu_flag) != 0});
}

Modes read_modes(Decoder& d) {
  Modes m;
  const std::string_view integral = d.spelling.any("rni rzi rmi rpi"),
                         plain = d.spelling.any("rn rz rm rp rna");
  const std::string_view mode = integral.empty() ? plain : integral.substr(0, 2);
  if (mode == "rz") m.round = Rounding::rz;
  else if (mode == "rm") m.round = Rounding::rm;
  else if (mode == "rp") m.round = Rounding::rp;
  else if (mode == "rna") m.round = Rounding::rna;
  m.flags = static_cast<std::uint8_t>(m.round);
  if (!integral.empty()) m.flags |= integral_flag;
  if (d.spelling.has("ftz")) m.flags |= ftz_flag;
  if (d.spelling.has("sat")) m.flags |= sat_flag;
  if (d.spelling.has("relu")) m.flags |= relu_flag;
  m.satfinite = d.spelling.has("satfinite");
  return m;
}

// ---- Packed formats: op.e the destination's row, op.list the source's; op.count elements.

std::uint32_t into(const PackedRow& row, double x, const Op& op) {
  if (std::isnan(x)) return row.nan;
  const Rounding round = rounding_of(op);
  if ((op.flags & relu_flag) && std::signbit(x)) return 0;
  return narrow(row.format, x, round, op.flags & sat_flag);
}

// d = {a (upper), b (lower)}, or one value.
void floats_to_packed(Warp& warp, const Op& op) {
  const PackedRow& row = packed_rows[op.e];
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto *a = lanes<std::uint32_t>(warp, op.a), *b = lanes<std::uint32_t>(warp, op.b);
  each_lane(warp.mask, [&](int i) {
    const std::uint32_t first = into(row, std::bit_cast<float>(a[i]), op);
    const bool tf32 = row.format.mantissa == 10 && row.format.exponent == 8;
    if (tf32 && rounding_of(op) == Rounding::rna && std::isnan(std::bit_cast<float>(a[i])))
      // .satfinite steps down from what has the largest exponent, be it infinity or not.
      d[i] = (a[i] & 0xFFFFE000) - (op.flags & sat_flag ? 0x2000 : 0);
    else if (op.count == 1) d[i] = tf32 ? first << 13 : first;
    else d[i] = first << row.element_bits | into(row, std::bit_cast<float>(b[i]), op);
  });
}

void packed_to_packed(Warp& warp, const Op& op) {
  const PackedRow &to = packed_rows[op.e], &from = packed_rows[op.list];
  auto* d = lanes<std::uint32_t>(warp, op.d);
  const auto* a = lanes<std::uint32_t>(warp, op.a);
  const auto element = [&](std::uint32_t word) {
    const double x = widen(from.format, word & ((1u << from.element_bits) - 1));
    return into(to, x, op);
  };
  each_lane(warp.mask, [&](int i) {
    d[i] = element(a[i] >> from.element_bits) << to.element_bits | element(a[i]);
  });
}

// The packed formats and tf32, which no registers have.
bool decode_packed(Decoder& d, const Modes& modes) {
  const Type into = d.spelling.type(0), out_of = d.spelling.type(1);
  const auto to = packed_row(into), from = packed_row(out_of);
  if (d.spelling.types() != 2 || !to || (!from && out_of != Type::f32)) return false;
  const bool single = into == Type::f16 || into == Type::bf16 || into == Type::tf32;
  if (single && (out_of != Type::f32 || (into != Type::tf32 && !modes.satfinite))) return false;
  const Type destination = register_of(packed_rows[*to]);
  std::uint8_t flags = modes.flags;
  if (modes.satfinite) flags |= sat_flag;
  if (out_of == Type::f32) {
    const std::size_t operands = single ? 2 : 3;
    if (!d.expect_operands(operands, operands)) return true;
    const WideResult result(d, destination);
    const std::uint32_t a = narrow_source(d, 1, Type::f32),
                        b = single ? a : narrow_source(d, 2, Type::f32);
    const Type half = into == Type::f16 || into == Type::f16x2     ? Type::f16
                      : into == Type::bf16 || into == Type::bf16x2 ? Type::bf16
                                                                   : Type::none;
    const Handler faster = vector_handler(half, Type::f32, modes.flags, !single, modes.satfinite);
    Op& op = d.emit(faster ? faster : floats_to_packed);
    op.d = result.slot;
    op.a = a;
    op.b = b;
    op.e = *to;
    op.count = single ? 1 : 2;
    op.flags = flags;
    result.widen(d);
    return true;
  }
  if (!d.expect_operands(2, 2)) return true;
  const Type source = register_of(packed_rows[*from]);
  const std::uint32_t slot = d.destination(0, destination), a = d.source(1, source);
  Op& op = d.emit(packed_to_packed);
  op.d = slot;
  op.a = a;
  op.e = *to;
  op.list = *from;
  op.flags = flags;
  return true;
}

void decode_cvt(Decoder& d) {
  if (d.spelling.has("rs")) return decode_stochastic(d);
  const Modes modes = read_modes(d);
  constexpr Version recorded{9, 0};  // whose forms a GPU's bits are compared with
  if (isa::first_version(d.spelling.as_read()) > recorded)
    d.rest_on(Trust::Documented, manual_source);
  if (decode_powers_of_two(d, modes.round, modes.satfinite) ||
      decode_scaled_pairs(d, modes.round, modes.satfinite, modes.flags & relu_flag) ||
      decode_packed(d, modes))
    return;
  const Type to = d.spelling.type(0), from = d.spelling.type(1);
  if (d.spelling.types() != 2 || modes.satfinite || modes.round == Rounding::rna)
    return d.unsupported();
  if (!d.expect_operands(2, 2)) return;
  Handler handler = handler_of(to, from);
  if (!handler) return d.unsupported();
  if (const Handler faster = vector_handler(to, from, modes.flags)) handler = faster;

  const std::uint32_t source = narrow_source(d, 1, from);
  const WideResult result(d, to);
  Op& op = d.emit(handler);
  op.d = result.slot;
  op.a = source;
  op.flags = modes.flags;
  op.value = result.mask();
  result.widen(d);
}

}  // namespace

constexpr EmulatedRow conversion_rows[] = {
    computation(Opcode::cvt, decode_cvt, Flow::Converts, Meaning::Converts),
    computation(Opcode::cvt_pack, decode_integer_pack, Flow::Spreads, Meaning::Bits),
};
static_assert(are_rows_of(conversion_rows, topics::conversion));

}  // namespace tartan::TARTAN_ABI::emulator
