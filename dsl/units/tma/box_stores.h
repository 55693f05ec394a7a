// SPDX-License-Identifier: Apache-2.0
// dsl/units/tma/box_stores.h - stores of tiles through shared memory. Not installed.
#pragma once

#include <string>
#include <vector>

#include "dsl/units/warp_mma/stored_fragments.h"

namespace tartan::TARTAN_ABI::detail {

/// Stores a consumer's part of a tile through shared memory if possible; otherwise gives the
/// reason. `adds`: to what is there, by TMA alone.
bool store_boxes(KernelState& state, const Tensor& to, const WarpTile& tile,
                 StoredFragments& fragments, std::vector<std::string>& refused, bool adds = false);

}  // namespace tartan::TARTAN_ABI::detail
