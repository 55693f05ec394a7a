// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/mbarriers.h - what instructions share that use mbarriers.
#pragma once

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/warp.h"

namespace tartan::TARTAN_ABI::emulator {

/// At generic addresses: whether the mbarriers are in shared memory, of this block with `own`, else
/// of the cluster. If not, the warp is stopped with a finding.
bool are_in_place(Warp& warp, const Op& op, bool own);
/// The state space of an mbarrier; with `own`, it is of this block.
Window mbarrier_window(Decoder& d, bool own);
/// cp.async.mbarrier.arrive.noinc of copies that are over.
void decode_arrival_after_copies(Decoder& d);

}  // namespace tartan::TARTAN_ABI::emulator
