// SPDX-License-Identifier: Apache-2.0
// The producers' side of a pipeline: how its stages are filled and signalled.
#include <map>
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
    codegen::FunctionBuilder& f = state.f();
    const Type type = stages.count.type() == Type::none ? u32 : stages.count.type();
    t_ = f.stand_in(type), stage_ = f.stand_in(u32), full_ = f.stand_in(StateSpace::shared);
    fill.full = full_, fill.divided = &divided_;
    f.at_mark(mark_, [&] {
      writes_ = describe_fill(state, stages, fill, state.scalar(t_), state.scalar(stage_));
    });
  }

  bool is_divided() const { return divided_; }
  const Accesses& writes() const { return writes_; }

  void issue(codegen::Half half, const Scalar& t, const Scalar& stage, codegen::Pointer full) {
    codegen::Value tile = state_.value(t, is_constant(t) ? t_.type : Type::none);
    if (tile.type != t_.type) tile = state_.f().convert(tile, t_.type);
    const std::map<int, int> with{
        {t_.id, tile.id}, {stage_.id, state_.value(stage, u32).id}, {full_.id, full.id}};
    for (const codegen::Need& each : state_.f().copy_of(mark_, half, with))
      state_.log.report_at(
          "wrong-role"_rule, each.place,
          "copies behind griddepcontrol_wait() need a result from before it, where the fill "
          "callback's statements are executed for earlier copies alone: expected the statement "
          "behind the wait, too");
  }

 private:
  KernelState& state_;
  int mark_;
  codegen::Value t_, stage_;
  codegen::Pointer full_;
  bool divided_ = false;
  Accesses writes_;
};

// The bytes that TMA loads to the stage are expected before its first copy, at `before`.
void expect_bytes(KernelState& state, codegen::Value issuer, const Accesses& writes,
                  codegen::Pointer full, int before) {
  if (!writes.tma_bytes()) return;
  codegen::FunctionBuilder& f = state.f();
  f.at_mark(before,
            [&] { f.if_then(issuer, [&] { f.mbarrier_expect(full, writes.tma_bytes()); }); });
}

// Then this thread's own copies arrive.
void signal_stage(KernelState& state, const Publish& how, codegen::Pointer full) {
  if (!how.by_threads) return;
  codegen::FunctionBuilder& f = state.f();
  if (how.arrives_by_itself()) return f.copy_async_arrive(full);
  f.copy_async_commit();
  f.copy_async_wait(0);
  if (how.fenced) f.proxy_fence();  // the threads must not run ahead of it
  f.mbarrier_arrive(full);
}

// The thread that issues TMA copies: one lane of the first producer warp.
codegen::Value tma_issuer(KernelState& state) {
  if (!state.config.has_tma()) return {};
  return state.f().bit_and(state.f().elect(), state.value(thread_index(state) < 32));
}

// Fills the stages in two parts: see divides_fill(). The first time, early parts of as many stages
// as there are run ahead of the first late one; then both parts of a stage are filled in turn.
void produce_in_parts(Builder& k, KernelState& state, const Stages& stages,
                      const RolePipeline& pipeline, codegen::Value issuer, Cursor& early,
                      FillApart& fill) {
  codegen::FunctionBuilder& f = state.f();
  Cursor late(k, state, stages);
  std::optional<ScalarVariable> free;  // stages that nothing has filled yet, of those that may be
  f.at_mark(state.roles.begin,
            [&] { free = k.variable(k.constant(u32, stages.stages, stages.at), stages.at); });
  const Scalar count = k.convert(stages.count, u32, stages.at), ahead = minimum(*free, count);
  *free = 0;
  int before = 0;
  codegen::Pointer expecting;
  const auto fill_early = [&](const Scalar& t) {
    f.mbarrier_wait(early.of(pipeline.empty), early.other_parity());
    const Scalar stage = early.stage();
    expecting = early.of(pipeline.full), before = f.mark();
    fill.issue(codegen::Half::before, t, stage, expecting);
    early.advance();
  };
  const auto fill_late = [&](const Scalar& t) {
    const Scalar stage = late.stage();
    const codegen::Pointer full = late.of(pipeline.full);
    fill.issue(codegen::Half::behind, t, stage, full);
    expect_bytes(state, issuer, fill.writes(), expecting, before);
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

// What is known only when the filling is described: which producers have work.
void finish_production(KernelState& state, const Stages& stages, RolePipeline& pipeline,
                       const std::shared_ptr<Production>& production) {
  codegen::FunctionBuilder& f = state.f();
  const Publish how = publish(pipeline.writes, pipeline.reads);
  pipeline.full_arrivals = how.arrivals(thread_count(state));
  if (pipeline.writes.sharing() != Sharing::none)
    state.roles.drains.emplace_back(
        [&state, &f, production, at = stages.at, empty = pipeline.empty, count = stages.stages] {
          Builder builder(state.shared_from_this());
          const auto wait = [&](const Scalar&) {
            f.mbarrier_wait(production->cursor.of(empty), production->cursor.other_parity());
            production->cursor.advance();
          };
          builder.when(
              thread_index(state) < *production->busy, [&] { builder.loop(0, count, 1, wait, at); },
              at);
        });
  if (pipeline.full_arrivals == 0)
    state.log.report("kernel-option"_rule,
                     "the fill callback writes no shared memory, so consumers would wait forever; "
                     "copy() to a ring");
  if (pipeline.full_arrivals == 1)
    f.at_mark(state.roles.begin, [&] {
      const Scalar own = thread_index(state);
      *production->busy = select(state.scalar(tma_issuer(state)), own + 1, 0);
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
  state.log.report("kernel-option"_rule,
                   fmt::format("ping_pong(): the stages of warpgroup {} are filled by {}, those of "
                               "warpgroup 0 by {}; fill them by the same means, they are one ring",
                               state.roles.warpgroup, own, first));
}

}  // namespace

void produce(Builder& k, KernelState& state, const Stages& stages, std::size_t number,
             CommonRing* ring) {
  if (number >= state.roles.pipelines.size()) return;  // consumers reported it
  const bool begins = !ring || !ring->producer;
  RolePipeline& pipeline = state.roles.pipelines[number];
  codegen::FunctionBuilder& f = state.f();
  const auto production =
      begins ? std::make_shared<Production>(Cursor(k, state, stages)) : ring->producer;
  if (ring) ring->producer = production;
  Cursor& cursor = production->cursor;
  // Which producers have work is known only below: all, or the lane that issues TMA copies. Others
  // must not wait with it: nobody waits for them, so they could miss a phase.
  std::optional<ScalarVariable>& busy = production->busy;
  if (begins) {
    const Scalar all = k.constant(u32, thread_count(state), stages.at);
    f.at_mark(state.roles.begin, [&] { busy = k.variable(all, stages.at); });
  }
  Fill fill{.pipeline = number, .issuer = tma_issuer(state)};
  Accesses writes;
  int behind = 0;
  std::optional<FillApart> apart;
  // Of the stage so many before this one, if there is one.
  const auto signal_before = [&](int by, const Scalar& exists, int pending) {
    f.copy_async_wait(pending);
    f.proxy_fence();
    k.when(
        exists, [&] { f.mbarrier_arrive(cursor.before(pipeline.full, by)); }, stages.at);
  };
  const auto step = [&](const Scalar& t) {
    f.mbarrier_wait(cursor.of(pipeline.empty), cursor.other_parity());
    const Scalar stage = cursor.stage();
    fill.full = cursor.of(pipeline.full);
    const int before = f.mark();
    if (apart) {
      apart->issue(codegen::Half::both, t, stage, fill.full);
      writes = apart->writes();
    } else {
      writes = describe_fill(state, stages, fill, t, stage);
    }
    expect_bytes(state, fill.issuer, writes, fill.full, before);
    const Publish how = publish(writes, pipeline.reads);
    behind = how.behind(stages.stages);
    if (behind == 0) {
      signal_stage(state, how, fill.full);
    } else {
      f.copy_async_commit();
      signal_before(behind, t >= behind, behind);
    }
    cursor.advance();
  };
  const auto produce_all = [&] {
    // Only describing the callback tells whether it waits.
    if (!ring && state.config.has_tma() && state.roles.consumers_wait)
      apart.emplace(state, stages, fill);
    if (!apart || !apart->is_divided()) {
      k.loop(0, stages.count, 1, step, stages.at);
      for (int by = behind; by > 0; --by) signal_before(by, stages.count >= by, by - 1);
      return;
    }
    produce_in_parts(k, state, stages, pipeline, fill.issuer, cursor, *apart);
    writes = apart->writes();
  };
  k.when(thread_index(state) < *busy, produce_all, stages.at);
  if (!begins) return check_means(state, pipeline, writes);
  pipeline.writes = writes;
  finish_production(state, stages, pipeline, production);
}

}  // namespace tartan::TARTAN_ABI::detail
