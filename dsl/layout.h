// SPDX-License-Identifier: Apache-2.0
// dsl/layout.h - where element (row, col) of a matrix lies in memory: shape, strides and an
// optional XOR swizzle, in elements.
//
//   row_major(16, 16)        rows of 16 elements, one behind the other
//   col_major(16, 8)         columns of 16
//   row_major(64, 32, 40)    rows of 32, a row starts every 40 elements (padding against bank
//   conflicts) row_major(64, 64).swizzled({3, 3, 3})
//
// Extents and strides are constants or values of the kernel (a matrix whose size is a parameter).
#pragma once

#include <string>

#include "compiler/isa/form.h"
#include "dsl/scalar.h"

namespace tartan {

/// CuTe's Swizzle<bits, base, shift>: XORs `bits` bits of the element offset, from bit base +
/// shift, into those from bit `base`.
///
///   offset bits   .. S S S . . D D D b b b     base = 3 (b: untouched), shift = 6, bits = 3:   D
///   ^= S
///
/// {3, 3, 3} on rows of 64 16-bit elements (128 bytes) makes eight rows of any 16-byte column fall
/// into eight different bank groups.
struct Swizzle {
  int bits = 0, base = 0, shift = 0;
  constexpr std::int64_t operator()(std::int64_t offset) const {
    const std::int64_t source = offset >> (base + shift) & ((std::int64_t{1} << bits) - 1);
    return offset ^ source << base;
  }
  bool operator==(const Swizzle&) const = default;
};

struct Layout {
  Scalar rows, cols;
  Scalar row_stride, col_stride;  // elements from (r, c) to (r + 1, c), and to (r, c + 1)
  Swizzle swizzle;

  /// The offset of an element before the swizzle.
  Scalar offset(const Scalar& row, const Scalar& col) const {
    return row * row_stride + col * col_stride;
  }
  /// Which way neighbours lie next to each other; none where neither stride is surely 1.
  Major major() const;
  Layout transposed() const { return {cols, rows, col_stride, row_stride, swizzle}; }
  Layout swizzled(Swizzle by) const;
  /// Elements from the first to behind the last, where all of it is constant.
  std::optional<std::int64_t> extent() const;
  std::string text()
      const;  // "16x16:(16,1)", strides in the order (row, col); "?" where a value decides
};

Layout row_major(const Scalar& rows, const Scalar& cols);
Layout row_major(const Scalar& rows, const Scalar& cols, const Scalar& row_stride);
Layout col_major(const Scalar& rows, const Scalar& cols);
Layout col_major(const Scalar& rows, const Scalar& cols, const Scalar& col_stride);

/// row_major or col_major, as `major` says.
Layout stored(Major major, const Scalar& rows, const Scalar& cols);

}  // namespace tartan
