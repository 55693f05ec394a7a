// SPDX-License-Identifier: Apache-2.0
#include "dsl/value/indices.h"

#include <bit>

namespace tartan::TARTAN_ABI::detail {

int consumer_count(const KernelState& state) {
  return state.roles.current == Role::all ? state.config.all_threads() : state.config.options.block;
}

int thread_count(const KernelState& state) {
  if (state.roles.current == Role::producer) return 32 * state.config.options.producers;
  return state.roles.warpgroup >= 0 ? warpgroup_threads : consumer_count(state);
}

int first_thread(const KernelState& state) {
  if (state.roles.current == Role::producer) return state.config.options.block;
  return state.roles.warpgroup >= 0 ? warpgroup_threads * state.roles.warpgroup : 0;
}

Scalar thread_index(KernelState& state) {
  ir::Value number = state.f().special(isa::SpecialRegister::tid_x);
  const int first = first_thread(state);
  if (first > 0) number = state.f().subtract(number, state.f().constant(u32, first));
  state.threads.note_index(number.id, first);
  const auto count = static_cast<std::uint64_t>(thread_count(state));
  return state.scalar(number, 1, std::bit_ceil(count) - 1);
}

Scalar consumer_index(KernelState& state) {
  const ir::Value number = state.f().special(isa::SpecialRegister::tid_x);
  state.threads.note_index(number.id, 0);
  const auto count = static_cast<std::uint64_t>(consumer_count(state));
  return state.scalar(number, 1, std::bit_ceil(count) - 1);
}

ir::Value lane_index(KernelState& state) { return state.value(thread_index(state) % 32); }

Scalar block_of_cluster(KernelState& state) {
  return state.scalar(state.f().special(isa::SpecialRegister::ctaid_x)) %
         state.config.options.cluster;
}

int cluster_rows(const KernelState& state) {
  return state.config.options.cluster / state.config.options.cluster_columns;
}

}  // namespace tartan::TARTAN_ABI::detail
