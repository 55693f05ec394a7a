// SPDX-License-Identifier: Apache-2.0
// dsl/roles/warpgroups.h - bodies of single warpgroups, and what they do in turn. Not installed.
#pragma once

#include "dsl/roles/roles.h"

namespace tartan::TARTAN_ABI::detail {

/// Initializes the mbarriers of in_turn(), in one thread.
void init_turns(KernelState& state);
/// Whether `call` is in the body of a warpgroup, inside roles(); reports if not.
bool may_take_turns(KernelState& state, std::string_view call);
/// What messages call a pipeline that warpgroups run in turn.
constexpr std::string_view turns_call = "pipeline({.turns = true})";
/// The same of such a pipeline, which more than one warpgroup run.
bool may_ping_pong(KernelState& state);
/// The ring of that place in the body: those of the first warpgroup are new. Null: reported.
CommonRing* next_ring(KernelState& state, int stages);
/// The consumers' part of a pipeline with PipelineOptions::turns.
void consume_in_turn(Builder& k, KernelState& state, const Stages& stages, const CommonRing& ring);
/// Warpgroups of consumers.
inline int warpgroups_of(const KernelState& state) {
  return state.config.options.block / warpgroup_threads;
}
/// Whether each warpgroup of consumers has a named barrier of its own, or one is free.
bool can_have_barriers(const KernelState& state);
void take_barriers(KernelState& state);
/// The threads of this thread's warpgroup meet at its barrier, once it has one.
void warpgroup_barrier(KernelState& state);
/// Producers may wait there for consumers, by the user's own means.
void note_meeting(KernelState& state);
/// Whether a named barrier of the user's is not one of a warpgroup's; reports if it is.
bool is_free_barrier(KernelState& state, int id);

}  // namespace tartan::TARTAN_ABI::detail
