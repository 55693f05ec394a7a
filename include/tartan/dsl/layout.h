// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/layout.h - maps element (row, col) of a matrix to memory: shape, strides and an
// optional XOR swizzle, in elements.
//
//   row_major(16, 16)             contiguous rows of 16 elements
//   col_major(16, 8)              columns of 16
//   row_major(64, 32, 40)         rows of 32, a row starts every 40 elements (padding against bank
//                                 conflicts)
//   row_major(64, 64).swizzled({3, 3, 3})
//
// Rows and columns may be nested: a matrix stored in blocks, as for wgmma without a swizzle and for
// packed weights.
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

namespace tartan::TARTAN_ABI {

/// The shape and strides of a matrix, in elements. They may be values of the kernel.
struct Layout {
  Scalar rows, cols;
  Scalar row_stride, col_stride;  // elements from (r, c) to (r + 1, c), and to (r, c + 1)
  Swizzle swizzle;
  // Of nested rows and columns: their inner modes, the innermost first. The strides above are then
  // those of the outermost modes, from block to block.
  std::vector<Mode> row_modes = {}, col_modes = {};
  std::string problem = {};  // why there is no such layout; reported by the first call that uses it

  bool is_nested() const { return !row_modes.empty() || !col_modes.empty(); }
  /// The offset of an element before the swizzle: that of its row plus that of its column.
  Scalar offset(const Scalar& row, const Scalar& col) const {
    return row_offset(row) + col_offset(col);
  }
  Scalar row_offset(const Scalar& row) const;
  Scalar col_offset(const Scalar& col) const;
  /// A guaranteed divisor of row_offset() at all multiples of `step`.
  std::int64_t row_multiple(std::int64_t step) const;
  std::int64_t col_multiple(std::int64_t step) const;

  /// The contiguous dimension; none if neither stride is known to be 1.
  Major major() const;
  /// How many elements are contiguous, in nested rows (or columns, as major() says); 0: all.
  std::int64_t run() const;
  Layout transposed() const {
    return {cols, rows, col_stride, row_stride, swizzle, col_modes, row_modes, problem};
  }
  Layout swizzled(Swizzle by) const;
  /// The first tile of a division into tiles of rows x cols elements (constants). Nothing if its
  /// edge would cut a block of nested rows or columns: 12 rows of blocks of 8.
  std::optional<Layout> tile(const Scalar& rows, const Scalar& cols) const;
  /// Elements from the first to one past the last, if all of it is constant.
  std::optional<std::int64_t> extent() const;
  /// The same for the layout algebra (tartan/isa/layout_algebra.h), if all of it is constant.
  std::optional<NestedLayout> constant() const;
  /// Why a matrix of this layout does not fit in shared memory; empty if it does.
  std::string problem_in_shared() const;
  /// "16x16:(16,1)", strides in the order (row, col); nested "((8,8),(8,8)):((8,512),(1,64))"; "?"
  /// for values of the kernel.
  std::string text() const;
};

Layout row_major(const Scalar& rows, const Scalar& cols);
Layout row_major(const Scalar& rows, const Scalar& cols, const Scalar& row_stride);
Layout col_major(const Scalar& rows, const Scalar& cols);
Layout col_major(const Scalar& rows, const Scalar& cols, const Scalar& col_stride);

/// A matrix of two axes, rows and columns: nested("((8,8),(8,8)):((8,512),(1,64))"), or a result of
/// the layout algebra.
Layout nested(const NestedLayout& layout);
Layout nested(std::string_view text);
/// A matrix of blocks: each element of `of` is a `block`. Blocks are contiguous in memory if the
/// elements of `of` are. The block's layout is constant.
///   blocked(row_major(8, 8), row_major(m / 8, k / 8))     weights packed for 8 x 8 core matrices
Layout blocked(const Layout& block, const Layout& of);

/// row_major or col_major, as `major` says.
Layout stored(Major major, const Scalar& rows, const Scalar& cols);

}  // namespace tartan::TARTAN_ABI
