// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/waiting.h - detects deadlocks of a cluster.
//
// A warp that polls an mbarrier keeps running, so a deadlock does not stop the warps. It is certain
// nevertheless if every group of lanes either waits at a barrier or runs a loop that reads only the
// mbarrier and carries no register from one iteration to the next.
#pragma once

#include "runtime/emulator/machine/cluster.h"

namespace tartan::inline TARTAN_ABI::emulator {

/// Stops the cluster with a finding that says who waits where, if nobody can go on.
void report_waiting(Cluster& cluster);

}  // namespace tartan::inline TARTAN_ABI::emulator
