// SPDX-License-Identifier: Apache-2.0
// dsl/value/operators.h - the operators of scalars: what they make of constants, of guaranteed
// divisors and of possible bits. Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tartan/dsl/scalar.h"

namespace tartan::TARTAN_ABI::detail {

enum class Operator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  remainder,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  lt,
  le,
  gt,
  ge,
  eq,
  ne
};

inline bool is_comparison(Operator op) { return op >= Operator::lt; }
inline bool is_division(Operator op) { return op == Operator::divide || op == Operator::remainder; }
inline bool is_shift(Operator op) {
  return op == Operator::shift_left || op == Operator::shift_right;
}

/// Of integers: sums and products wrap around. No division by 0.
std::int64_t fold(Operator op, std::int64_t x, std::int64_t y);
/// Of constants, at least one of which is not an integer.
std::optional<Scalar> fold(Operator op, double x, double y);

std::int64_t magnitude(std::int64_t x);
/// A guaranteed divisor of the product of numbers that x and y divide.
std::int64_t product(std::int64_t x, std::int64_t y);
/// A guaranteed divisor of the result of op on values that x and y divide.
std::int64_t combined_multiple(Operator op, std::int64_t x, std::int64_t y,
                               std::optional<std::int64_t> constant);
/// The bits that may be set in the sum of values with the possible bits x and y.
std::uint64_t sum_ones(std::uint64_t x, std::uint64_t y);
/// The bits that may be set in the result of op on values with the possible bits x and y.
std::uint64_t combined_ones(Operator op, std::uint64_t x, std::uint64_t y,
                            std::optional<std::int64_t> constant);

}  // namespace tartan::TARTAN_ABI::detail
