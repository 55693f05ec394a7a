// SPDX-License-Identifier: Apache-2.0
// runtime/element.h - elements of buffers as numbers and as text, and back.
//
//   element_value(Type::bf16, 0x3f80)    // 1.0
//   element_bits(Type::bf16, 1.0)        // 0x3f80
//   element_text(Type::s8, 0xff)         // "-1"
//
// Types are those of Comparison::takes(): one value each, of whole bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI {

std::size_t element_size(Type type);

/// Element `index` of an array, as its bits.
std::uint64_t load_element(std::span<const std::byte> bytes, std::size_t index, std::size_t size);
void store_element(std::span<std::byte> bytes, std::size_t index, std::size_t size,
                   std::uint64_t word);

/// The number; of a b type its bits as a whole number. Integers beyond 2^53 are rounded.
double element_value(Type type, std::uint64_t word);

/// The bits of a number, rounded to nearest even; of an integer type nothing where the number is
/// not whole or too large.
std::optional<std::uint64_t> element_bits(Type type, double value);

/// "1.5", "nan", "-3"; of a b type "0x3f".
std::string element_text(Type type, std::uint64_t word);

/// Bits without a meaning: b8, b16, b32, b64.
bool is_bits(Type type);

std::int64_t sign_extended(Type type, std::uint64_t word);

}  // namespace tartan::TARTAN_ABI
