// SPDX-License-Identifier: Apache-2.0
// Conversions of the host's element types, for every bit pattern: values by the formats' formula in
// double, rounding by the definition of nearest even between neighbours.
#include "tartan/runtime/host_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/numbers.h"

namespace tartan {
namespace {

template <typename T>
class HostTypes : public testing::Test {};
using Types = testing::Types<host::f16, host::bf16, host::tf32, host::e4m3, host::e5m2>;
TYPED_TEST_SUITE(HostTypes, Types);

template <typename T>
constexpr int unused = T::type == Type::tf32 ? 13 : 0;

template <typename T>
T number(std::uint32_t word) {
  return T::from_bits(static_cast<typename T::Bits>(word << unused<T>));
}

// Patterns without a sign, from 0 to NaN with all ones.
template <typename T>
std::uint32_t patterns() {
  return std::uint32_t{1} << (bits(T::type) - unused<T> - 1);
}

// e4m3 has NaN where an IEEE-like format has its largest number, and no infinity.
template <typename T>
double expected_value(std::uint32_t word) {
  const std::uint32_t magnitude = word & (patterns<T>() - 1);
  if (T::type == Type::e4m3 && magnitude == 0x7f) return std::nan("");
  if (T::type != Type::tf32) return testing_numbers::float_value(T::type, word);
  const std::uint64_t wide = std::uint64_t{word} << 13;
  return testing_numbers::float_value(Type::f32, wide);
}

TYPED_TEST(HostTypes, EveryPatternHasItsValue) {
  std::uint32_t numbers = 0;
  for (std::uint32_t word = 0; word < 2 * patterns<TypeParam>(); ++word) {
    const double expected = expected_value<TypeParam>(word);
    const float got = number<TypeParam>(word);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << word;
      continue;
    }
    ++numbers;
    ASSERT_EQ(got, expected) << word;
    ASSERT_EQ(std::signbit(got), std::signbit(expected)) << word;
    if (std::isinf(expected) && TypeParam::type == Type::e5m2) continue;  // it would saturate
    ASSERT_EQ(TypeParam(got).bits(), number<TypeParam>(word).bits()) << word;
  }
  EXPECT_GT(numbers, patterns<TypeParam>());
}

TYPED_TEST(HostTypes, RoundsToNearestEven) {
  constexpr double tiny = std::numeric_limits<double>::min();
  for (std::uint32_t word = 0; word + 1 < patterns<TypeParam>(); ++word) {
    const double low = expected_value<TypeParam>(word), high = expected_value<TypeParam>(word + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) break;
    const double middle = (low + high) / 2;  // exact: both have few bits
    const std::uint32_t even = word % 2 ? word + 1 : word;
    for (const double sign : {1.0, -1.0}) {
      const auto expect = [&](double x, std::uint32_t magnitude) {
        const std::uint32_t wanted = magnitude + (sign < 0 ? patterns<TypeParam>() : 0);
        ASSERT_EQ(TypeParam(sign * x).bits(), number<TypeParam>(wanted).bits()) << sign * x;
      };
      expect(middle, even);
      expect(std::nextafter(middle, 0), word);
      expect(std::nextafter(middle, HUGE_VAL), word + 1);
      expect(std::nextafter(low, HUGE_VAL), word);
      expect(std::nextafter(high, 0), word + 1);
      expect(low + tiny, word);
    }
  }
}

TYPED_TEST(HostTypes, LargeNumbersOverflowAsCvtDoes) {
  const bool saturates = TypeParam::type == Type::e4m3 || TypeParam::type == Type::e5m2;
  std::uint32_t largest = patterns<TypeParam>();
  while (!std::isfinite(expected_value<TypeParam>(--largest))) continue;
  const double most = expected_value<TypeParam>(largest),
               step = most - expected_value<TypeParam>(largest - 1);
  const double beyond = saturates ? most : HUGE_VAL;
  EXPECT_EQ(TypeParam(std::nextafter(most + step / 2, 0)), most);
  for (const double x : {most + step / 2, most + step, 1e300, HUGE_VAL}) {
    EXPECT_EQ(TypeParam(x), beyond) << x;
    EXPECT_EQ(TypeParam(-x), -beyond) << x;
  }
}

TYPED_TEST(HostTypes, NaNHasAllBitsButTheSign) {
  EXPECT_EQ(TypeParam(std::nan("")).bits(), number<TypeParam>(patterns<TypeParam>() - 1).bits());
}

TEST(HostTypesOnce, ConversionsAreConstant) {
  static_assert(host::f16(1).bits() == 0x3c00);
  static_assert(host::bf16(-2).bits() == 0xc000);
  static_assert(host::e4m3(448).bits() == 0x7e && host::e4m3(1e9).bits() == 0x7e);
  static_assert(host::e5m2(1e9).bits() == 0x7b);
  static_assert(host::tf32(1).bits() == 0x3f800000);
  static_assert(sizeof(host::e4m3) == 1 && sizeof(host::bf16) == 2 && sizeof(host::tf32) == 4);
  // Once, not by way of float: 1 + 2^-11 + 2^-40 is above the middle of f16's 1 and 1 + 2^-10.
  static_assert(host::f16(1 + 0x1p-11 + 0x1p-40).bits() == 0x3c01);
}

}  // namespace
}  // namespace tartan
