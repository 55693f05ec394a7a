// SPDX-License-Identifier: Apache-2.0
// dsl/indices.h - the indices of thread, lane and block in the code under description. Not
// installed.
#pragma once

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

int thread_count(const KernelState& state);  // of the role
Scalar thread_index(KernelState& state);     // within the role
codegen::Value lane_index(KernelState& state);
/// This block's rank in its cluster.
Scalar block_of_cluster(KernelState& state);

}  // namespace tartan::inline TARTAN_ABI::detail
