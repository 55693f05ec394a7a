// SPDX-License-Identifier: Apache-2.0
// dsl/cluster/cluster.h - barriers of clusters, and what must stand between accesses of different
// CTAs to the same shared memory. Not installed.
#pragma once

#include <string_view>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// Whether the target has the clusters that the kernel asks for; reports if not.
bool has_clusters(KernelState& state, std::string_view call);
void cluster_barrier(KernelState& state);
/// Initializes the mbarrier of the consumers' cluster barrier.
void init_cluster_barrier(KernelState& state);

/// Whether a tensor is in the shared memory of another CTA.
inline bool is_remote(const KernelState& state, const Tensor& tensor) {
  return state.memories.of(tensor).owner >= 0;
}
/// Reports an operation that does not reach the shared memory of another CTA. True if it is there.
bool refuse_remote(KernelState& state, const Tensor& tensor, std::string_view instruction);
/// Records an access to another CTA's memory; reports it if nothing orders it after what that CTA
/// did.
void note_remote(KernelState& state, const Tensor& tensor);
/// Reports a read of this CTA's memory that others have written since the last cluster barrier.
void require_cluster_barrier(KernelState& state, const Tensor& from);
/// Reports an access to another CTA's memory that the CTA may not live to see.
void check_last_access(KernelState& state);

}  // namespace tartan::TARTAN_ABI::detail
