// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/float_operations.h - what float.cc does to numbers of one format:
// the function, without the rounding, flushing and clamping that qualifiers ask for.
//
// `is_flushed` says of a result that was rounded up to the smallest normal number whether .ftz
// makes it a zero (small_float.h).
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/emulator/instructions/half_vectors.h"
#include "runtime/emulator/numbers/small_float.h"

namespace tartan::TARTAN_ABI::emulator::floats {

// takes_sat, takes_relu: the instruction may have .sat, .relu. Others are not compiled for it.

struct Add {
  static constexpr bool takes_sat = true;
  static constexpr HalfOperation on_halves = HalfOperation::add;
  template <typename T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Subtract {
  static constexpr bool takes_sat = true;
  static constexpr HalfOperation on_halves = HalfOperation::subtract;
  template <typename T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct Multiply {
  static constexpr bool takes_sat = true;
  static constexpr HalfOperation on_halves = HalfOperation::multiply;
  template <typename T>
  static T apply(T a, T b) {
    return a * b;
  }
  static bool is_flushed(float a, float b, Rounding round, bool negative) {
    return emulator::is_flushed(static_cast<double>(a) * static_cast<double>(b), 0, round,
                                negative);
  }
};
struct Divide {
  template <typename T>
  static T apply(T a, T b) {
    return a / b;
  }
  static bool is_flushed(float a, float b, Rounding round, bool is_negative) {
    const double dividend = std::fabs(static_cast<double>(a));
    return emulator::is_flushed(is_negative ? -dividend : dividend, 0, round, is_negative,
                                std::fabs(static_cast<double>(b)));
  }
};
struct FusedNearest {  // to nearest even
  static constexpr bool takes_sat = true, takes_relu = true;
  static constexpr HalfOperation on_halves = HalfOperation::fused;
  static float apply(float a, float b, float c) { return fused(a, b, c); }
  static bool is_flushed(float a, float b, float c, Rounding round, bool negative) {
    return emulator::is_flushed(static_cast<double>(a) * static_cast<double>(b),
                                static_cast<double>(c), round, negative);
  }
};
struct Fused {  // in the host's rounding mode
  static constexpr bool takes_sat = true;
  template <typename T>
  static T apply(T a, T b, T c) {
    return std::fma(a, b, c);
  }
  static bool is_flushed(float a, float b, float c, Rounding round, bool negative) {
    return emulator::is_flushed(static_cast<double>(a) * static_cast<double>(b),
                                static_cast<double>(c), round, negative);
  }
};

template <typename T>
bool negative(T x) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<std::uint64_t>(x) >> 63;
  else return std::bit_cast<std::uint32_t>(x) >> 31;
}
template <typename T>
T magnitude(T x) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<T>(std::bit_cast<std::uint64_t>(x) << 1 >> 1);
  else return std::bit_cast<T>(std::bit_cast<std::uint32_t>(x) << 1 >> 1);
}
template <typename T>
T with_sign(T x, bool sign) {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<T>(std::bit_cast<std::uint64_t>(magnitude(x)) | std::uint64_t{sign} << 63);
  else
    return std::bit_cast<T>(std::bit_cast<std::uint32_t>(magnitude(x)) | std::uint32_t{sign} << 31);
}

// Integers in the order of the numbers, -0 below +0.
template <typename T>
auto order(T x) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  const auto bits = std::bit_cast<Bits>(x);
  return bits ^ ((bits >> (8 * sizeof(T) - 1)) & std::numeric_limits<Bits>::max());
}

// One NaN gives the other operand, unless `Nan`; -0 is less than +0. XorSign: of magnitudes, with
// the product's sign.
template <bool Max, bool Nan, bool XorSign>
struct Extremum {
  template <typename T>
  static T apply(T a, T b) {
    const bool sign = negative(a) != negative(b);
    if constexpr (XorSign) {
      a = magnitude(a);
      b = magnitude(b);
    }
    const bool first = a != a ? Nan : b != b ? !Nan : (order(a) < order(b)) != Max;
    const T out = first ? a : b;
    if constexpr (XorSign) return out != out ? out : with_sign(out, sign);
    else return out;
  }
  template <typename T>
  static T apply(T a, T b, T c) {
    return apply(apply(a, b), c);
  }
};
struct Absolute {
  template <typename T>
  static T apply(T a) {
    return magnitude(a);
  }
};
struct Negate {
  template <typename T>
  static T apply(T a) {
    return with_sign(a, !negative(a));
  }
};

}  // namespace tartan::TARTAN_ABI::emulator::floats
