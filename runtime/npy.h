// SPDX-License-Identifier: Apache-2.0
// runtime/npy.h - numpy's files of one array, .npy: elements, their type and shape.
//
//   const auto array = read_npy(text);        // of numpy.save("in.npy", x)
//   array->type, array->shape, array->contents
//   write_file("out.npy", npy_text(Type::f32, {4, 8}, bytes));
//
// Types that numpy lacks are written as unsigned words, bf16 as u2 and e4m3 as u1; converted()
// takes such words as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/isa/type.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

struct NpyArray {
  Type type = Type::none;            // b8, b16, b32, b64: words without a meaning (V1 to V8)
  std::vector<std::uint64_t> shape;  // at least one dimension, none of them 0
  std::vector<std::byte> contents;   // the last dimension is contiguous
};

/// Whether a file's first bytes are those of an .npy file.
bool is_npy(std::string_view text);

/// Booleans are u8. The diagnostic (rule "file") has no place.
Result<NpyArray> read_npy(std::string_view text);

/// The elements as `to`. Words of its size without a sign are its bits where numpy lacks the type
/// (bf16, e4m3, e5m2, and the b types); else numbers are rounded to nearest even, and integers must
/// hold them.
Result<std::vector<std::byte>> converted(NpyArray array, Type to);

/// A file; an empty shape is one row of all elements.
std::string npy_text(Type type, const std::vector<std::uint64_t>& shape,
                     std::span<const std::byte> contents);

}  // namespace tartan::TARTAN_ABI
