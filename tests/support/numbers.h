// SPDX-License-Identifier: Apache-2.0
// tests/support/numbers.h - small integers as elements of any type, and back. Independent of the
// code under test.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tartan/isa/type.h"

namespace tartan::testing_numbers {

// An IEEE-like format: sign, `exponent` bits, `mantissa` bits.
struct Format {
  int exponent, mantissa;
};

inline Format format(Type type) {
  switch (type) {
    case Type::f16: return {5, 10};
    case Type::bf16: return {8, 7};
    case Type::e4m3: return {4, 3};
    case Type::e5m2: return {5, 2};
    case Type::e3m2: return {3, 2};
    case Type::e2m3: return {2, 3};
    case Type::e2m1: return {2, 1};
    case Type::f64: return {11, 52};
    default: return {8, 23};
  }
}

inline std::uint64_t float_bits(Type type, double value) {
  const Format f = format(type);
  const int bias = (1 << (f.exponent - 1)) - 1;
  const std::uint64_t sign =
      std::signbit(value) ? std::uint64_t{1} << (f.exponent + f.mantissa) : 0;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction =
      std::frexp(std::fabs(value), &exponent) * 2 - 1;  // value = (1 + f) 2^(e-1)
  const auto mantissa = static_cast<std::uint64_t>(std::llround(std::ldexp(fraction, f.mantissa)));
  return sign | ((static_cast<std::uint64_t>(exponent - 1 + bias) << f.mantissa) + mantissa);
}

inline double float_value(Type type, std::uint64_t bits) {
  const Format f = format(type);
  const int bias = (1 << (f.exponent - 1)) - 1;
  const auto exponent =
      static_cast<int>(bits >> f.mantissa & ((std::uint64_t{1} << f.exponent) - 1));
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << f.mantissa) - 1);
  if (exponent == (1 << f.exponent) - 1 && tartan::bits(type) >= 8 && type != Type::e4m3) {
    const double infinity = bits >> (f.exponent + f.mantissa) & 1 ? -HUGE_VAL : HUGE_VAL;
    return mantissa ? std::nan("") : infinity;
  }
  double out = std::ldexp(static_cast<double>(mantissa), -f.mantissa);
  out = exponent ? std::ldexp(1 + out, exponent - bias) : std::ldexp(out, 1 - bias);
  return bits >> (f.exponent + f.mantissa) & 1 ? -out : out;
}

inline bool floating(Type type) { return info(type).floating; }

// Contiguous values; those smaller than a byte share bytes, the first one lowest.
inline std::vector<std::byte> encode(Type type, const std::vector<int>& values) {
  const auto width = static_cast<std::size_t>(bits(type));
  std::vector<std::byte> out((values.size() * width + 7) / 8);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t word =
        floating(type) ? float_bits(type, values[i]) : static_cast<std::uint64_t>(values[i]);
    if (width < 64) word &= (std::uint64_t{1} << width) - 1;
    if (width >= 8) std::memcpy(&out[i * width / 8], &word, width / 8);
    for (std::size_t bit = 0; bit < width && width < 8; ++bit)
      out[(i * width + bit) / 8] |=
          static_cast<std::byte>((word >> bit & 1) << (i * width + bit) % 8);
  }
  return out;
}

inline std::vector<double> decode(Type type, const std::vector<std::byte>& bytes) {
  const auto width = static_cast<std::size_t>(bits(type)) / 8;
  std::vector<double> out;
  for (std::size_t i = 0; i + width <= bytes.size(); i += width) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[i], width);
    if (floating(type)) out.push_back(float_value(type, word));
    else if (type == Type::s8) out.push_back(static_cast<std::int8_t>(word));
    else
      out.push_back(type == Type::s32 ? static_cast<std::int32_t>(word)
                                      : static_cast<double>(word));
  }
  return out;
}

}  // namespace tartan::testing_numbers
