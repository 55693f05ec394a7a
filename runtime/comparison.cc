// SPDX-License-Identifier: Apache-2.0
#include "runtime/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace tartan::inline TARTAN_ABI {
namespace {

struct Format {
  Type type;
  int exponent, mantissa;  // bits
  bool infinity;  // the largest exponent means infinity and NaN; without, only all ones is NaN
};

// The floating-point formats that C++ has no type for.
constexpr Format formats[] = {
    {Type::e4m3, 4, 3, false},
    {Type::e5m2, 5, 2, true},
    {Type::f16, 5, 10, true},
    {Type::bf16, 8, 7, true},
};

const Format* find_format(Type type) {
  for (const Format& format : formats)
    if (format.type == type) return &format;
  return nullptr;
}

double decode(const Format& format, std::uint64_t word) {
  const std::uint64_t mantissa_mask = (1u << format.mantissa) - 1;
  const std::uint64_t exponent_mask = (1u << format.exponent) - 1;
  const std::uint64_t mantissa = word & mantissa_mask;
  const std::uint64_t exponent = (word >> format.mantissa) & exponent_mask;
  const double sign = word >> (format.mantissa + format.exponent) & 1 ? -1 : 1;
  if (exponent == exponent_mask) {
    if (format.infinity) return mantissa ? std::nan("") : sign * HUGE_VAL;
    if (mantissa == mantissa_mask) return std::nan("");
  }
  const int bias = (1 << (format.exponent - 1)) - 1;
  const std::uint64_t significand = exponent ? mantissa | (1u << format.mantissa) : mantissa;
  const int scale = static_cast<int>(std::max<std::uint64_t>(exponent, 1)) - bias - format.mantissa;
  return sign * std::ldexp(static_cast<double>(significand), scale);
}

double decode(Type type, std::uint64_t word) {
  if (const Format* format = find_format(type)) return decode(*format, word);
  if (type == Type::f64) return std::bit_cast<double>(word);
  return std::bit_cast<float>(static_cast<std::uint32_t>(word));
}

std::int64_t sign_extend(Type type, std::uint64_t word) {
  const int unused = 64 - bits(type);
  return static_cast<std::int64_t>(word << unused) >> unused;
}

bool bits_only(Type type) { return name(type).starts_with('b') && !info(type).floating; }

std::string text_of(Type type, std::uint64_t word) {
  if (bits_only(type)) return fmt::format("0x{:0{}x}", word, bits(type) / 4);
  if (info(type).is_signed) return fmt::format("{}", sign_extend(type, word));
  if (!info(type).floating) return fmt::format("{}", word);
  const double value = decode(type, word);
  if (std::isnan(value)) return "nan";
  return type == Type::f64 ? fmt::format("{}", value)
                           : fmt::format("{}", static_cast<float>(value));
}

bool close(const Comparison& comparison, double distance, double expected) {
  return distance <= std::max(comparison.max_abs, comparison.max_rel * std::fabs(expected));
}

bool equal(const Comparison& comparison, std::uint64_t expected, std::uint64_t got) {
  if (expected == got) return true;
  const Type type = comparison.type;
  if (bits_only(type)) return false;
  if (info(type).floating) {
    const double x = decode(type, expected), y = decode(type, got);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (std::isinf(x) || std::isinf(y)) return x == y;
    return close(comparison, std::fabs(y - x), x);
  }
  // The distance of two integers always fits 64 bits unsigned; their signed difference may not.
  if (info(type).is_signed) {
    const std::int64_t x = sign_extend(type, expected), y = sign_extend(type, got);
    const std::uint64_t distance =
        static_cast<std::uint64_t>(std::max(x, y)) - static_cast<std::uint64_t>(std::min(x, y));
    return close(comparison, static_cast<double>(distance), static_cast<double>(x));
  }
  const std::uint64_t distance = std::max(expected, got) - std::min(expected, got);
  return close(comparison, static_cast<double>(distance), static_cast<double>(expected));
}

std::uint64_t load(std::span<const std::byte> bytes, std::size_t index, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + index * size, size);
  return word;
}

}  // namespace

bool Comparison::takes(Type type) {
  switch (type) {
    case Type::f32:
    case Type::tf32:
    case Type::f64: return true;
    case Type::s8:
    case Type::u8:
    case Type::b8:
    case Type::s16:
    case Type::u16:
    case Type::b16:
    case Type::s32:
    case Type::u32:
    case Type::b32:
    case Type::s64:
    case Type::u64:
    case Type::b64: return true;
    default: return find_format(type) != nullptr;
  }
}

std::string Comparison::text() const {
  if (bits_only(type)) return "bit for bit";
  if (max_rel == 0 && max_abs == 0) return fmt::format("as {}, exactly", name(type));
  return fmt::format("as {} within {} relative or {} absolute", name(type), max_rel, max_abs);
}

Difference compare(const Comparison& comparison, std::span<const std::byte> expected,
                   std::span<const std::byte> got) {
  const std::size_t size = comparison.element_bytes();
  assert(Comparison::takes(comparison.type));
  assert(expected.size() == got.size() && expected.size() % size == 0);
  Difference difference{.elements = expected.size() / size};
  if (std::ranges::equal(expected, got)) return difference;
  for (std::uint64_t i = 0; i < difference.elements; ++i) {
    const std::uint64_t x = load(expected, i, size), y = load(got, i, size);
    if (equal(comparison, x, y)) continue;
    if (difference.mismatched++ > 0) continue;
    difference.first = i;
    difference.expected = text_of(comparison.type, x);
    difference.got = text_of(comparison.type, y);
  }
  return difference;
}

}  // namespace tartan::inline TARTAN_ABI
