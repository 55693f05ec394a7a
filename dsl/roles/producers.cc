// SPDX-License-Identifier: Apache-2.0
// The producers' side of a pipeline: how its stages are filled and signalled.
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "dsl/roles/completions.h"
#include "dsl/roles/role_ring.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// Describes the copies of a stage; gives what they are.
Accesses describe_fill(KernelState& state, const Stages& stages, Fill fill, const Scalar& t,
                       const Scalar& stage) {
  const InCallback in_callback(state, stages, t, stage, true);
  const InFill in_fill(state, fill);
  state.roles.stage_counts[state.value(stage, u32).id] = stages.stages;
  const bool in_stage = std::exchange(state.roles.in_stage, true);
  stages.fill(t, stage);
  state.at(stages.at);
  state.roles.in_stage = in_stage;
  return fill.writes;
}

// The copies of a stage, described apart from where they are issued: all at one place or, where the
// callback waits for the previous launch, those before and those behind the wait.
class FillApart {
 public:
  FillApart(KernelState& state, const Stages& stages, Fill fill)
      : state_(state), mark_(state.f().detached_mark()) {
    ir::FunctionBuilder& f = state.f();
    const Type type = stages.count.type() == Type::none ? u32 : stages.count.type();
    t_ = f.stand_in(type), stage_ = f.stand_in(u32), full_ = f.stand_in(StateSpace::shared);
    fill.full = full_, fill.divided = &divided_;
    f.at_mark(mark_, [&] {
      writes_ = describe_fill(state, stages, fill, state.scalar(t_), state.scalar(stage_));
    });
  }

  bool is_divided() const { return divided_; }
  const Accesses& writes() const { return writes_; }

  void issue(ir::Half half, const Scalar& t, const Scalar& stage, ir::Pointer full) {
    ir::Value tile = state_.value(t, is_constant(t) ? t_.type : Type::none);
    if (tile.type != t_.type) tile = state_.f().convert(tile, t_.type);
    const ir::Renamed with[] = {
        {t_.id, tile.id}, {stage_.id, state_.value(stage, u32).id}, {full_.id, full.id}};
    for (const ir::Need& each : state_.f().copy_of(mark_, half, with))
      state_.log.report_at(
          "wrong-role"_rule, each.place,
          "copies behind griddepcontrol_wait() need a result from before it, where the fill "
          "callback's statements are executed for earlier copies alone: expected the statement "
          "behind the wait, too");
  }

 private:
  KernelState& state_;
  int mark_;
  ir::Value t_, stage_;
  ir::Pointer full_;
  bool divided_ = false;
  Accesses writes_;
};

// The bytes that TMA loads to the stage are expected before its first copy.
void expect_bytes(KernelState& state, ir::Value issuer, const Accesses& writes, ir::Pointer full) {
  if (writes.tma_bytes())
    state.f().if_then(issuer, [&] { state.f().mbarrier_expect(full, writes.tma_bytes()); });
}

// After its copies this thread's own arrive.
void signal_stage(KernelState& state, const Publish& how, ir::Pointer full) {
  if (!how.by_threads) return;
  ir::FunctionBuilder& f = state.f();
  if (how.arrives_by_itself()) return f.copy_async_arrive(full);
  f.copy_async_commit();
  f.copy_async_wait(0);
  if (how.fenced) f.proxy_fence();  // the threads must not run ahead of it
  f.mbarrier_arrive(full);
}

// The thread that issues TMA copies: one lane of the first producer warp.
ir::Value tma_issuer(KernelState& state) {
  if (!state.config.has_tma()) return {};
  return state.f().bit_and(state.f().elect(), state.value(thread_index(state) < 32));
}

// Fills the stages in two parts: see divides_fill(). The first time, early parts of as many stages
// as there are run ahead of the first late one; then both parts of a stage are filled in turn.
void produce_in_parts(Builder& k, KernelState& state, const Stages& stages,
                      const RolePipeline& pipeline, ir::Value issuer, Cursor& early,
                      FillApart& fill) {
  ir::FunctionBuilder& f = state.f();
  Cursor late(k, state, stages);
  std::optional<ScalarVariable> free;  // stages that nothing has filled yet, of those that may be
  f.at_mark(state.roles.begin,
            [&] { free = k.variable(k.constant(u32, stages.stages, stages.at), stages.at); });
  const Scalar count = k.convert(stages.count, u32, stages.at), ahead = minimum(*free, count);
  *free = 0;
  const auto fill_early = [&](const Scalar& t) {
    f.mbarrier_wait(early.of(pipeline.empty), early.other_parity());
    const Scalar stage = early.stage();
    const ir::Pointer full = early.of(pipeline.full);
    expect_bytes(state, issuer, fill.writes(), full);
    fill.issue(ir::Half::before, t, stage, full);
    early.advance();
  };
  const auto fill_late = [&](const Scalar& t) {
    const Scalar stage = late.stage();
    const ir::Pointer full = late.of(pipeline.full);
    fill.issue(ir::Half::behind, t, stage, full);
    signal_stage(state, publish(fill.writes(), pipeline.reads), full);
    late.advance();
  };
  k.loop(
      0, count + ahead, 1,
      [&](const Scalar& i) {
        k.when((i < ahead) | (i >= ahead * 2), [&] { fill_early(i - select(i < ahead, 0, ahead)); },
               stages.at);
        k.when(
            i == ahead, [&] { k.griddepcontrol_wait(stages.at); }, stages.at);
        k.when(
            i >= ahead, [&] { fill_late(i - ahead); }, stages.at);
      },
      stages.at);
}

// For those who have work: all producers or, where TMA alone fills, the lane that starts it. Others
// must not wait with it: nobody waits for them, so they could miss a phase.
void for_fillers(KernelState& state, const Publish& how, ir::Value issuer,
                 const std::function<void()>& body) {
  if (how.by_issuer && !how.by_threads) state.f().if_then(issuer, body);
  else body();
}

// Before they exit, those who fill other CTAs' stages wait until all are released.
void drain(KernelState& state, const Stages& stages, const RolePipeline& pipeline,
           const Publish& how, const std::shared_ptr<Cursor>& cursor) {
  state.roles.drains.emplace_back(
      [&state, how, cursor, at = stages.at, empty = pipeline.empty, count = stages.stages] {
        Builder builder(state.shared_from_this());
        const auto wait = [&](const Scalar&) {
          state.f().mbarrier_wait(cursor->of(empty), cursor->other_parity());
          cursor->advance();
        };
        for_fillers(state, how, tma_issuer(state), [&] { builder.loop(0, count, 1, wait, at); });
      });
}

std::string means(const Accesses& writes, const Accesses& reads) {
  const std::string out = text(publish(writes, reads));
  switch (writes.sharing()) {
    case Sharing::none: break;
    case Sharing::cross: return out + " with multicast in rows or columns";
    case Sharing::all: return out + " with multicast";
  }
  return out;
}

// Stages that warpgroups have in common complete by as many arrivals, whoever they are filled for.
void check_means(KernelState& state, const RolePipeline& pipeline, const Accesses& writes) {
  const std::string own = means(writes, pipeline.reads),
                    first = means(pipeline.writes, pipeline.reads);
  if (own == first) return;
  state.log.report(
      "kernel-option"_rule,
      fmt::format("pipeline({{.turns = true}}): the stages of warpgroup {} are filled by "
                  "{}, those of warpgroup 0 by {}; fill them by the same means, they are "
                  "one ring",
                  state.roles.warpgroup, own, first));
}

}  // namespace

void produce(Builder& k, KernelState& state, const Stages& stages, std::size_t number,
             CommonRing* ring) {
  if (number >= state.roles.pipelines.size()) return;  // consumers reported it
  const bool begins = !ring || !ring->producer;
  RolePipeline& pipeline = state.roles.pipelines[number];
  ir::FunctionBuilder& f = state.f();
  const auto cursor = begins ? std::make_shared<Cursor>(k, state, stages) : ring->producer;
  if (ring) ring->producer = cursor;
  Fill fill{.pipeline = number, .issuer = tma_issuer(state)};
  Accesses writes;
  int behind = 0;
  std::optional<FillApart> apart;
  // Of the stage so many before this one, if there is one.
  const auto signal_before = [&](int by, const Scalar& exists, int pending) {
    f.copy_async_wait(pending);
    f.proxy_fence();
    k.when(
        exists, [&] { f.mbarrier_arrive(cursor->before(pipeline.full, by)); }, stages.at);
  };
  const auto step = [&](const Scalar& t) {
    f.mbarrier_wait(cursor->of(pipeline.empty), cursor->other_parity());
    const Scalar stage = cursor->stage();
    fill.full = cursor->of(pipeline.full);
    const int copies = f.detached_mark();
    if (!apart) f.at_mark(copies, [&] { writes = describe_fill(state, stages, fill, t, stage); });
    expect_bytes(state, fill.issuer, writes, fill.full);
    if (apart) apart->issue(ir::Half::both, t, stage, fill.full);
    else f.place(copies);
    const Publish how = publish(writes, pipeline.reads);
    behind = how.behind(stages.stages);
    if (behind == 0) {
      signal_stage(state, how, fill.full);
    } else {
      f.copy_async_commit();
      signal_before(behind, t >= behind, behind);
    }
    cursor->advance();
  };
  const auto produce_all = [&] {
    // Only describing the callback tells whether it waits.
    if (!ring && state.config.has_tma() && state.roles.consumers_wait) {
      apart.emplace(state, stages, fill);
      writes = apart->writes();
    }
    if (apart && apart->is_divided())
      return produce_in_parts(k, state, stages, pipeline, fill.issuer, *cursor, *apart);
    k.loop(0, stages.count, 1, step, stages.at);
    for (int by = behind; by > 0; --by) signal_before(by, stages.count >= by, by - 1);
  };
  // The copies are described first: who fills follows from what they are.
  const int loop = f.detached_mark();
  f.at_mark(loop, produce_all);
  const Publish how = publish(writes, pipeline.reads);
  for_fillers(state, how, fill.issuer, [&] { f.place(loop); });
  if (!begins) return check_means(state, pipeline, writes);
  if (how.arrivals(1) == 0 && state.log.diags().ok())  // else its copies may have been refused
    state.log.report("kernel-option"_rule,
                     "the fill callback writes no shared memory, so consumers would wait forever; "
                     "copy() to a ring");
  pipeline.writes = writes;
  pipeline.full_arrivals = how.arrivals(thread_count(state));
  if (writes.sharing() != Sharing::none) drain(state, stages, pipeline, how, cursor);
}

}  // namespace tartan::TARTAN_ABI::detail
