// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/waiting.h - whether the warps of a cluster can ever go on.
//
// A warp that polls an mbarrier keeps running, so a deadlock is no standstill. It is certain all
// the same when every group of lanes either stands at a barrier or goes round a loop that reads
// nothing but the mbarrier and carries no register from one round into the next.
#pragma once

#include <string>

#include "runtime/emulator/machine/cluster.h"

namespace tartan::TARTAN_ABI::emulator {

/// Stops the cluster with a finding that says who waits where, if nobody can go on.
void report_waiting(Cluster& cluster);

/// Where each warp that is not done is, and what it waits for: "warps 0 and 1 at line 40; warp 2 at
/// line 44, for barrier 0, which ...". Empty: all are done.
std::string positions(Block& block);

}  // namespace tartan::TARTAN_ABI::emulator
