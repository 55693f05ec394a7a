// SPDX-License-Identifier: Apache-2.0
// dsl/units/tma/tma_matrix.h - a matrix in global memory as TMA addresses it. Not installed.
#pragma once

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// The tensor map of a matrix, or why TMA cannot load it. Lines are the matrix's contiguous rows or
/// columns.
class TmaMatrix {
 public:
  TmaMatrix(KernelState& state, const Tensor& matrix)
      : state_(state), matrix_(matrix), is_row_major_(matrix.layout.major() != Major::col) {}

  /// Why TMA cannot address it; empty if it can. Call it before the others.
  std::string problem();
  /// The same of stores, which stop an H200 where they begin before an edge.
  std::string problem_of_stores();

  /// Whether problem() is an alignment that nothing guarantees, of a number that a launch decides.
  bool lacks_promise() const { return lacks_promise_; }

  bool is_row_major() const { return is_row_major_; }
  const Scalar& across(const Layout& layout) const {  // the stride from line to line
    return is_row_major_ ? layout.row_stride : layout.col_stride;
  }
  /// From now on, lines are panels of so many elements, a dimension more. Why they cannot be; empty
  /// if they can.
  std::string divide_lines(std::int64_t panel);
  /// The map for boxes of `lines` lines of `along` elements, shared by all such boxes. `type`: of
  /// elements that TMA computes with (it rounds to tf32); without one, it moves bits.
  ir::Pointer map(int along, int lines, int swizzle, Type type = Type::none);
  /// The coordinates of a box in this tile that starts at element `along` of line `first`.
  std::vector<ir::Value> coordinates(const Scalar& along, const Scalar& first) const;
  /// The coordinates of a box that starts at element `inner` of line `outer` of the matrix.
  std::vector<ir::Value> coordinates_at(const Scalar& inner, const Scalar& outer) const;
  /// Where this tile begins in the matrix: the element of a line, and the line.
  const Scalar& inner() const { return is_row_major_ ? matrix_.col_at : matrix_.row_at; }
  const Scalar& outer() const { return is_row_major_ ? matrix_.row_at : matrix_.col_at; }
  /// How many elements a line of the matrix has, and how many lines there are, if both are known.
  std::optional<std::int64_t> length() const { return extent(is_row_major_); }
  std::optional<std::int64_t> lines() const { return extent(!is_row_major_); }

 private:
  std::string numbers_problem();
  std::optional<std::int64_t> extent(bool columns) const {
    return (columns ? matrix_.whole_cols : matrix_.whole_rows).constant();
  }

  KernelState& state_;
  const Tensor& matrix_;
  bool is_row_major_;
  bool lacks_promise_ = false;
  std::int64_t panel_ = 0;  // elements of a panel of divided lines
  std::vector<MapNumber> extents_, strides_;
};

/// The bytes of the TMA swizzle that equals `swizzle` on lines of `bytes` bytes: 32, 64 or 128; 0:
/// not swizzled; nothing if TMA has no such swizzle.
std::optional<int> tma_swizzle(const Swizzle& swizzle, std::int64_t bytes, Type type);

constexpr std::int64_t longest_in_box = 256;  // elements along a dimension, at most

/// How boxes fill a tile in shared memory: `panel` elements of each of its lines, and `panels` of
/// them; lines of a box are contiguous there, with TMA's swizzle.
struct StageBoxes {
  std::int64_t panel = 1;   // elements
  std::int64_t panels = 1;  // more than one: a dimension of the box, see TmaMatrix::divide_lines()
  int swizzle = 0;          // bytes
};
/// Why TMA cannot write the tile; empty if it can. `divides`: lines longer than the span of the
/// swizzle, which are not stored panel by panel, may be several panels of a box.
std::string stage_boxes(const Tensor& to, bool is_row_major, StageBoxes& out, bool divides = false);
Type unsigned_of(int bits);

/// A tensor's extents and strides as its map has them, the innermost dimension first.
struct TensorNumbers {
  std::vector<MapNumber> extents, strides;
};
/// Why a launch cannot know them, or TMA not address them; empty if both can.
std::string tensor_numbers(const KernelState& state, const GlobalTensor& tensor,
                           TensorNumbers& out);
/// Why TMA cannot load a box of the tensor here, whatever the box; empty if it can. `inner`: where
/// the box begins in the last dimension.
std::string tensor_problem(const KernelState& state, const Tensor& to, const Scalar& inner);
/// The map with these numbers, which may be there already.
ir::Pointer tensor_map(KernelState& state, const GlobalTensor& from, const Tensor& to,
                       CompiledMap wanted);
/// A coordinate in s32. Origins may be negative; sizes are below 2^31.
Scalar as_signed(Builder& k, KernelState& state, const Scalar& x, const std::source_location& at);

/// For lines of `bytes` bytes (a power of two): XORs the 16-byte chunk with the line's number, so
/// that any chunk of eight neighbouring lines falls into eight different bank groups. Lines of 32
/// and 64 bytes share a span of 128 with their neighbours, so only every fourth or second line
/// counts. Up to 128 bytes these are TMA's swizzles.
Swizzle swizzle_of_lines(std::int64_t bytes, Type type);

}  // namespace tartan::TARTAN_ABI::detail
