// SPDX-License-Identifier: Apache-2.0
#include "dsl/roles/role_ring.h"

#include "dsl/cluster/cluster.h"
#include "dsl/layout/fragments.h"
#include "dsl/roles/completions.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/model.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

ir::Pointer barrier_of(KernelState& state, ir::Pointer first, const Scalar& stage) {
  return state.f().offset(first, state.value(stage * mbarrier_bytes, u32));
}

}  // namespace

Cursor::Cursor(Builder& k, KernelState& state, int stages, const std::source_location& at)
    : state_(state), stages_(stages) {
  // The role may run the pipeline several times: the ring continues where it was.
  state.f().at_mark(state.roles.begin, [&] {
    stage_ = k.variable(k.constant(u32, 0, at), at);
    parity_ = k.variable(k.constant(u32, 0, at), at);
  });
}

ir::Pointer Cursor::of(ir::Pointer first) const { return barrier_of(state_, first, stage()); }
ir::Pointer Cursor::before(ir::Pointer first, int by) const {
  const Scalar now = *stage_;
  return barrier_of(state_, first, select(now < by, now + (stages_ - by), now - by));
}
ir::Value Cursor::parity() const { return state_.value(*parity_, u32); }
ir::Value Cursor::other_parity() const { return state_.value(Scalar(*parity_) ^ 1, u32); }

void Cursor::advance() {
  const Scalar now = *stage_, last = now == stages_ - 1;
  *parity_ = select(last, Scalar(*parity_) ^ 1, *parity_);
  *stage_ = select(last, 0, now + 1);
}

Scalar Cursor::position() const { return stage() * 2 + Scalar(*parity_); }

void Cursor::go_to(const Scalar& position) {
  *stage_ = position / 2;
  *parity_ = position & 1;
}

void add_pipeline(KernelState& state, const Stages& stages) {
  RolePipeline pipeline{.stages = stages.stages, .at = stages.at};
  const std::int64_t bytes = stages.stages * mbarrier_bytes;
  const bool pairs = state.tensor_sums.pairs;
  pipeline.full =
      state.memories.share(state.f(), state.names.unused("pipeline"), (pairs ? 3 : 2) * bytes);
  pipeline.empty = state.f().offset(pipeline.full, bytes);
  if (pairs) {
    pipeline.peer = state.f().offset(pipeline.full, 2 * bytes);
    pipeline.peer_arrivals = thread_count(state) / warpgroup_threads;
  }
  state.roles.pipelines.push_back(pipeline);
}

void await_stage(KernelState& state, const RolePipeline& pipeline, const Cursor& cursor) {
  state.f().mbarrier_wait(cursor.of(pipeline.full), cursor.parity());
  if (pipeline.peer_arrivals) meet_stage_of_pair(state, cursor.of(pipeline.peer), cursor.parity());
}

namespace {

void release_stage(Builder& k, KernelState& state, RolePipeline& pipeline, const Scalar& stage,
                   const std::source_location& at) {
  ir::FunctionBuilder& f = state.f();
  const ir::Pointer barrier = barrier_of(state, pipeline.empty, stage);
  const Sharing sharing = pipeline.writes.sharing();
  const Release how = release(pipeline.reads, state.has_wgmma);
  const int blocks = sharing == Sharing::none ? 1 : state.config.options.cluster,
            rows = blocks == 1 ? 1 : cluster_rows(state), cols = blocks / rows;
  const bool cross = sharing == Sharing::cross && rows > 1 && cols > 1 && !how.by_threads;
  pipeline.empty_arrivals = (cross ? rows + cols - 1 : blocks) * how.arrivals(thread_count(state));
  // Whether the lane's block is one of those that fill this one's stages.
  const auto fills = [&](const Scalar& lane) {
    const Scalar exists = lane < blocks;
    if (!cross) return exists;
    const Scalar rank = block_of_cluster(state);
    return exists & ((lane % rows == rank % rows) | (lane / rows == rank / rows));
  };
  if (how.syncs) {
    f.warp_sync();
    const Scalar arrives = fills(k.lane(at));
    const ir::Value arrives_here = state.value(arrives);
    if (blocks == 1) f.mbarrier_arrive_if(arrives_here, barrier);
    else f.mbarrier_arrive_if(arrives_here, barrier, state.value(select(arrives, k.lane(at), 0)));
  } else if (blocks == 1) {
    if (how.by_threads) f.mbarrier_arrive(barrier);
    else
      k.when(
          k.lane(at) == 0, [&] { f.mbarrier_arrive(barrier); }, at);
  } else if (how.by_threads) {
    for (int block = 0; block < blocks; ++block) f.mbarrier_arrive(barrier, f.constant(u32, block));
  } else {
    k.when(
        fills(k.lane(at)), [&] { f.mbarrier_arrive(barrier, lane_index(state)); }, at);
  }
  if (!how.commits) return;
  // A bit for each block.
  Scalar filling = (1 << blocks) - 1;
  if (cross) {
    const Scalar rank = block_of_cluster(state);
    int row = 0;
    for (int c = 0; c < cols; ++c) row |= 1 << c * rows;
    filling = (k.constant(u32, row, at) << rank % rows) |
              (k.constant(u32, (1 << rows) - 1, at) << rank / rows * rows);
  }
  f.if_then(issues_products(state), [&] {
    commit_products(state, barrier, blocks == 1 ? ir::Value() : state.value(filling, u32));
  });
}

}  // namespace

void leave_stage(KernelState& state, std::size_t number, const Scalar& stage) {
  RolePipeline& pipeline = state.roles.pipelines[number];
  pipeline.reads.add_kinds(*state.roles.reads);
  pipeline.releases.emplace_back(state.f().mark(), state.value(stage, u32));
}

void settle_releases(Builder& k, KernelState& state, RolePipeline& pipeline) {
  for (const auto& [mark, released] : pipeline.releases)
    state.f().at_mark(mark, [&, stage = state.scalar(released)] {
      release_stage(k, state, pipeline, stage, pipeline.at);
    });
  state.at(pipeline.at);
}

bool releases_late(const Stages& stages) {
  return stages.stages > model::most_prompt_stages && !stages.ahead &&
         stages.kind == PipelineKind::uniform;
}

LateRelease::LateRelease(Builder& k, KernelState& state, const Stages& stages, std::size_t pipeline,
                         const Scalar& first)
    : k_(k),
      state_(state),
      stages_(stages),
      pipeline_(pipeline),
      stage_(k.variable(first, stages.at)) {}

void LateRelease::leave() {
  const Scalar stage = stage_;
  leave_stage(state_, pipeline_, stage);
  stage_ = select(stage == stages_.stages - 1, 0, stage + 1);
}

void LateRelease::release(const Scalar& t, int commits) {
  state_.at(stages_.at);
  const int flying = state_.flights.all_landed() ? 0 : state_.flights.commits_since(commits);
  behind_ = flying > 0 && stages_.stages > 1 && !state_.flights.keeps_registers_since(commits);
  if (behind_) {
    (void)state_.f().warpgroup_wait(flying, {}, {});
    k_.when(
        t > 0, [&] { leave(); }, stages_.at);
  } else {
    if (!state_.flights.all_landed()) land_all(state_);
    leave();
  }
}

void LateRelease::finish() {
  if (!behind_) return;
  land_all(state_);
  k_.when(
      Scalar(0) < stages_.count, [&] { leave(); }, stages_.at);
}

}  // namespace tartan::TARTAN_ABI::detail
