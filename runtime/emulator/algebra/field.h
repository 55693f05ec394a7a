// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/field.h - the two prime fields in which `tartan equal` computes.
//
// P = 2 Q + 1 with P and Q prime, both just below a power of two. P is 7 modulo 8, so 2 has order Q
// in Z/P: 2^x is defined for x of Z/Q, sums become products, and 2^3 is 8. A number is its image in
// both fields; exp2 leads from the second to the first. Both invert 2, so each finite
// floating-point number has an exact image.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "runtime/emulator/numbers/small_float.h"

namespace tartan::TARTAN_ABI::emulator {

/// Z/(2^Bits - Gap); elements are below the prime.
template <int Bits, std::uint64_t Gap>
struct PrimeField {
  static constexpr std::uint64_t power = std::uint64_t{1} << Bits, prime = power - Gap;

  /// Any sum of at most 32 products of elements.
  static constexpr std::uint64_t reduce(UInt128 x) {
    constexpr std::uint64_t low = power - 1;
    const UInt128 once = (x >> Bits) * Gap + (static_cast<std::uint64_t>(x) & low);
    const std::uint64_t twice =
        static_cast<std::uint64_t>(once >> Bits) * Gap + (static_cast<std::uint64_t>(once) & low);
    return twice < prime ? twice : twice - prime;
  }
  static constexpr std::uint64_t add(std::uint64_t a, std::uint64_t b) {
    return a + b < prime ? a + b : a + b - prime;
  }
  static constexpr std::uint64_t negate(std::uint64_t a) { return a ? prime - a : 0; }
  static constexpr std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
    return reduce(UInt128{a} * b);
  }
  static constexpr std::uint64_t raise(std::uint64_t a, std::uint64_t exponent) {
    std::uint64_t out = 1;
    for (; exponent; exponent >>= 1, a = multiply(a, a))
      if (exponent & 1) out = multiply(out, a);
    return out;
  }
  /// The inverse; 0 for 0.
  static constexpr std::uint64_t invert(std::uint64_t a) { return raise(a, prime - 2); }
  /// Of a and -a the one that is a square, if `square`, else the other one.
  static constexpr std::uint64_t signed_as(std::uint64_t a, bool square) {
    return (raise(a, (prime - 1) / 2) == 1) == square ? a : negate(a);
  }
  /// Of r and -r with r * r = a or -a the one that is a square: root(a b) = root(a) root(b).
  static constexpr std::uint64_t root(std::uint64_t a) { return raise(a, (prime + 1) / 4); }
  static constexpr std::uint64_t of(std::int64_t value) {
    const std::uint64_t magnitude =
        value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    const std::uint64_t image = magnitude % prime;
    return value < 0 ? negate(image) : image;
  }
  /// mantissa * 2^exponent.
  static constexpr std::uint64_t of(std::int64_t mantissa, int exponent) {
    const std::uint64_t base = exponent < 0 ? (prime + 1) / 2 : 2;
    const auto steps = static_cast<std::uint64_t>(exponent < 0 ? -exponent : exponent);
    return multiply(of(mantissa), raise(base, steps));
  }
};

using FieldP = PrimeField<61, 3153>;
using FieldQ = PrimeField<60, 1577>;
static_assert(FieldP::prime == 2 * FieldQ::prime + 1);
static_assert(FieldP::prime % 8 == 7 && FieldP::raise(2, FieldQ::prime) == 1);

/// A real number's images, and the number itself as far as doubles show it.
struct Number {
  std::uint64_t p = 0, q = 0;
  double real = 0;
};

inline Number operator+(const Number& a, const Number& b) {
  return {FieldP::add(a.p, b.p), FieldQ::add(a.q, b.q), a.real + b.real};
}
inline Number operator-(const Number& a) {
  return {FieldP::negate(a.p), FieldQ::negate(a.q), -a.real};
}
inline Number operator*(const Number& a, const Number& b) {
  return {FieldP::multiply(a.p, b.p), FieldQ::multiply(a.q, b.q), a.real * b.real};
}

/// Exactly that number; x is finite.
Number number_of(double x);
Number number_of(std::int64_t x);
Number inverse(const Number& a);
Number square_root(const Number& a);
/// 2^a. Its image in Z/Q is a function of a's alone.
Number exp2(const Number& a);

/// A function of which nothing is known but that equal arguments give equal results: `name` tells
/// functions apart, `real` is its result.
Number uninterpreted(std::uint64_t name, const Number& a, double real);
/// Random images, the same for the same key, for a variable whose value is `real`. They are squares
/// where that is positive, so that the root of x * x is the image of |x|.
Number variable(std::uint64_t key, double real);

/// A good hash of both.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

}  // namespace tartan::TARTAN_ABI::emulator
