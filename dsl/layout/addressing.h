// SPDX-License-Identifier: Apache-2.0
// dsl/layout/addressing.h - addresses of elements, bounds checks, and the width of accesses. Not
// installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// The address of element (row, col) of a tensor, which is read there (or read and written).
ir::Pointer address_of(KernelState& state, const Tensor& tensor, const Scalar& row,
                       const Scalar& col);
/// The same where it is only written.
ir::Pointer written_address_of(KernelState& state, const Tensor& tensor, const Scalar& row,
                               const Scalar& col);
/// The same; nothing (reported) if the tensor or an index is invalid.
std::optional<ir::Pointer> checked_address(KernelState& state, const Tensor& tensor,
                                           const Scalar& row, const Scalar& col);
/// Whether element (row, col) of a tile that exceeds its matrix is inside; nothing if the tile is
/// known not to exceed it.
std::optional<ir::Value> is_inside(KernelState& state, const Tensor& tensor, const Scalar& row,
                                   const Scalar& col);
/// Whether a matrix in global memory has a row; numbers below zero are above every limit.
ir::Value has_row(KernelState& state, const Tensor& tensor, const Scalar& index);
/// The matrix from a row on.
Tensor from_row(KernelState& state, const Tensor& tensor, const Scalar& index);
/// The width of an access to contiguous elements: the largest power of two that is guaranteed to
/// divide the byte address of each (r, c) with r, c multiples of the given steps, and the
/// contiguous bytes there.
int aligned_bytes(const KernelState& state, const Tensor& tensor, std::int64_t row_step,
                  std::int64_t col_step);

/// Elements as bytes; several elements smaller than a byte share one.
ir::Value byte_offset(ir::FunctionBuilder& f, ir::Value elements, Type element);
Scalar widened(KernelState& state, const Scalar& x);  // as u64

bool constant_shape(const Tensor& tensor, std::int64_t& rows, std::int64_t& cols);
/// Reports unless the tile is exactly rows x cols (both constant).
bool require_shape(KernelState& state, const Tensor& tensor, std::int64_t rows, std::int64_t cols,
                   std::string_view what);

}  // namespace tartan::TARTAN_ABI::detail
