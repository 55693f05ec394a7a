// SPDX-License-Identifier: Apache-2.0
// runtime/buffer_name.h - how messages name a buffer and what stands in it.
//
//   const BufferName x{"x", Type::f32, {256, 128}, 131072};
//   x.element(2048)    // "x[4,0]"
//   x.extent()         // "32768 elements, f32 256x128"
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::detail {

struct BufferName {
  std::string name;
  Type type = Type::none;            // of its elements, which are whole bytes; none: bytes
  std::vector<std::uint64_t> shape;  // of elements; empty: one row
  std::uint64_t bytes = 0;           // of the buffer

  /// What stands at a byte: "x[4,0]", inside an element "x[4,0] (byte 1)". Behind the buffer's end
  /// elements are counted in one row: "x[32768]". Without a type "x+16".
  std::string element(std::uint64_t offset) const;
  /// "32768 elements, f32 256x128", or "256 bytes".
  std::string extent() const;
};

/// The indices of an element, "4,0"; of one number where the shape does not hold it.
std::string index_text(const std::vector<std::uint64_t>& shape, std::uint64_t element);

/// "f32 256x128".
std::string shape_text(Type type, const std::vector<std::uint64_t>& shape);

}  // namespace tartan::TARTAN_ABI::detail
