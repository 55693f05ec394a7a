// SPDX-License-Identifier: Apache-2.0
// runtime/comparison.h - compares a kernel's output with the expected output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI {

/// How two arrays are compared: as elements of `type`, each within max_abs or within max_rel of the
/// expected value, whichever is wider. NaN equals NaN with any payload, an infinity only itself.
/// The b types compare bits; the default compares bytes.
struct Comparison {
  Type type = Type::b8;
  double max_rel = 0;
  double max_abs = 0;

  /// The types that elements can have: one value each, of whole bytes.
  static bool takes(Type type);
  std::size_t element_bytes() const { return static_cast<std::size_t>(bits(type)) / 8; }
  std::string text() const;  // "bit for bit", "as f32 within 1e-05 relative or 1e-07 absolute"
};

/// The result of a comparison: how many elements differ, and the first that does.
struct Difference {
  std::uint64_t elements = 0;
  std::uint64_t mismatched = 0;
  std::uint64_t first = 0;    // index of the first differing element; meaningless if none differs
  std::string expected, got;  // its values: "1.5", "nan", "0x3f"
};

/// Compares arrays of the same size, a multiple of the element's.
Difference compare(const Comparison& comparison, std::span<const std::byte> expected,
                   std::span<const std::byte> got);

}  // namespace tartan::TARTAN_ABI
