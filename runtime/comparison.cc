// SPDX-License-Identifier: Apache-2.0
#include "runtime/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "runtime/element.h"

namespace tartan::TARTAN_ABI {
namespace {

bool close(const Comparison& comparison, double distance, double expected) {
  return distance <= std::max(comparison.max_abs, comparison.max_rel * std::fabs(expected));
}

bool equal(const Comparison& comparison, std::uint64_t expected, std::uint64_t got) {
  if (expected == got) return true;
  const Type type = comparison.type;
  if (is_bits(type)) return false;
  if (info(type).floating) {
    const double x = element_value(type, expected), y = element_value(type, got);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (std::isinf(x) || std::isinf(y)) return x == y;
    return close(comparison, std::fabs(y - x), x);
  }
  // The distance of two integers always fits 64 bits unsigned; their signed difference may not.
  if (info(type).is_signed) {
    const std::int64_t x = sign_extended(type, expected), y = sign_extended(type, got);
    const std::uint64_t distance =
        static_cast<std::uint64_t>(std::max(x, y)) - static_cast<std::uint64_t>(std::min(x, y));
    return close(comparison, static_cast<double>(distance), static_cast<double>(x));
  }
  const std::uint64_t distance = std::max(expected, got) - std::min(expected, got);
  return close(comparison, static_cast<double>(distance), static_cast<double>(expected));
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
    case Type::f16:
    case Type::bf16:
    case Type::e4m3:
    case Type::e5m2: return true;
    default: return false;
  }
}

std::string Comparison::text() const {
  if (is_bits(type)) return "bit for bit";
  if (max_rel == 0 && max_abs == 0) return fmt::format("as {}, exactly", name(type));
  std::string within;
  if (max_rel != 0) within = fmt::format("{:.3g} relative", max_rel);
  if (max_abs != 0)
    within += fmt::format("{}{:.3g} absolute", within.empty() ? "" : " or ", max_abs);
  return fmt::format("as {} within {}", name(type), within);
}

Difference compare(const Comparison& comparison, std::span<const std::byte> expected,
                   std::span<const std::byte> got) {
  const std::size_t size = comparison.element_bytes();
  assert(Comparison::takes(comparison.type));
  assert(expected.size() == got.size() && expected.size() % size == 0);
  Difference difference{.elements = expected.size() / size};
  if (std::ranges::equal(expected, got)) return difference;
  for (std::uint64_t i = 0; i < difference.elements; ++i) {
    const std::uint64_t x = load_element(expected, i, size), y = load_element(got, i, size);
    if (equal(comparison, x, y)) continue;
    if (difference.mismatched++ > 0) continue;
    difference.first = i;
    difference.expected = element_text(comparison.type, x);
    difference.got = element_text(comparison.type, y);
  }
  return difference;
}

}  // namespace tartan::TARTAN_ABI
