// SPDX-License-Identifier: Apache-2.0
// tests/emulator/small_formats.h - small floating-point formats by their definition: which number
// each code is, and rounding by a search among them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tartan::test {

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// ---- Formats, by their definition: which number each code is.

struct Format {
  const char* name;
  int exponent, mantissa, bits;
  std::uint32_t largest;  // code of the largest number
  std::uint32_t nan;      // what NaN becomes
  bool has_infinity, has_sign;
};
inline constexpr Format of_e4m3{"e4m3x2", 4, 3, 8, 0x7E, 0x7F, false, true},
    of_e5m2{"e5m2x2", 5, 2, 8, 0x7B, 0x7F, true, true},
    of_e2m3{"e2m3x2", 2, 3, 8, 0x1F, 0x1F, false, true},
    of_e3m2{"e3m2x2", 3, 2, 8, 0x1F, 0x1F, false, true},
    of_e2m1{"e2m1x2", 2, 1, 4, 0x7, 0x7, false, true},
    of_ue5m3{"ue5m3x2", 5, 3, 8, 0xFE, 0xFF, false, false},
    of_bfloat{"bf16x2", 8, 7, 16, 0x7F7F, 0x7FFF, true, true},
    of_half{"f16x2", 5, 10, 16, 0x7BFF, 0x7FFF, true, true};
inline constexpr Format small_formats[] = {of_e4m3, of_e5m2, of_e2m3, of_e3m2, of_e2m1};

inline double magnitude(const Format& f, std::uint32_t code) {
  const int exponent = static_cast<int>(code >> f.mantissa), bias = (1 << (f.exponent - 1)) - 1;
  const double fraction = static_cast<double>(code & ((1u << f.mantissa) - 1)) / (1 << f.mantissa);
  return exponent ? std::ldexp(1 + fraction, exponent - bias) : std::ldexp(fraction, 1 - bias);
}

inline double number(const Format& f, std::uint32_t bits) {
  const int width = f.exponent + f.mantissa;
  const std::uint32_t code = bits & ((1u << width) - 1);
  const bool negative = f.has_sign && (bits >> width & 1);
  double out = magnitude(f, code);
  if (code > f.largest) out = f.has_infinity && code == f.largest + 1 ? HUGE_VAL : no_number;
  return negative ? -out : out;
}

// The code of the number that is nearest, or the next one towards zero; of two that are as near the
// even one. One more than the largest number stands for what is too large.
inline std::uint32_t nearest(const Format& f, double x, bool to_zero) {
  std::uint32_t low = 0, high = f.largest + 1;  // low <= x < high
  if (x >= magnitude(f, high)) return high;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (magnitude(f, middle) <= x ? low : high) = middle;
  }
  if (to_zero) return low;
  const double below = x - magnitude(f, low), above = magnitude(f, high) - x;
  if (below != above) return below < above ? low : high;
  return low % 2 ? high : low;
}

struct Mode {
  bool to_zero = false, satfinite = true, relu = false, pzo = false;
};

inline std::uint32_t rounded(const Format& f, double x, const Mode& mode) {
  if (std::isnan(x)) return f.nan;
  const bool negative = std::signbit(x) && f.has_sign;
  if (mode.relu && std::signbit(x)) return 0;
  std::uint32_t code = nearest(f, std::fabs(x), mode.to_zero);
  if (code > f.largest && (mode.satfinite || (mode.to_zero && !std::isinf(x)))) code = f.largest;
  if (code > f.largest && !f.has_infinity) return f.nan;
  if (mode.pzo && code == 0) return 0;
  return code | (negative ? 1u << (f.exponent + f.mantissa) : 0);
}

inline double scale(std::uint32_t bits) {
  return bits == 0xFF ? no_number : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

// ---- Numbers to try.

inline std::vector<std::uint64_t> bfloats() {
  std::vector<std::uint64_t> out = {0,      0x8000, 0x7F80, 0xFF80, 0x7FC1, 0xFFFF, 0x0001,
                                    0x8001, 0x007F, 0x0080, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F};
  for (std::uint32_t bits = 3; bits < 0x10000; bits += 37) out.push_back(bits);
  for (std::uint32_t bits = 0x3B00; bits < 0x4800; bits += 3) out.push_back(bits | bits % 2 << 15);
  return out;
}

inline std::vector<std::uint64_t> floats() {
  std::vector<std::uint64_t> out = {0,          0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                    0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x43E00000,
                                    0x43E80000, 0x43E80001, 0x47800000, 0x47DFFFFF, 0x47E80000,
                                    0x47E80001, 0x3FFF0000, 0xC0000000, 0xC0100000};
  std::uint32_t x = 1;
  for (int i = 0; i < 3000; ++i) {
    x = x * 1664525 + 1013904223;
    out.push_back(i % 3 ? (x & 0x807FFFFF) | (100 + x / 8 % 48) << 23 : x);
    if (i % 4 == 0) out.back() &= 0xFFF00000;  // halfway, often
  }
  return out;
}

inline std::uint64_t pair(std::uint64_t upper, std::uint64_t lower, int bits) {
  return upper << bits | lower;
}

// Column b is column a, turned by some places.
inline std::vector<std::uint64_t> turned(const std::vector<std::uint64_t>& a, std::size_t by) {
  std::vector<std::uint64_t> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[(i + by) % a.size()];
  return out;
}

inline std::vector<std::uint64_t> pairs(const std::vector<std::uint64_t>& numbers, int bits) {
  std::vector<std::uint64_t> out;
  const auto uppers = turned(numbers, 11);
  for (std::size_t i = 0; i < numbers.size(); ++i) out.push_back(pair(uppers[i], numbers[i], bits));
  return out;
}

inline std::string held(int bits) { return "b" + std::to_string(bits); }

inline double as_float(std::uint64_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

}  // namespace tartan::test
