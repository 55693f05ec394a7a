// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/waiting.h - whether the warps of a cluster can ever go on.
//
// A warp that polls an mbarrier keeps running, so a deadlock is no standstill. It is certain all
// the same when every group of lanes either stands at a barrier or goes round a loop that reads
// nothing but the mbarrier and carries no register from one round into the next.
#pragma once

#include "runtime/emulator/machine/cluster.h"

namespace tartan::inline TARTAN_ABI::emulator {

/// Stops the cluster with a finding that says who waits where, if nobody can go on.
void report_waiting(Cluster& cluster);

}  // namespace tartan::inline TARTAN_ABI::emulator
