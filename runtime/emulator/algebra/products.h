// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/products.h - matrix products over the reals: sums in any order.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/emulator/machine/warp.h"

namespace tartan::TARTAN_ABI::emulator {

/// What the selectors of a block-scaled product say.
struct ScalePlaces {
  int byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
};

/// In front of what mma and wmma.mma do to bits.
void multiply_values(Warp& warp, const MatrixOperation& m, const ScalePlaces& places);
/// The same for a warpgroup's product; `operands` has what its threads agree on.
void multiply_values(Warp& warp, std::span<Warp> warps, const WarpgroupOperation& w,
                     const WgmmaOperands& operands);

}  // namespace tartan::TARTAN_ABI::emulator
