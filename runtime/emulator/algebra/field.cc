// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/algebra/field.h"

#include <cmath>

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint64_t exponential_name = 0x65787032;

// Beyond 2^60 of the 128 bits nothing is left of a bias.
std::uint64_t spread(std::uint64_t key, std::uint64_t which, std::uint64_t prime) {
  const UInt128 wide = UInt128{mix(key, 2 * which)} << 64 | mix(key, 2 * which + 1);
  return static_cast<std::uint64_t>(wide % prime);
}

}  // namespace

// The finalizer of SplitMix64, twice.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto scramble = [](std::uint64_t x) {
    x += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
  };
  return scramble(scramble(a) ^ (b * 0xD6E8FEB86659FD93 + 1));
}

Number number_of(std::int64_t x) { return {FieldP::of(x), FieldQ::of(x), static_cast<double>(x)}; }

Number number_of(double x) {
  if (x == 0) return {.real = x};
  int exponent = 0;
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
  return {FieldP::of(mantissa, exponent - 53), FieldQ::of(mantissa, exponent - 53), x};
}

Number inverse(const Number& a) { return {FieldP::invert(a.p), FieldQ::invert(a.q), 1 / a.real}; }

Number square_root(const Number& a) {
  return {FieldP::root(a.p), FieldQ::root(a.q), std::sqrt(a.real)};
}

Number exp2(const Number& a) {
  return {FieldP::raise(2, a.q), spread(mix(exponential_name, a.q), 1, FieldQ::prime),
          std::exp2(a.real)};
}

Number uninterpreted(std::uint64_t name, const Number& a, double real) {
  const std::uint64_t key = mix(name, mix(a.p, a.q));
  return {spread(key, 0, FieldP::prime), spread(key, 1, FieldQ::prime), real};
}

Number variable(std::uint64_t key, double real) {
  const bool positive = !std::signbit(real);
  return {FieldP::signed_as(spread(key, 0, FieldP::prime), positive),
          FieldQ::signed_as(spread(key, 1, FieldQ::prime), positive), real};
}

}  // namespace tartan::TARTAN_ABI::emulator
