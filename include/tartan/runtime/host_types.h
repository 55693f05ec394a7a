// SPDX-License-Identifier: Apache-2.0
// tartan/runtime/host_types.h - the element types of tensor cores that C++20 lacks, for host data:
// f16, bf16, tf32, e4m3 and e5m2. Each is its bits, as they are in device memory.
//
//   std::vector<host::f16> a(m * k);
//   a[0] = host::f16(0.1);          // rounded to nearest even
//   const float x = a[0];           // exact: every value of these types is a float
//   host::e4m3::from_bits(0x7f)     // NaN
//
// Conversions to these types round once, from double, to nearest even, as cvt.rn does (PTX ISA
// 9.7.9, "cvt"). What is too large becomes infinity in f16, bf16 and tf32; e4m3 and e5m2 saturate,
// as cvt.rn.satfinite does, and infinity with them. NaN becomes the NaN with all bits but the sign
// set. Arithmetic is that of float.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::host {

/// A binary floating-point format: sign, `exponent` bits with an IEEE bias, `mantissa` bits, below
/// them `unused` zeros.
struct Format {
  int exponent = 0, mantissa = 0, unused = 0;
  bool infinite = true;    // the largest exponent is infinity and NaN; else all ones alone is NaN
  bool saturates = false;  // a number that is too large becomes the largest
};

constexpr Format format_of(Type type) {
  switch (type) {
    case Type::f16: return {.exponent = 5, .mantissa = 10};
    case Type::bf16: return {.exponent = 8, .mantissa = 7};
    case Type::tf32: return {.exponent = 8, .mantissa = 10, .unused = 13};
    case Type::e4m3: return {.exponent = 4, .mantissa = 3, .infinite = false, .saturates = true};
    case Type::e5m2: return {.exponent = 5, .mantissa = 2, .saturates = true};
    default: return {};
  }
}

namespace detail {

// Magnitude bits of a format, without the zeros below. Numbers of a format are in the order of
// these bits, so that 1 more is the next larger number.
constexpr std::uint32_t all_ones(const Format& f) {
  return (std::uint32_t{1} << (f.exponent + f.mantissa)) - 1;
}
constexpr std::uint32_t infinity(const Format& f) {
  return all_ones(f) >> f.mantissa << f.mantissa;
}
constexpr std::uint32_t largest(const Format& f) {
  return (f.infinite ? infinity(f) : all_ones(f)) - 1;
}

// |x| of a number that is not NaN, rounded to nearest even.
constexpr std::uint32_t magnitude(const Format& f, double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) << 1 >> 1;
  const std::uint32_t beyond = f.saturates ? largest(f) : infinity(f);
  const int raw = static_cast<int>(bits >> 52), bias = (1 << (f.exponent - 1)) - 1;
  if (raw == 0x7ff) return beyond;
  if (raw == 0) return 0;  // zero, and doubles far below the smallest number
  const std::uint64_t significand = bits << 12 >> 12 | std::uint64_t{1} << 52;
  const int exponent = raw - 1023 + bias;             // of the result, if it is normal
  const int below = exponent < 1 ? 1 - exponent : 0;  // further bits that a subnormal drops
  const int dropped = 52 - f.mantissa + below;
  if (dropped > 53) return 0;  // less than half of the smallest
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t rest = significand & (2 * half - 1);
  std::uint64_t out = significand >> dropped;
  out += rest > half || (rest == half && out & 1);
  // The leading 1 of a normal number adds 1 to the exponent, as a carry does.
  if (!below) out += static_cast<std::uint64_t>(exponent - 1) << f.mantissa;
  return out > largest(f) ? beyond : static_cast<std::uint32_t>(out);
}

constexpr float value(const Format& f, std::uint32_t magnitude, bool negative) {
  const std::uint32_t sign = negative ? 0x80000000 : 0;
  const bool special = f.infinite ? magnitude >= infinity(f) : magnitude == all_ones(f);
  if (special) {
    const bool is_infinity = f.infinite && magnitude == infinity(f);
    return std::bit_cast<float>(sign | (is_infinity ? 0x7f800000u : 0x7fffffffu));
  }
  const int bias = (1 << (f.exponent - 1)) - 1;
  if (bias == 127) return std::bit_cast<float>(sign | magnitude << (23 - f.mantissa));
  if (magnitude >> f.mantissa == 0) {  // subnormal: a multiple of the smallest
    float out = static_cast<float>(magnitude);
    for (int i = 0; i < bias - 1 + f.mantissa; ++i) out /= 2;
    return negative ? -out : out;
  }
  const std::uint32_t rebased = static_cast<std::uint32_t>(127 - bias) << 23;
  return std::bit_cast<float>(sign | ((magnitude << (23 - f.mantissa)) + rebased));
}

}  // namespace detail

/// A number of an element type, as its bits.
template <Type element>
class Number {
 public:
  static constexpr Type type = element;
  static constexpr Format format = format_of(element);
  using Bits = std::conditional_t<
      tartan::bits(element) == 8, std::uint8_t,
      std::conditional_t<tartan::bits(element) == 16, std::uint16_t, std::uint32_t>>;

  constexpr Number() = default;
  constexpr explicit Number(double x) {
    const std::uint32_t number = x != x ? detail::all_ones(format) : detail::magnitude(format, x);
    const auto sign = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x) >> 63);
    bits_ =
        static_cast<Bits>((sign << (format.exponent + format.mantissa) | number) << format.unused);
  }
  static constexpr Number from_bits(Bits bits) {
    Number out;
    out.bits_ = bits;
    return out;
  }
  constexpr Bits bits() const { return bits_; }
  /// Exact. Bits below the mantissa of tf32 are ignored, as tensor cores do.
  constexpr operator float() const {
    const std::uint32_t word = bits_ >> format.unused;
    return detail::value(format, word & detail::all_ones(format),
                         word >> (format.exponent + format.mantissa));
  }

 private:
  Bits bits_ = 0;
};

using f16 = Number<Type::f16>;
using bf16 = Number<Type::bf16>;
using tf32 = Number<Type::tf32>;
using e4m3 = Number<Type::e4m3>;
using e5m2 = Number<Type::e5m2>;

/// The element type of a C++ type in device memory; std::byte is b8, which any type may be given
/// as.
template <typename T>
inline constexpr Type type_of = Type::none;
template <Type element>
inline constexpr Type type_of<Number<element>> = element;
template <>
inline constexpr Type type_of<float> = Type::f32;
template <>
inline constexpr Type type_of<double> = Type::f64;
template <>
inline constexpr Type type_of<std::int8_t> = Type::s8;
template <>
inline constexpr Type type_of<std::uint8_t> = Type::u8;
template <>
inline constexpr Type type_of<std::int16_t> = Type::s16;
template <>
inline constexpr Type type_of<std::uint16_t> = Type::u16;
template <>
inline constexpr Type type_of<std::int32_t> = Type::s32;
template <>
inline constexpr Type type_of<std::uint32_t> = Type::u32;
template <>
inline constexpr Type type_of<std::int64_t> = Type::s64;
template <>
inline constexpr Type type_of<std::uint64_t> = Type::u64;
template <>
inline constexpr Type type_of<std::byte> = Type::b8;

}  // namespace tartan::TARTAN_ABI::host
