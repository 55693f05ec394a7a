// SPDX-License-Identifier: Apache-2.0
// dsl/indices.h - which thread, lane and block runs the code that is being described. Not
// installed.
#pragma once

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

int thread_count(const KernelState& state);  // of the role
Scalar thread_index(KernelState& state);     // within the role
codegen::Value lane_index(KernelState& state);
/// Of the blocks of a cluster, which this one is.
Scalar block_of_cluster(KernelState& state);

}  // namespace tartan::inline TARTAN_ABI::detail
