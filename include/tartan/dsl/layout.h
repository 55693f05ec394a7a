// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/layout.h - where element (row, col) of a matrix lies in memory: shape, strides and an
// optional XOR swizzle, in elements.
//
//   row_major(16, 16)             rows of 16 elements, one behind the other
//   col_major(16, 8)              columns of 16
//   row_major(64, 32, 40)         rows of 32, a row starts every 40 elements (padding against bank
//                                 conflicts)
//   row_major(64, 64).swizzled({3, 3, 3})
//
// Rows and columns may be nested: a matrix that is stored in blocks, as wgmma without a swizzle and
// packed weights want it.
//
//   blocked(row_major(8, 8), row_major(8, 8))      64 x 64 elements, 8 x 8 blocks of 8 x 8
//   nested("((8,8),(8,8)):((8,512),(1,64))")       the same, as CuTe writes it
//
// Extents and strides are constants or values of the kernel (a matrix whose size is a parameter);
// those within a block are constants.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tartan/dsl/scalar.h"
#include "tartan/isa/form.h"
#include "tartan/isa/nested_layout.h"

namespace tartan::inline TARTAN_ABI {

/// Where the elements of a matrix are: rows, columns and their strides, in elements. The numbers
/// may be values of the kernel.
struct Layout {
  Scalar rows, cols;
  Scalar row_stride, col_stride;  // elements from (r, c) to (r + 1, c), and to (r, c + 1)
  Swizzle swizzle;
  // Of nested rows and columns: their inner modes, the innermost first. The strides above are then
  // those of the outermost modes, from block to block.
  std::vector<Mode> row_modes = {}, col_modes = {};
  std::string problem = {};  // why there is no such layout; whoever takes the layout reports it

  bool is_nested() const { return !row_modes.empty() || !col_modes.empty(); }
  /// The offset of an element before the swizzle: that of its row plus that of its column.
  Scalar offset(const Scalar& row, const Scalar& col) const {
    return row_offset(row) + col_offset(col);
  }
  Scalar row_offset(const Scalar& row) const;
  Scalar col_offset(const Scalar& col) const;
  /// What surely divides the row_offset() of all multiples of `step`.
  std::int64_t row_multiple(std::int64_t step) const;
  std::int64_t col_multiple(std::int64_t step) const;

  /// Which way neighbours lie next to each other; none where neither stride is surely 1.
  Major major() const;
  /// How many neighbours do, in nested rows (or columns, as major() says); 0: all of them.
  std::int64_t run() const;
  Layout transposed() const {
    return {cols, rows, col_stride, row_stride, swizzle, col_modes, row_modes, problem};
  }
  Layout swizzled(Swizzle by) const;
  /// The first tile of a division into tiles of rows x cols elements (constants); nothing where its
  /// border would cut through a block of nested rows or columns: 12 rows of blocks of 8.
  std::optional<Layout> tile(const Scalar& rows, const Scalar& cols) const;
  /// Elements from the first to behind the last, where all of it is constant.
  std::optional<std::int64_t> extent() const;
  /// The same for tartan/isa/layout_algebra.h to compute with, where all of it is constant.
  std::optional<NestedLayout> constant() const;
  /// Why no block can have such a matrix in its shared memory; empty where it can.
  std::string problem_in_shared() const;
  /// "16x16:(16,1)", strides in the order (row, col); nested "((8,8),(8,8)):((8,512),(1,64))"; "?"
  /// where a value decides.
  std::string text() const;
};

Layout row_major(const Scalar& rows, const Scalar& cols);
Layout row_major(const Scalar& rows, const Scalar& cols, const Scalar& row_stride);
Layout col_major(const Scalar& rows, const Scalar& cols);
Layout col_major(const Scalar& rows, const Scalar& cols, const Scalar& col_stride);

/// A matrix of two axes, rows and columns: nested("((8,8),(8,8)):((8,512),(1,64))"), or the result
/// of the algebra.
Layout nested(const NestedLayout& layout);
Layout nested(std::string_view text);
/// A matrix of blocks: each element of `of` is a `block`, and blocks follow each other in memory
/// without gaps where `of` has none. The block is constant.
///   blocked(row_major(8, 8), row_major(m / 8, k / 8))     weights packed for 8 x 8 core matrices
Layout blocked(const Layout& block, const Layout& of);

/// row_major or col_major, as `major` says.
Layout stored(Major major, const Scalar& rows, const Scalar& cols);

}  // namespace tartan::inline TARTAN_ABI
