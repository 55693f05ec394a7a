// SPDX-License-Identifier: Apache-2.0
// dsl/addressing.h - where elements of a tensor are, which of them exist, and how wide an access
// may be. Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

/// Where element (row, col) of a tensor is.
codegen::Pointer address_of(KernelState& state, const Tensor& tensor, const Scalar& row,
                            const Scalar& col);
/// The same, or nothing (reported) where the tensor or an index is no good.
std::optional<codegen::Pointer> checked_address(KernelState& state, const Tensor& tensor,
                                                const Scalar& row, const Scalar& col);
/// Whether element (row, col) of a tile that exceeds the matrix lies inside; nothing where it
/// surely does.
std::optional<codegen::Value> is_inside(KernelState& state, const Tensor& tensor, const Scalar& row,
                                        const Scalar& col);
/// How wide an access to neighbours may be: the largest power of two that surely divides the byte
/// address of each (r, c) with r, c multiples of the given steps, and the run of bytes there.
int aligned_bytes(const KernelState& state, const Tensor& tensor, std::int64_t row_step,
                  std::int64_t col_step);

/// Elements as bytes; several elements of less than a byte share one.
codegen::Value byte_offset(codegen::FunctionBuilder& f, codegen::Value elements, Type element);
Scalar widened(KernelState& state, const Scalar& x);  // as u64

bool constant_shape(const Tensor& tensor, std::int64_t& rows, std::int64_t& cols);
/// Reports unless the tile is exactly rows x cols (both constant).
bool require_shape(KernelState& state, const Tensor& tensor, std::int64_t rows, std::int64_t cols,
                   std::string_view what);

}  // namespace tartan::inline TARTAN_ABI::detail
