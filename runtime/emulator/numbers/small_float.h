// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/numbers/small_float.h - number formats that C++20 lacks, and rounding to them.
//
// Half and Bfloat are bits with a name; arithmetic on them converts to float or double and back,
// and `narrow` rounds once. A sum of more than 53 bits is rounded to odd first (sum_to_odd):
// rounding that to a format of at most 51 bits equals rounding the exact sum.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

struct Half {
  std::uint16_t bits = 0;
};
struct Bfloat {
  std::uint16_t bits = 0;
};

enum class Rounding : std::uint8_t { rn, rz, rm, rp, rna };

// The result NaN of NVIDIA's arithmetic.
inline constexpr std::uint32_t nan_f32 = 0x7FFFFFFF;
inline constexpr std::uint16_t nan_16 = 0x7FFF;
inline constexpr std::uint64_t nan_f64 =
    0xFFF8000000000000;  // of an invalid f64 operation; NaN operands are propagated, quieted

/// A binary format: sign, `exponent` bits with an IEEE bias, `mantissa` bits.
struct SmallFormat {
  int exponent;
  int mantissa;
  bool infinite = true;   // the largest exponent means infinity and NaN
  std::uint32_t largest;  // bits of the largest finite value
};

inline constexpr SmallFormat format_f16{5, 10, true, 0x7BFF};
inline constexpr SmallFormat format_bf16{8, 7, true, 0x7F7F};
inline constexpr SmallFormat format_tf32{8, 10, true, 0x3FBFF};  // the upper 19 bits of an f32
inline constexpr SmallFormat format_e4m3{4, 3, false, 0x7E};
inline constexpr SmallFormat format_e5m2{5, 2, true, 0x7B};
inline constexpr SmallFormat format_e2m3{2, 3, false, 0x1F};
inline constexpr SmallFormat format_e3m2{3, 2, false, 0x1F};
inline constexpr SmallFormat format_e2m1{2, 1, false, 0x7};

/// Rounds a number (not NaN) to `format`: its bits, sign on top. Too large: infinity, or the
/// largest value if `saturate` is set, the format has no infinity, or the rounding is towards zero.
constexpr std::uint32_t narrow(const SmallFormat& format, double x, Rounding round,
                               bool saturate = false) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const bool negative = bits >> 63;
  const std::uint32_t sign = static_cast<std::uint32_t>(negative)
                             << (format.exponent + format.mantissa);
  const bool away = (round == Rounding::rp && !negative) || (round == Rounding::rm && negative);
  const bool nearest = round == Rounding::rn || round == Rounding::rna;
  const std::uint32_t beyond = saturate || !format.infinite ? format.largest : format.largest + 1;
  const int raw = static_cast<int>(bits >> 52 & 0x7FF);
  std::uint64_t mantissa = bits & 0xFFFFFFFFFFFFF;
  if (raw == 0x7FF) return sign | beyond;
  if (raw == 0 && mantissa == 0) return sign;
  if (raw != 0) mantissa |= std::uint64_t{1} << 52;
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = (raw ? raw : 1) - 1023;  // of the leading bit, for normal x
  const int scale =
      exponent < 1 - bias ? 1 - bias : exponent;  // exponent that the result is quantised for
  const int shift = 52 - format.mantissa + (scale - exponent);
  std::uint64_t kept = shift > 63 ? 0 : mantissa >> shift;
  bool inexact, half, over;
  if (shift > 54) {
    inexact = true;
    half = over = false;
  } else {
    const std::uint64_t rest = mantissa & ((std::uint64_t{1} << shift) - 1),
                        middle = std::uint64_t{1} << (shift - 1);
    inexact = rest != 0;
    half = rest == middle;
    over = rest > middle;
  }
  if (nearest ? over || (half && (round == Rounding::rna || (kept & 1))) : away && inexact) ++kept;
  std::uint64_t result = kept;
  if (scale > 1 - bias || kept >> format.mantissa) {
    const auto biased = static_cast<std::uint64_t>(scale + bias);
    result = (biased << format.mantissa) + (kept - (std::uint64_t{1} << format.mantissa));
  }
  if (result > format.largest) return sign | (nearest || away ? beyond : format.largest);
  return sign | static_cast<std::uint32_t>(result);
}

/// The value of a small format's bits; NaN codes give NaN.
constexpr double widen(const SmallFormat& format, std::uint32_t bits) {
  const int width = format.exponent + format.mantissa;
  const bool negative = bits >> width & 1;
  const std::uint32_t magnitude = bits & ((1u << width) - 1);
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = static_cast<int>(magnitude >> format.mantissa);
  const std::uint32_t mantissa = magnitude & ((1u << format.mantissa) - 1);
  if (magnitude > format.largest) {
    if (format.infinite && mantissa == 0)
      return negative ? -std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  const int power = (exponent ? exponent : 1) - bias - format.mantissa;
  const double scale = std::bit_cast<double>(static_cast<std::uint64_t>(power + 1023) << 52);
  const double value = (exponent ? mantissa | 1u << format.mantissa : mantissa) * scale;
  return negative ? -value : value;
}

inline float to_float(Half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000) << 16,
                      magnitude = h.bits & 0x7FFF;
  // Shifted into an f32's place, the value is 2^112 too small; infinities and NaNs need the
  // remaining exponent bits.
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  bits = magnitude >= 0x7C00 ? magnitude << 13 | 0x7F800000 : bits;
  return std::bit_cast<float>(bits | sign);
}
inline float to_float(Bfloat b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16);
}

/// Rounds to nearest even; any NaN gives the canonical one.
inline Half to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  // All cases are computed, so that loops over lanes have no branches. Subnormal: adding 0.5 makes
  // the host round at 2^-24.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3F000000,
                      normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  std::uint32_t out = magnitude < 0x38800000 ? subnormal : normal;
  out = magnitude >= 0x477FF000 ? 0x7C00 : out;
  out = magnitude > 0x7F800000 ? nan_16 : out | sign;
  return {static_cast<std::uint16_t>(out)};
}
inline Bfloat to_bfloat(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return {nan_16};
  return {static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

template <typename T>
T from_float(float x) {
  if constexpr (std::is_same_v<T, Half>) return to_half(x);
  else if constexpr (std::is_same_v<T, Bfloat>) return to_bfloat(x);
  else return x;
}

/// x rounded to odd: if inexact, the neighbour with an odd last bit. Rounding that to a format of
/// at most 22 bits equals rounding x.
inline float float_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  const auto back = static_cast<double>(nearest);
  const bool inexact = (back < x) | (back > x);  // false for NaN
  const bool away = std::fabs(back) > std::fabs(x);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  return std::bit_cast<float>((bits - (away ? 1u : 0u)) | (inexact ? 1u : 0u));
}

/// A NaN as f64 arithmetic propagates it.
inline double quiet(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) | std::uint64_t{1} << 51);
}

/// The NaN of an f64 result: that of the first NaN operand.
template <typename... T>
double double_nan(T... x) {
  for (const double each : {x...})
    if (each != each) return quiet(each);
  return std::bit_cast<double>(nan_f64);
}

/// The f64 sum that shared memory stores.
inline double shared_sum(double old, double added) {
  const double out = old + added;
  return out != out ? double_nan(old, added) : out;
}

/// The f64 sum that global memory stores: a NaN that is added, else a NaN in memory, is kept
/// unchanged, even if signalling.
inline double global_sum(double old, double added) {
  return added != added ? added : old != old ? old : old + added;
}

/// Rounds a double to a 16-bit format; any NaN gives the canonical one.
template <typename T>
T from_double(double x, Rounding round = Rounding::rn, bool saturate = false) {
  static_assert(sizeof(T) == 2);
  if (round == Rounding::rn && !saturate) return from_float<T>(float_to_odd(x));
  if (std::isnan(x)) return {nan_16};
  return {static_cast<std::uint16_t>(
      narrow(std::is_same_v<T, Half> ? format_f16 : format_bf16, x, round, saturate))};
}

/// x + y rounded to odd: if inexact, the neighbour with an odd last bit.
inline double sum_to_odd(double x, double y) {
  const double sum = x + y;
  const double part = sum - x;
  const double error = (x - (sum - part)) + (y - part);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  const bool inexact = (error > 0) | (error < 0);  // false for NaN, the result of infinities
  const std::uint64_t step = (error > 0) == (sum > 0) ? 1 : ~std::uint64_t{0};
  bits += inexact & !(bits & 1) ? step : 0;
  return std::bit_cast<double>(bits);
}

/// a * b + c rounded once, to nearest even.
inline float fused(float a, float b, float c) {
  return static_cast<float>(
      sum_to_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c)));
}

inline float canonical_nan(float x) { return x != x ? std::bit_cast<float>(nan_f32) : x; }

/// Flushes subnormals to zeros of their sign (.ftz).
inline float flush(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits);
}
inline Half flush(Half x) {
  return {static_cast<std::uint16_t>((x.bits & 0x7C00) == 0 ? x.bits & 0x8000 : x.bits)};
}

// .ftz flushes results that are below the smallest normal number when rounded with an unbounded
// exponent: a result that becomes that number only by the rounding at 2^-149 is flushed to zero.
inline constexpr double smallest_f32 = 0x1p-126;
// Halves below this are flushed (to nearest even): it and larger values round to 2^-14.
inline constexpr float least_kept_f16 = 0x1p-14f - 0x1p-26f;

inline bool is_smallest(float x) { return std::bit_cast<std::uint32_t>(x) << 1 == 0x01000000; }
inline float zero_of(float x) { return std::copysign(0.0f, x); }

/// Whether product + addend, which rounds to plus or minus smallest_f32 times `scale`, is flushed.
/// `product` has at most 48 bits, `addend` 24; the function is exact in any rounding mode of the
/// host, which is independent of `round`.
inline bool is_flushed(double product, double addend, Rounding round, bool negative,
                       double scale = 1) {
  if (negative) product = -product, addend = -addend;
  const double limit = smallest_f32 * scale;
  if (product >= limit - addend) return false;  // not below it
  switch (round) {
    case Rounding::rn:
    case Rounding::rna: return product < (limit - 0x1p-151 * scale) - addend;
    case Rounding::rz: return true;
    case Rounding::rm:
    case Rounding::rp: break;
  }
  return (round == Rounding::rm) != negative || product <= (limit - 0x1p-150 * scale) - addend;
}

/// [0, 1], NaN to +0 (.sat).
inline float saturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

}  // namespace tartan::TARTAN_ABI::emulator
