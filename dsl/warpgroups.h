// SPDX-License-Identifier: Apache-2.0
// dsl/warpgroups.h - bodies of single warpgroups, and what they do in turn. Not installed.
#pragma once

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

/// Initializes the mbarriers of in_turn(), in one thread.
void init_turns(KernelState& state);
/// Whether a named barrier of the user's is not one of a warpgroup's; reports if it is.
bool is_free_barrier(KernelState& state, int id);

}  // namespace tartan::inline TARTAN_ABI::detail
