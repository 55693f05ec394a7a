// SPDX-License-Identifier: Apache-2.0
// dsl/state/cluster_state.h - the state of a description whose CTAs access each other's shared
// memory. See Builder::cluster_barrier(). Not installed.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/function_builder.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

struct ClusterState {
  bool met = false;                    // a cluster_barrier() was described
  std::optional<Place> accessed = {};  // another CTA's memory, with no cluster_barrier() since
  std::string accessed_name = {};
  int exchange = -1;  // the memory through which CTAs reduce, once there is one
  // The barrier of the consumers of all CTAs, once there is one: two mbarriers in each CTA, at
  // which each warp of consumers of the cluster arrives, and the number of the next use, modulo 4:
  // bit 0 selects the mbarrier, bit 1 is the parity that is waited for. Two, because a warp that
  // another CTA lets go may arrive here while others' arrivals for the same use are still under
  // way.
  std::optional<ir::Pointer> barrier = {};
  ir::Variable next = {};
};

}  // namespace tartan::TARTAN_ABI::detail
