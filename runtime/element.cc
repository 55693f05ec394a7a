// SPDX-License-Identifier: Apache-2.0
#include "runtime/element.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tartan/runtime/host_types.h"

namespace tartan::TARTAN_ABI {
namespace {

template <typename Number>
std::uint64_t rounded(double value) {
  return Number(value).bits();
}

template <typename T>
std::optional<std::uint64_t> whole(double value) {
  // 2^bits is a double, but the largest integer of 64 bits is not.
  constexpr double end = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
  constexpr double begin = static_cast<double>(std::numeric_limits<T>::min());
  if (value != std::floor(value) || value < begin || value >= end) return std::nullopt;
  return static_cast<std::make_unsigned_t<T>>(static_cast<T>(value));
}

}  // namespace

std::size_t element_size(Type type) { return static_cast<std::size_t>(bits(type)) / 8; }

std::uint64_t load_element(std::span<const std::byte> bytes, std::size_t index, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + index * size, size);
  return word;
}

void store_element(std::span<std::byte> bytes, std::size_t index, std::size_t size,
                   std::uint64_t word) {
  std::memcpy(bytes.data() + index * size, &word, size);
}

bool is_bits(Type type) { return name(type).starts_with('b') && !info(type).floating; }

std::int64_t sign_extended(Type type, std::uint64_t word) {
  const int unused = 64 - bits(type);
  return static_cast<std::int64_t>(word << unused) >> unused;
}

double element_value(Type type, std::uint64_t word) {
  switch (type) {
    case Type::f16: return host::f16::from_bits(static_cast<std::uint16_t>(word));
    case Type::bf16: return host::bf16::from_bits(static_cast<std::uint16_t>(word));
    case Type::e4m3: return host::e4m3::from_bits(static_cast<std::uint8_t>(word));
    case Type::e5m2: return host::e5m2::from_bits(static_cast<std::uint8_t>(word));
    case Type::f32:
    case Type::tf32: return std::bit_cast<float>(static_cast<std::uint32_t>(word));
    case Type::f64: return std::bit_cast<double>(word);
    default: break;
  }
  if (info(type).is_signed) return static_cast<double>(sign_extended(type, word));
  return static_cast<double>(word);
}

std::optional<std::uint64_t> element_bits(Type type, double value) {
  switch (type) {
    case Type::f16: return rounded<host::f16>(value);
    case Type::bf16: return rounded<host::bf16>(value);
    case Type::e4m3: return rounded<host::e4m3>(value);
    case Type::e5m2: return rounded<host::e5m2>(value);
    case Type::tf32: return rounded<host::tf32>(value);
    case Type::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case Type::f64: return std::bit_cast<std::uint64_t>(value);
    case Type::s8: return whole<std::int8_t>(value);
    case Type::s16: return whole<std::int16_t>(value);
    case Type::s32: return whole<std::int32_t>(value);
    case Type::s64: return whole<std::int64_t>(value);
    default: break;
  }
  switch (bits(type)) {
    case 8: return whole<std::uint8_t>(value);
    case 16: return whole<std::uint16_t>(value);
    case 32: return whole<std::uint32_t>(value);
    default: return whole<std::uint64_t>(value);
  }
}

std::string element_text(Type type, std::uint64_t word) {
  if (is_bits(type)) return fmt::format("0x{:0{}x}", word, bits(type) / 4);
  if (info(type).is_signed) return fmt::format("{}", sign_extended(type, word));
  if (!info(type).floating) return fmt::format("{}", word);
  const double value = element_value(type, word);
  if (std::isnan(value)) return "nan";
  return type == Type::f64 ? fmt::format("{}", value)
                           : fmt::format("{}", static_cast<float>(value));
}

}  // namespace tartan::TARTAN_ABI
