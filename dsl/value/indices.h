// SPDX-License-Identifier: Apache-2.0
// dsl/value/indices.h - the indices of thread, lane and block in the code under description. Not
// installed.
#pragma once

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

int thread_count(const KernelState& state);  // of the role, or of one warpgroup
int first_thread(const KernelState& state);  // of those
Scalar thread_index(KernelState& state);     // among those
/// Of consumers, or of all, whatever body it is in.
int consumer_count(const KernelState& state);
Scalar consumer_index(KernelState& state);
ir::Value lane_index(KernelState& state);
/// This block's rank in its cluster.
Scalar block_of_cluster(KernelState& state);
/// Of the tiles of a cluster.
int cluster_rows(const KernelState& state);

}  // namespace tartan::TARTAN_ABI::detail
