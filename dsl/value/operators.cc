// SPDX-License-Identifier: Apache-2.0
#include "dsl/value/operators.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace tartan::TARTAN_ABI::detail {
namespace {

// All bits up to the highest of `most`, except the zeros below the lowest bit of `low`.
std::uint64_t filled(std::uint64_t most, std::uint64_t low) {
  const auto width = static_cast<int>(std::bit_width(most));
  const std::uint64_t up = width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  return up & ~(low ? (low & -low) - 1 : 0);
}

}  // namespace

std::int64_t magnitude(std::int64_t x) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  return x == lowest ? std::int64_t{1} << 62 : x < 0 ? -x : x;
}

std::uint64_t sum_ones(std::uint64_t x, std::uint64_t y) {
  if ((x & y) == 0) return x | y;
  return x + y < x ? ~std::uint64_t{0} : filled(x + y, x | y);
}

std::int64_t fold(Operator op, std::int64_t x, std::int64_t y) {
  const auto ux = static_cast<std::uint64_t>(x), uy = static_cast<std::uint64_t>(y);
  switch (op) {
    case Operator::add: return static_cast<std::int64_t>(ux + uy);
    case Operator::subtract: return static_cast<std::int64_t>(ux - uy);
    case Operator::multiply: return static_cast<std::int64_t>(ux * uy);
    case Operator::divide: return y == -1 ? fold(Operator::subtract, 0, x) : x / y;
    case Operator::remainder: return y == -1 ? 0 : x % y;
    case Operator::bit_and: return x & y;
    case Operator::bit_or: return x | y;
    case Operator::bit_xor: return x ^ y;
    case Operator::shift_left: return x << (y & 63);
    case Operator::shift_right: return x >> (y & 63);
    case Operator::lt: return x < y;
    case Operator::le: return x <= y;
    case Operator::gt: return x > y;
    case Operator::ge: return x >= y;
    case Operator::eq: return x == y;
    case Operator::ne: return x != y;
  }
  return 0;
}

std::optional<Scalar> fold(Operator op, double x, double y) {
  switch (op) {
    case Operator::add: return x + y;
    case Operator::subtract: return x - y;
    case Operator::multiply: return x * y;
    case Operator::divide: return x / y;
    case Operator::lt: return x < y;
    case Operator::le: return x <= y;
    case Operator::gt: return x > y;
    case Operator::ge: return x >= y;
    case Operator::eq: return x == y;
    case Operator::ne: return x != y;
    default: return std::nullopt;
  }
}

std::int64_t product(std::int64_t x, std::int64_t y) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(x, y, &out) ? 1 : magnitude(out);
}

std::int64_t combined_multiple(Operator op, std::int64_t x, std::int64_t y,
                               std::optional<std::int64_t> constant) {
  switch (op) {
    case Operator::add:
    case Operator::subtract: return std::gcd(x, y);
    case Operator::multiply: return product(x, y);
    case Operator::shift_left: return constant ? product(x, std::int64_t{1} << *constant) : 1;
    case Operator::remainder: return std::gcd(x, y);
    case Operator::divide:
      return constant && *constant > 0 && x % *constant == 0
                 ? std::max<std::int64_t>(x / *constant, 1)
                 : 1;
    default: return 1;
  }
}

std::uint64_t combined_ones(Operator op, std::uint64_t x, std::uint64_t y,
                            std::optional<std::int64_t> constant) {
  const std::uint64_t all = ~std::uint64_t{0};
  const bool positive = constant && *constant > 0;
  const auto by = positive ? static_cast<std::uint64_t>(*constant) : 0;
  switch (op) {
    case Operator::add: return sum_ones(x, y);
    case Operator::bit_and: return x & y;
    case Operator::bit_or:
    case Operator::bit_xor: return x | y;
    case Operator::multiply:
      if (!positive || x > all / by) return all;
      return std::has_single_bit(by) ? x * by : filled(x * by, (x & -x) * (by & -by));
    case Operator::divide:
      if (!positive) return all;
      return std::has_single_bit(by) ? x / by : filled(x / by, 1);
    case Operator::remainder:
      if (!positive) return all;
      return std::has_single_bit(by) ? x & (by - 1) : filled(by - 1, 1);
    case Operator::shift_left: return constant ? x << *constant : all;
    case Operator::shift_right: return constant ? x >> *constant : all;
    default: return is_comparison(op) ? 1 : all;
  }
}

}  // namespace tartan::TARTAN_ABI::detail
