// SPDX-License-Identifier: Apache-2.0
// dsl/tma_matrix.h - a matrix in global memory as TMA addresses it. Not installed.
#pragma once

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

/// What a tensor map says of a matrix, or why none can. Lines are its rows, or its columns where
/// neighbours lie along those.
class EngineMatrix {
 public:
  EngineMatrix(KernelState& state, const Tensor& matrix)
      : state_(state), matrix_(matrix), by_rows_(matrix.layout.major() != Major::col) {}

  /// Why TMA cannot address it; empty where it can. To be asked before the others.
  std::string problem();

  bool by_rows() const { return by_rows_; }
  const Scalar& across(const Layout& layout) const {  // the stride from line to line
    return by_rows_ ? layout.row_stride : layout.col_stride;
  }
  /// The map for boxes of `lines` lines of `along` elements, the same for all such boxes. `rounds`:
  /// to tf32, on the way.
  codegen::Pointer map(int along, int lines, int swizzle, bool rounds = false);
  /// Of a box that begins in this tile, element `along` of line `first`.
  std::vector<codegen::Value> coordinates(const Scalar& along, const Scalar& first) const;

 private:
  std::string numbers_problem();

  KernelState& state_;
  const Tensor& matrix_;
  bool by_rows_;
  std::vector<MapNumber> extents_, strides_;
};

/// The bytes that TMA's swizzle spans where lines of `bytes` bytes are swizzled so:
/// 32, 64 or 128; 0: not swizzled; nothing where it has none like that.
std::optional<int> engine_swizzle(const Swizzle& swizzle, std::int64_t bytes, Type type);

/// Lines of `bytes` bytes (a power of two), 16-byte chunks of them XORed with the line's number:
/// eight neighbouring lines then have any chunk in eight different groups of banks. Lines of 32 and
/// 64 bytes share a span of 128 with their neighbours, so that only every fourth or second line
/// counts. Up to 128 bytes these are TMA's swizzles.
Swizzle swizzle_of_lines(std::int64_t bytes, Type type);

}  // namespace tartan::inline TARTAN_ABI::detail
