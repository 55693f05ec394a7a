// SPDX-License-Identifier: Apache-2.0
// Clusters: distributed shared memory (PTX ISA 9.0, 5.1.7 and 9.7.9.23, mapa) and barriers
// (9.7.13.4).
#include "dsl/cluster/cluster.h"

#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {
namespace detail {

bool has_clusters(KernelState& state, std::string_view call) {
  if (state.config.options.cluster == 1 || state.config.has_tma()) return true;
  state.log.would_take({{8, 0}, 90});
  state.log.report(
      "no-instruction"_rule,
      fmt::format("{}: clusters require sm_90 and PTX 8.0, the target is {}; there, use "
                  "KernelOptions::cluster = 1 (options may depend on the target)",
                  call, state.config.target.text()));
  return false;
}

namespace {

// The barrier of the consumers: barrier.cluster waits for all threads, and producers are elsewhere.
void create_barrier(KernelState& state) {
  ir::FunctionBuilder& f = state.f();
  ClusterState& cluster = state.cluster;
  if (cluster.barrier) return;
  cluster.barrier = state.memories.share(f, state.names.unused("cluster_barrier"), 2 * 8);
  f.at_mark(state.roles.begin,
            [&] { cluster.next = f.variable(f.constant(u32, std::int64_t{0})); });
}

void consumers_cluster_barrier(KernelState& state) {
  ir::FunctionBuilder& f = state.f();
  create_barrier(state);
  const Scalar next = state.scalar(f.get(state.cluster.next), 1, 3);
  const ir::Pointer barrier = f.offset(*state.cluster.barrier, state.value((next & 1) * 8, u32));
  const Scalar lane = state.scalar(lane_index(state), 1, 31);
  f.warp_sync();  // the lanes that arrive do so for their warp
  f.if_then(state.value(lane < state.config.options.cluster),
            [&] { f.cluster_mbarrier_arrive(barrier, state.value(lane)); });
  f.cluster_mbarrier_wait(barrier, state.value(next >> 1, u32));
  f.set(state.cluster.next, state.value((next + 1) & 3, u32));
}

}  // namespace

void init_cluster_barrier(KernelState& state) {
  if (!state.cluster.barrier) return;
  const int warps = state.config.options.block / 32;
  for (const int at : {0, 8})
    state.f().mbarrier_init(state.f().offset(*state.cluster.barrier, at),
                            warps * state.config.options.cluster);
}

void cluster_barrier(KernelState& state) {
  if (!has_clusters(state, "cluster_barrier()")) return;
  if (state.config.options.cluster == 1) {
    block_barrier(state);
  } else if (state.roles.warpgroup >= 0) {
    state.log.report("divergent-collective"_rule,
                     "cluster_barrier(): expected all threads, found the body of a warpgroup; move "
                     "it out of warpgroups()");
  } else if (by_all_threads(state, "cluster_barrier()")) {
    land_all(state);
    if (state.has_async_products() && state.memories.is_any_written()) state.f().proxy_fence();
    if (state.roles.current == Role::all) state.f().cluster_barrier();
    else consumers_cluster_barrier(state);
    state.cluster.met = true, state.cluster.accessed.reset();
  }
  state.memories.forget_writes_in_cluster();
}

bool refuse_remote(KernelState& state, const Tensor& tensor, std::string_view instruction) {
  if (tensor.memory < 0 || !is_remote(state, tensor)) return false;
  state.log.report("layout-mismatch"_rule,
                   fmt::format("{} does not reach the shared memory of another CTA, where {} is; "
                               "read() or load() it, or let that CTA write to this one's memory",
                               instruction, tensor.name));
  return true;
}

void note_remote(KernelState& state, const Tensor& tensor) {
  const auto report = [&](std::string message) {
    state.log.report("unsynchronized-tile"_rule, std::move(message));
  };
  Memory& own = state.memories.owner_of(tensor);
  if (own.written_here)
    report(
        fmt::format("{0} is written by each CTA at {1} and accessed by another without a "
                    "cluster_barrier(); insert one between them",
                    tensor.name, text(*own.written_here)));
  else if (!state.cluster.met)
    report(
        fmt::format("{} is in another CTA, which may not have started yet; cluster_barrier() "
                    "before the first access",
                    tensor.name));
  own.written_here.reset(), state.cluster.met = true;  // report once
  state.cluster.accessed = state.log.place(), state.cluster.accessed_name = tensor.name;
}

void require_cluster_barrier(KernelState& state, const Tensor& from) {
  Memory& memory = state.memories.of(from);
  if (!memory.written_by_others) return;
  state.log.report("unsynchronized-tile"_rule,
                   fmt::format("{} is written by other CTAs at {} and read without a "
                               "cluster_barrier(); insert one between them",
                               from.name, text(*memory.written_by_others)));
  memory.written_by_others.reset();
}

void check_last_access(KernelState& state) {
  if (!state.cluster.accessed) return;
  state.log.report_at("unsynchronized-tile"_rule, *state.cluster.accessed,
                      fmt::format("{} is in another CTA, which may exit before this access; "
                                  "cluster_barrier() after the last one",
                                  state.cluster.accessed_name));
  state.cluster.accessed.reset();
}

Tensor Tensor::of_cta(const Scalar& rank, const std::source_location& at) const {
  Tensor out = *this;
  if (!state || memory < 0) return out;
  state->at(at);
  if (!state->owns(*this, name)) return out;
  out.memory = -1;
  if (!state->is_index(rank, "the rank of a CTA") || !has_clusters(*state, "of_cta()")) return out;
  const auto refused = [&](const Rule& rule, std::string message) {
    state->log.report(rule, std::move(message));
    return out;
  };
  if (state->memories.of(*this).owner >= 0)
    return refused("kernel-option"_rule,
                   fmt::format("of_cta(): {} is another CTA's already; take it of the matrix that "
                               "the kernel declares",
                               name));
  const int size = state->config.options.cluster;
  const auto number = rank.constant();
  if (number && (*number < 0 || *number >= size))
    return refused("tile-bounds"_rule, fmt::format("CTA {} of the cluster: {} CTAs are there, see "
                                                   "KernelOptions::cluster",
                                                   *number, size));
  if (size == 1 && !number)
    return refused("tile-bounds"_rule,
                   fmt::format("of_cta(): the cluster has one CTA, and the rank is a value of the "
                               "kernel; where cluster_size() is 1, use {} itself",
                               name));
  out.memory = memory;
  if (size == 1) return out;
  const Memory& own = state->memories.of(*this);
  Memory there{.base = state->f().shared_of_block(own.base, state->value(rank, u32)),
               .in_shared = true,
               .rounded_to_tf32 = own.rounded_to_tf32};
  there.owner = memory;
  out.memory = state->memories.add(std::move(there));
  out.name = fmt::format("{} of CTA {}", name, number ? fmt::format("{}", *number) : "rank");
  return out;
}

}  // namespace detail

int Builder::cluster_size() const {
  state_->log.note_target_read();
  return state_->config.options.cluster;
}

Scalar Builder::cluster_rank(Here at) {
  state_->at(at);
  if (state_->config.options.cluster == 1) return 0;
  if (!detail::has_clusters(*state_, "cluster_rank()")) return detail::bad_scalar();
  return detail::block_of_cluster(*state_);
}

void Builder::cluster_barrier(Here at) {
  state_->at(at);
  if (state_->roles.current == detail::Role::producer)
    return state_->log.report("kernel-option"_rule,
                              "cluster_barrier() in a fill callback: consumer warps never reach "
                              "it; move it out of the pipeline");
  detail::cluster_barrier(*state_);
}

}  // namespace tartan::TARTAN_ABI
