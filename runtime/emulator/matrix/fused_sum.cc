// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/fused_sum.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Infinity or NaN, if special operands make the sum one, whatever the finite terms are.
struct Specials {
  bool nan = false, plus = false, minus = false;

  void product(const Term& a, const Term& b) {
    if (a.special == Special::none && b.special == Special::none) return;
    if (a.special == Special::nan || b.special == Special::nan || a.significand == 0 ||
        b.significand == 0)
      nan = true;
    else infinite((a.significand < 0) != (b.significand < 0));
  }
  void accumulator(const Term& c) {
    if (c.special == Special::nan) nan = true;
    if (c.special == Special::infinity) infinite(c.significand < 0);
  }
  void infinite(bool negative) { (negative ? minus : plus) = true; }
  bool any() const { return nan || plus || minus; }
  std::uint32_t result(const Format& format) const {
    if (nan || (plus && minus)) return format.nan_bits();
    return format.infinity_bits() | (minus ? 1u << (format.bits() - 1) : 0);
  }
};

// value * 2^shift, with the magnitude truncated to an integer.
std::int64_t cut(std::int64_t value, int shift) {
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  const std::uint64_t cut = shift >= 0 ? magnitude << shift : shift < -63 ? 0 : magnitude >> -shift;
  return value < 0 ? -static_cast<std::int64_t>(cut) : static_cast<std::int64_t>(cut);
}

// A sum of what was cut, as a result.
std::uint32_t rounded(const FusedSum& rule, const Format& format, std::int64_t sum, int largest) {
  const bool half = rule.accumulator == f16;
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const std::uint32_t bits =
      encode(format, sum < 0, magnitude, largest - rule.fraction,
             half ? Round::nearest_even : Round::toward_zero, half ? 11 : rule.kept);
  return bits & format.nan_bits() ? bits : 0;  // underflow loses the sign
}

std::uint32_t one_sum(const FusedSum& rule, const Format& format, const Term* a, const Term* b,
                      int count, const Term& c) {
  Specials specials;
  specials.accumulator(c);
  int largest = c.significand == 0 ? rule.floor : std::max<int>(rule.floor, c.exponent);
  bool empty = c.significand == 0;
  for (int i = 0; i < count; ++i) {
    specials.product(a[i], b[i]);
    if (a[i].significand == 0 || b[i].significand == 0) continue;
    largest = std::max(largest, a[i].exponent + b[i].exponent);
    empty = false;
  }
  if (specials.any()) return specials.result(format);
  if (empty) return 0;

  std::int64_t sum =
      c.significand == 0
          ? 0
          : cut(c.significand, rule.fraction - format.fraction_bits + c.exponent - largest);
  for (int i = 0; i < count; ++i) {
    const std::int64_t product = std::int64_t{a[i].significand} * b[i].significand;
    if (product)
      sum += cut(product,
                 rule.fraction - rule.product_fraction + a[i].exponent + b[i].exponent - largest);
  }
  return rounded(rule, format, sum, largest);
}

}  // namespace

std::uint32_t fused_sum(const FusedSum& rule, const Term* a, const Term* b, int count,
                        std::uint32_t c) {
  const Format format = emulator::format(rule.accumulator);
  for (int first = 0; first < count; first += rule.length) {
    const int length = std::min(rule.length, count - first);
    c = one_sum(rule, format, a + first, b + first, length, decode(format, c));
  }
  return c;
}

std::uint32_t group_sum(const FusedSum& rule, const Group* groups, int count, std::uint32_t c) {
  const Format format = emulator::format(rule.accumulator);
  const Term start = decode(format, c);
  Specials specials;
  specials.accumulator(start);
  if (specials.any()) return specials.result(format);
  int largest = std::max<int>(rule.floor, start.exponent);
  for (int i = 0; i < count; ++i) largest = std::max(largest, groups[i].exponent);
  std::int64_t sum =
      cut(start.significand, rule.fraction - format.fraction_bits + start.exponent - largest);
  for (int i = 0; i < count; ++i)
    sum += cut(groups[i].sum, rule.fraction - rule.product_fraction + groups[i].exponent - largest);
  return rounded(rule, format, sum, largest);
}

}  // namespace tartan::TARTAN_ABI::emulator
