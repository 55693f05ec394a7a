// SPDX-License-Identifier: Apache-2.0
// dsl/describe/gpc_order.h - which cluster computes which tile, so that clusters of a GPC are
// neighbours. Not installed.
#pragma once

#include <cstdint>

#include "tartan/dsl/scalar.h"

namespace tartan::TARTAN_ABI::detail {

/// The number of the tile that a cluster of `size` CTAs takes, of `count` that are ordered so
/// (model::ordered_by_gpc()): a permutation, after which those of a GPC have numbers that follow
/// each other. `cluster` itself where no GPC has two.
Scalar beside_on_gpc(const Scalar& cluster, std::int64_t count, int size);

}  // namespace tartan::TARTAN_ABI::detail
