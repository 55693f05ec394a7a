// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/float_format.h - decoding and encoding of floating-point formats.
//
// A finite number is significand * 2^(exponent - fraction bits). Subnormals keep the smallest
// exponent and a significand below one: tensor cores do not normalise them, which affects results.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::emulator {

struct Format {
  int exponent_bits = 0;
  int fraction_bits = 0;
  int bias = 0;
  bool infinity = false;  // an all-ones exponent is infinity or NaN
  std::uint32_t only_nan =
      0;  // formats without infinity: the one magnitude that is NaN; 0: none is

  constexpr int low() const {
    return 1 - bias;
  }  // exponent of the smallest normal number, and of subnormals
  constexpr int high() const { return (1 << exponent_bits) - 2 - bias; }
  constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
  constexpr std::uint32_t infinity_bits() const {
    return ((1u << exponent_bits) - 1) << fraction_bits;
  }
  constexpr std::uint32_t nan_bits() const {
    return (1u << (bits() - 1)) - 1;
  }  // what tensor cores give: all ones, no sign
};

/// tf32: the upper 19 bits of the register.
constexpr Format format(Type type) {
  switch (type) {
    case Type::f16: return {5, 10, 15, true};
    case Type::bf16: return {8, 7, 127, true};
    case Type::tf32: return {8, 10, 127, true};
    case Type::f32: return {8, 23, 127, true};
    case Type::e5m2: return {5, 2, 15, true};
    case Type::e4m3: return {4, 3, 7, false, 0x7F};
    case Type::e3m2: return {3, 2, 3};
    case Type::e2m3: return {2, 3, 1};
    case Type::e2m1: return {2, 1, 1};
    case Type::ue4m3: return {4, 3, 7, false, 0x7F};
    default: return {};
  }
}

enum class Special : std::uint8_t { none, infinity, nan };

/// The exponent of zero: below that of every sum with a nonzero term.
inline constexpr std::int16_t zero_exponent = -16000;

/// A decoded number. The significand carries the sign (infinity: 1 or -1).
struct Term {
  std::int32_t significand = 0;
  std::int16_t exponent = zero_exponent;
  Special special = Special::none;
};

constexpr Term decode(const Format& f, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & f.nan_bits();
  const bool negative = bits >> (f.bits() - 1) & 1;
  const std::uint32_t fraction = magnitude & ((1u << f.fraction_bits) - 1);
  const int field = static_cast<int>(magnitude >> f.fraction_bits);
  const int sign = negative ? -1 : 1;
  if (f.infinity && magnitude >= f.infinity_bits())
    return {sign, 0, fraction ? Special::nan : Special::infinity};
  if (f.only_nan && magnitude == f.only_nan) return {sign, 0, Special::nan};
  if (magnitude == 0) return {};
  if (field == 0)
    return {sign * static_cast<std::int32_t>(fraction), static_cast<std::int16_t>(f.low()),
            Special::none};
  return {sign * static_cast<std::int32_t>(fraction | 1u << f.fraction_bits),
          static_cast<std::int16_t>(field - f.bias), Special::none};
}

enum class Round : std::uint8_t { toward_zero, nearest_even };

/// magnitude * 2^exponent as a number of format `f` (which has infinities) with `kept` significant
/// bits, rounded at most once. Overflow gives infinity.
constexpr std::uint32_t encode(const Format& f, bool negative, std::uint64_t magnitude,
                               int exponent, Round round, int kept) {
  const std::uint32_t sign = negative ? 1u << (f.bits() - 1) : 0;
  if (magnitude == 0) return sign;
  const int width = 64 - std::countl_zero(magnitude);
  const int lowest = f.low() - (kept - 1);  // subnormals: the exponent of their last bit
  const int drop = width - kept > lowest - exponent ? width - kept : lowest - exponent;
  if (drop > 0) {
    if (drop > 64) return sign;
    const std::uint64_t rest =
        drop == 64 ? magnitude : magnitude & ((std::uint64_t{1} << drop) - 1);
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    magnitude = drop == 64 ? 0 : magnitude >> drop;
    exponent += drop;
    if (round == Round::nearest_even && (rest > half || (rest == half && (magnitude & 1))))
      ++magnitude;
    if (magnitude == 0) return sign;
  }
  const int top = 63 - std::countl_zero(magnitude);  // the leading bit
  if (top + exponent > f.high()) return sign | f.infinity_bits();
  const int last = (top + exponent < f.low() ? f.low() : top + exponent) -
                   f.fraction_bits;  // exponent of the format's last bit
  const auto fraction = static_cast<std::uint32_t>(
      exponent >= last ? magnitude << (exponent - last) : magnitude >> (last - exponent));
  // The leading bit of a normal number's fraction increments its exponent field.
  const int above = top + exponent - f.low();
  return sign | ((above < 0 ? 0 : static_cast<std::uint32_t>(above) << f.fraction_bits) + fraction);
}

/// A binary64 number as f16, nearest even: the only rounding of an exact sum or product. NaN gives
/// the tensor cores' NaN.
constexpr std::uint32_t to_half(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto field = static_cast<int>(bits >> 52 & 0x7FF);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const bool negative = bits >> 63;
  constexpr Format half = format(Type::f16);
  if (field == 0x7FF)
    return fraction ? half.nan_bits() : half.infinity_bits() | (negative ? 0x8000u : 0);
  const std::uint64_t magnitude = field ? fraction | std::uint64_t{1} << 52 : fraction;
  return encode(half, negative, magnitude, (field ? field : 1) - 1075, Round::nearest_even, 11);
}

/// An f16 number as binary32: exact.
constexpr float from_half(std::uint32_t bits) {
  constexpr Format half = format(Type::f16), single = format(Type::f32);
  const std::uint32_t sign = (bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
  if (magnitude >= half.infinity_bits())
    return std::bit_cast<float>(sign | single.infinity_bits() | (magnitude & 0x3FF) << 13);
  const std::uint32_t field = magnitude >> 10, fraction = magnitude & 0x3FF;
  const std::uint64_t significand = field ? fraction | 0x400 : fraction;
  return std::bit_cast<float>(encode(single, sign != 0, significand,
                                     static_cast<int>(field ? field : 1) - 25, Round::toward_zero,
                                     24));
}

/// A result as the emulated paths give it: NaN without payload or sign.
constexpr std::uint32_t canonical(float value) {
  return value != value ? 0x7FFFFFFFu : std::bit_cast<std::uint32_t>(value);
}

}  // namespace tartan::TARTAN_ABI::emulator
