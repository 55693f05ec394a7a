// SPDX-License-Identifier: Apache-2.0
// tests/emulator/tensor_model.h - what tcgen05.mma computes, written apart from the emulator: sums
// in binary64, whose exponents hold all that is added.
//
// The rule is the published one of a B200: products and c are cut toward zero below the 25th bit
// under the largest exponent among them, added exactly and rounded once. Of mxf4 and mxf4nvf4,
// groups of 16 products are added exactly, scaled, and cut below the 35th bit.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tartan::test::tensor {

struct Format {
  const char* name;
  int bits, exponent_bits, fraction_bits, bias;
  bool infinities;          // an all-ones exponent is infinity or NaN
  std::uint32_t nan;        // the one magnitude that is NaN; 0: none
  bool integer, is_signed;  // of integers
};

inline constexpr Format formats[] = {
    {"f16", 16, 5, 10, 15, true, 0, false, false},
    {"bf16", 16, 8, 7, 127, true, 0, false, false},
    {"tf32", 32, 8, 10, 127, true, 0, false, false},
    {"e4m3", 8, 4, 3, 7, false, 0x7F, false, false},
    {"e5m2", 8, 5, 2, 15, true, 0, false, false},
    {"e2m3", 6, 2, 3, 1, false, 0, false, false},
    {"e3m2", 6, 3, 2, 3, false, 0, false, false},
    {"e2m1", 4, 2, 1, 1, false, 0, false, false},
    {"u8", 8, 0, 0, 0, false, 0, true, false},
    {"s8", 8, 0, 0, 0, false, 0, true, true},
    {"f32", 32, 8, 23, 127, true, 0, false, false},
};
inline const Format& format(const std::string& name) {
  return *std::find_if(std::begin(formats), std::end(formats),
                       [&](const Format& each) { return each.name == name; });
}

struct Number {
  double value = 0;  // of infinities and NaN: that
  int exponent = -100000;
};

// tf32 is the upper 19 bits of its word.
inline Number number(const Format& f, std::uint32_t bits) {
  if (std::string(f.name) == "tf32") bits >>= 13;
  const int width = f.exponent_bits + f.fraction_bits;
  const std::uint32_t magnitude = bits & ((1u << width) - 1);
  const double sign = bits >> width & 1 ? -1 : 1;
  const auto field = static_cast<int>(magnitude >> f.fraction_bits);
  const auto fraction = static_cast<int>(magnitude & ((1u << f.fraction_bits) - 1));
  if (f.infinities && field == (1 << f.exponent_bits) - 1)
    return {fraction ? std::numeric_limits<double>::quiet_NaN()
                     : sign * std::numeric_limits<double>::infinity()};
  if (f.nan && magnitude == f.nan) return {std::numeric_limits<double>::quiet_NaN()};
  if (!magnitude) return {};
  const int exponent = std::max(field, 1) - f.bias;
  return {
      sign * std::ldexp(fraction + (field ? 1 << f.fraction_bits : 0), exponent - f.fraction_bits),
      exponent};
}

inline std::uint32_t to_f32(double value) {
  if (std::isnan(value)) return 0x7FFFFFFF;
  if (std::abs(value) >= std::ldexp(1.0, 128)) return value < 0 ? 0xFF800000 : 0x7F800000;
  auto rounded = static_cast<float>(value);
  if (std::abs(static_cast<double>(rounded)) > std::abs(value))
    rounded = std::nextafter(rounded, 0.0f);
  return rounded == 0 ? 0 : std::bit_cast<std::uint32_t>(rounded);
}

inline std::uint32_t to_f16(double value) {
  if (std::isnan(value)) return 0x7FFF;
  const std::uint32_t sign = value < 0 ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (magnitude >= 65520) return sign | 0x7C00;
  if (magnitude == 0) return 0;
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const double steps = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  if (steps == 0) return 0;
  // A carry into the next exponent is one into the field.
  return sign |
         (static_cast<std::uint32_t>(steps) + (static_cast<std::uint32_t>(exponent + 14) << 10));
}

struct Sum {
  int fraction = 25, floor = -133;
  bool half = false;
};

inline double finish(std::vector<Number> terms, const Sum& rule, bool& special) {
  double specials = 0;
  special = false;
  int largest = rule.floor;
  for (const Number& each : terms) {
    if (!std::isfinite(each.value)) special = true, specials += each.value;
    else if (each.exponent > -50000) largest = std::max(largest, each.exponent);
  }
  if (special) return specials;
  std::int64_t total = 0;
  for (const Number& each : terms)
    total += static_cast<std::int64_t>(std::trunc(std::ldexp(each.value, rule.fraction - largest)));
  return std::ldexp(static_cast<double>(total), largest - rule.fraction);
}

/// c + a[0] * b[0] + ..., all bits.
inline std::uint32_t dot(const std::vector<Number>& a, const std::vector<Number>& b,
                         std::uint32_t c, const Sum& rule) {
  std::vector<Number> terms = {number(format(rule.half ? "f16" : "f32"), c)};
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double product = a[k].value * b[k].value;
    terms.push_back({product, product == 0 ? -100000 : a[k].exponent + b[k].exponent});
  }
  bool special = false;
  const double sum = finish(terms, rule, special);
  return rule.half ? to_f16(sum) : to_f32(sum);
}

// ue8m0, or ue4m3, whose sign does not count.
inline Number scale(bool ue4m3, std::uint32_t bits) {
  if (ue4m3) return number(format("e4m3"), bits & 0x7F);
  if (bits == 0xFF) return {std::numeric_limits<double>::quiet_NaN()};
  return {std::ldexp(1.0, static_cast<int>(bits) - 127), static_cast<int>(bits) - 127};
}

/// The same with a scale for each `a.size() / scales` elements: mxf8f6f4, whose scales are in the
/// exponents of the products.
inline std::uint32_t scaled_dot(std::vector<Number> a, std::vector<Number> b, std::uint32_t c,
                                const Number& of_a, const Number& of_b) {
  if (std::isnan(of_a.value) || std::isnan(of_b.value)) return 0x7FFFFFFF;
  for (Number& each : a) {
    each.value *= of_a.value;
    each.exponent += of_a.exponent;
  }
  for (Number& each : b) {
    each.value *= of_b.value;
    each.exponent += of_b.exponent;
  }
  return dot(a, b, c, {});
}

/// mxf4 and mxf4nvf4.
inline std::uint32_t fours_dot(const std::vector<Number>& a, const std::vector<Number>& b,
                               std::uint32_t c, const std::vector<Number>& of_a,
                               const std::vector<Number>& of_b) {
  for (const auto* all : {&of_a, &of_b})
    for (const Number& each : *all)
      if (std::isnan(each.value)) return 0x7FFFFFFF;
  std::vector<Number> terms = {number(format("f32"), c)};
  const std::size_t per_scale = a.size() / of_a.size();
  for (std::size_t first = 0; first < a.size(); first += 16) {
    double sum = 0;
    bool any = false;
    for (std::size_t k = first; k < first + 16; ++k) {
      sum += a[k].value * b[k].value;
      any |= a[k].value * b[k].value != 0;
    }
    const Number &x = of_a[first / per_scale], &y = of_b[first / per_scale];
    const bool counts = any && x.value != 0 && y.value != 0;
    terms.push_back({sum * x.value * y.value, counts ? x.exponent + y.exponent : -100000});
  }
  bool special = false;
  return to_f32(finish(terms, {.fraction = 35, .floor = -139}, special));
}

/// D divided by a power of two, cut where it becomes subnormal.
inline double lowered(double value, int power, bool half) {
  const int least = half ? -24 : -149;
  const double divided = std::ldexp(value, -power);
  const bool subnormal = std::abs(divided) < std::ldexp(1.0, half ? -14 : -126);
  return subnormal ? std::ldexp(std::trunc(std::ldexp(divided, -least)), least) : divided;
}

}  // namespace tartan::test::tensor
