// SPDX-License-Identifier: Apache-2.0
// dsl/describe/gpc_order.h - which cluster computes which tile, so that clusters of a GPC are
// neighbours. Not installed.
#pragma once

#include <cstdint>

#include "tartan/dsl/scalar.h"
#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::detail {

/// Whether block_tile() orders `count` clusters of `down` x `across` CTAs by GPC: those in a line,
/// which share one operand by multicast, where all run at the same time on sm_90. A GPC reads a
/// line from the second-level cache once for all of its CTAs that ask for it at the same time (not
/// by multicast), but clusters go to the GPCs in turn.
bool ordered_by_gpc(Arch arch, int down, int across, std::int64_t count);

/// The number of the tile that a cluster of `size` CTAs takes, of `count` that are ordered so: a
/// permutation, after which those of a GPC have numbers that follow each other. `cluster` itself
/// where no GPC has two.
Scalar beside_on_gpc(const Scalar& cluster, std::int64_t count, int size);

}  // namespace tartan::TARTAN_ABI::detail
