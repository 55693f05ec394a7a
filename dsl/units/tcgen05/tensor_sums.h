// SPDX-License-Identifier: Apache-2.0
// dsl/units/tcgen05/tensor_sums.h - where accumulators are in tensor memory. Not installed.
#pragma once

#include "dsl/state/state.h"
#include "tartan/dsl/warp_tile.h"

namespace tartan::TARTAN_ABI::detail {

/// The address of an accumulator's first column, which it gets with its first product.
ir::Value first_column(KernelState& state, TensorSum& sum);
/// The first of columns of its own that each warpgroup gets, or the one in whose body this is; its
/// address in this warpgroup.
int allocate_columns(KernelState& state, int columns, bool of_all);
ir::Value column_of(KernelState& state, int first, int columns, bool of_all);
/// Mbarriers for a product by pairs that reads so many stages; `of_all`: in the body of all
/// warpgroups.
StageMeetings allocate_meetings(KernelState& state, int stages, bool of_all);
/// What the warps have stored for a stage is done before its product.
void meet_in_stage(KernelState& state, const StageMeetings& meetings, int stages,
                   const Scalar& stage, bool of_all);
/// Waits for all products that the warpgroup has issued.
void await_products(KernelState& state);
/// What a warp has read or written is done before the warpgroup's next product.
void meet_warpgroup(KernelState& state);

/// Scales of a product, by their first columns: for each four scales along k, so many.
struct TensorScales {
  ir::Value a, b;
  int columns_a, columns_b;
};
/// Stores scales of a stage: `words` times four along k, from A's row `first_row` on.
TensorScales store_scales(KernelState& state, TensorSum& sum, const Scalar& first_row, int words,
                          const Tensor& a, const Tensor& b);
/// Metadata of a sparse A, by its first column: for each step along k, so many.
struct TensorMetadata {
  ir::Value first;
  int columns;
};
/// `bytes`: of elements of 8 bits.
TensorMetadata store_metadata(KernelState& state, TensorSum& sum, const Scalar& first_row,
                              int steps, bool bytes, const Tensor& metadata);
/// Stores A of a product of that accumulator to columns of its own; the address of the first.
ir::Value store_operand(KernelState& state, TensorSum& sum, const WarpTile& a);

}  // namespace tartan::TARTAN_ABI::detail
