// SPDX-License-Identifier: Apache-2.0
#include "dsl/indices.h"

#include <bit>

namespace tartan::inline TARTAN_ABI::detail {

int thread_count(const KernelState& state) {
  switch (state.roles.current) {
    case Role::all: return state.config.all_threads();
    case Role::consumer: return state.config.options.block;
    case Role::producer: return 32 * state.config.options.producers;
  }
  return 0;
}

Scalar thread_index(KernelState& state) {
  codegen::Value number = state.f().special(isa::SpecialRegister::tid_x);
  if (state.roles.current == Role::producer)
    number = state.f().subtract(number, state.f().constant(u32, state.config.options.block));
  const bool produces = state.roles.current == Role::producer;
  state.threads.note_index(number.id, produces ? state.config.options.block : 0);
  const auto count = static_cast<std::uint64_t>(thread_count(state));
  return state.scalar(number, 1, std::bit_ceil(count) - 1);
}

codegen::Value lane_index(KernelState& state) { return state.value(thread_index(state) % 32); }

Scalar block_of_cluster(KernelState& state) {
  return state.scalar(state.f().special(isa::SpecialRegister::ctaid_x)) %
         state.config.options.cluster;
}

}  // namespace tartan::inline TARTAN_ABI::detail
