// SPDX-License-Identifier: Apache-2.0
// dsl/gpc_order.h - which cluster computes which tile, so that clusters of a GPC are neighbours.
// Not installed.
#pragma once

#include <cstdint>

#include "tartan/dsl/scalar.h"

namespace tartan::inline TARTAN_ABI::detail {

/// The number of the tile that a cluster of `size` CTAs takes, of `count` that all run at the same
/// time on sm_90: a permutation, after which those of a GPC have numbers that follow each other. A
/// GPC reads a line from the second-level cache once for all of its CTAs that ask for it at the
/// same time (not by multicast), but clusters go to the GPCs in turn. `cluster` itself where no GPC
/// has two, or where they do not all run at the same time.
Scalar beside_on_gpc(const Scalar& cluster, std::int64_t count, int size);

}  // namespace tartan::inline TARTAN_ABI::detail
