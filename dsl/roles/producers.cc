// SPDX-License-Identifier: Apache-2.0
// The producers' side of a pipeline: how its stages are filled and signalled.
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "dsl/roles/role_ring.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// Describes the copies of a stage.
void describe_fill(KernelState& state, const Stages& stages, const Scalar& t, const Scalar& stage,
                   codegen::Pointer full) {
  const InCallback in(state, stages, t, stage, true);
  state.roles.stage_counts[state.value(stage, u32).id] = stages.stages;
  state.fill.asynchronous = true, state.fill.barrier = full;
  state.roles.fill_depth = state.flights.depth();
  const bool in_stage = std::exchange(state.roles.in_stage, true);
  stages.fill(t, stage);
  state.at(stages.at);
  state.roles.in_stage = in_stage;
  state.fill.asynchronous = false;
}

// The copies of a stage, described apart from where they are issued: all at one place or, where the
// callback waits for the previous launch, those before and those behind the wait.
class FillApart {
 public:
  FillApart(KernelState& state, const Stages& stages)
      : state_(state), mark_(state.f().detached_mark()) {
    codegen::FunctionBuilder& f = state.f();
    const Type type = stages.count.type() == Type::none ? u32 : stages.count.type();
    t_ = f.stand_in(type), stage_ = f.stand_in(u32), full_ = f.stand_in(StateSpace::shared);
    state.fill.divisible = true, state.fill.divided = false;
    f.at_mark(mark_,
              [&] { describe_fill(state, stages, state.scalar(t_), state.scalar(stage_), full_); });
    state.fill.divisible = false;
  }

  bool is_divided() const { return state_.fill.divided; }

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
};

// The bytes that TMA copies into the stage are expected before its first copy, at `before`.
void expect_bytes(KernelState& state, codegen::Pointer full, int before) {
  if (state.fill.tma_bytes)
    state.f().at_mark(before, [&] {
      state.f().if_then(state.fill.starts_tma,
                        [&] { state.f().mbarrier_expect(full, state.fill.tma_bytes); });
    });
}

// Then this thread's own copies arrive. Gives the number of arrivals.
int signal_stage(KernelState& state, codegen::Pointer full_first, int before,
                 codegen::Pointer full) {
  codegen::FunctionBuilder& f = state.f();
  expect_bytes(state, full_first, before);
  // wgmma sees writes of threads only after a fence, which the threads must not run ahead of.
  if (state.fill.plain || (state.fill.by_threads && state.fill.read_by_wgmma)) {
    f.copy_async_commit();
    f.copy_async_wait(0);
    if (state.fill.read_by_wgmma) f.proxy_fence();
    f.mbarrier_arrive(full);
  } else if (state.fill.by_threads) {
    f.copy_async_arrive(full);
  }
  const bool by_threads = state.fill.plain || state.fill.by_threads;
  return (by_threads ? thread_count(state) : 0) + (state.fill.tma_bytes ? 1 : 0);
}

// How many stages later a thread's copies to one are signalled, where it waits for them to fence
// them: those of the next stages are on their way meanwhile. Consumers that release late wait for
// one stage more than they use.
int signalled_behind(const KernelState& state, const Stages& stages) {
  const bool fenced = state.fill.by_threads && !state.fill.plain && state.fill.read_by_wgmma;
  if (!fenced || stages.stages < 3) return 0;
  return stages.stages < 6 ? 1 : 2;
}

// The thread that issues TMA copies: one lane of the first producer warp.
codegen::Value tma_issuer(KernelState& state) {
  if (!state.config.has_tma()) return {};
  return state.f().bit_and(state.f().elect(), state.value(thread_index(state) < 32));
}

// Fills the stages in two parts: see divides_fill(). The first time, early parts of as many stages
// as there are run ahead of the first late one; then both parts of a stage are filled in turn.
// Gives the number of arrivals at `full`.
int produce_in_parts(Builder& k, KernelState& state, const Stages& stages,
                     const RolePipeline& pipeline, Cursor& early, FillApart& fill) {
  codegen::FunctionBuilder& f = state.f();
  Cursor late(k, state, stages);
  std::optional<ScalarVariable> free;  // stages that nothing has filled yet, of those that may be
  f.at_mark(state.roles.begin,
            [&] { free = k.variable(k.constant(u32, stages.stages, stages.at), stages.at); });
  const Scalar count = k.convert(stages.count, u32, stages.at), ahead = minimum(*free, count);
  *free = 0;
  int arrivals = 0, before = 0;
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
    arrivals = signal_stage(state, expecting, before, full);
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
  return arrivals;
}

// What is known only when the filling is described: which producers have work.
void finish_production(KernelState& state, const Stages& stages, RolePipeline& pipeline,
                       const std::shared_ptr<Production>& production) {
  codegen::FunctionBuilder& f = state.f();
  pipeline.sharing = state.fill.sharing;
  if (pipeline.sharing != Sharing::none)
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

std::string means(int arrivals, Sharing sharing) {
  std::string out = arrivals == 0       ? "nothing"
                    : arrivals == 1     ? "TMA"
                    : arrivals % 32 > 0 ? "TMA and copies of threads"
                                        : "copies of threads";
  return sharing == Sharing::none    ? out
         : sharing == Sharing::cross ? out + " with multicast in rows or columns"
                                     : out + " with multicast";
}

// Stages that warpgroups have in common complete by as many arrivals, whoever they are filled for.
void check_means(KernelState& state, const RolePipeline& pipeline, int arrivals) {
  if (arrivals == pipeline.full_arrivals && state.fill.sharing == pipeline.sharing) return;
  state.log.report(
      "kernel-option"_rule,
      fmt::format("pipeline({{.turns = true}}): the stages of warpgroup {} are filled by {}, "
                  "those of warpgroup 0 by {}; fill them by the same means, they are "
                  "one ring",
                  state.roles.warpgroup, means(arrivals, state.fill.sharing),
                  means(pipeline.full_arrivals, pipeline.sharing)));
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
  state.fill.starts_tma = tma_issuer(state);
  state.fill.plain = state.fill.by_threads = false;
  state.fill.sharing = Sharing::none;
  state.fill.tma_bytes = 0;
  int arrivals = 0, behind = 0;
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
    const codegen::Pointer full = cursor.of(pipeline.full);
    const int before = f.mark();
    if (apart) apart->issue(codegen::Half::both, t, stage, full);
    else describe_fill(state, stages, t, stage, full);
    behind = signalled_behind(state, stages);
    if (behind == 0) {
      arrivals = signal_stage(state, full, before, full);
    } else {
      expect_bytes(state, full, before);
      arrivals = thread_count(state) + (state.fill.tma_bytes ? 1 : 0);
      f.copy_async_commit();
      signal_before(behind, t >= behind, behind);
    }
    cursor.advance();
  };
  const auto produce_all = [&] {
    // Only describing the callback tells whether it waits.
    if (!ring && state.config.has_tma() && state.roles.consumers_wait) apart.emplace(state, stages);
    if (!apart || !apart->is_divided()) {
      k.loop(0, stages.count, 1, step, stages.at);
      for (int by = behind; by > 0; --by) signal_before(by, stages.count >= by, by - 1);
      return;
    }
    arrivals = produce_in_parts(k, state, stages, pipeline, cursor, *apart);
  };
  k.when(thread_index(state) < *busy, produce_all, stages.at);
  if (!begins) {
    check_means(state, pipeline, arrivals);
  } else {
    pipeline.full_arrivals = arrivals;
    finish_production(state, stages, pipeline, production);
  }
  state.fill.starts_tma = {};
}

}  // namespace tartan::TARTAN_ABI::detail
