// SPDX-License-Identifier: Apache-2.0
// dsl/units/tcgen05/tensor_sums.h - where accumulators are in tensor memory. Not installed.
#pragma once

#include "dsl/state/state.h"
#include "tartan/dsl/warp_tile.h"

namespace tartan::TARTAN_ABI::detail {

/// The address of an accumulator's first column, which it gets with its first product.
codegen::Value first_column(KernelState& state, TensorSum& sum);
/// Stores A of a product of that accumulator beside it; the address of its first column.
codegen::Value store_operand(KernelState& state, TensorSum& sum, const WarpTile& a);

}  // namespace tartan::TARTAN_ABI::detail
