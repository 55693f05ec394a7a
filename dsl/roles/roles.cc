// SPDX-License-Identifier: Apache-2.0
// Producers and consumers: one description, of which each executes its part.
#include "dsl/roles/roles.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "dsl/cluster/cluster.h"
#include "dsl/layout/fragments.h"
#include "dsl/roles/role_ring.h"
#include "dsl/roles/warpgroups.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

// A consumer's side of one pipeline.
class Consumption {
 public:
  Consumption(Builder& k, KernelState& state, const Stages& stages)
      : k_(k),
        state_(state),
        at_(stages.at),
        number_(state.roles.pipelines.size()),
        cursor_(k, state, stages) {
    add_pipeline(state, stages);
  }

  Scalar stage() const { return cursor_.stage(); }
  std::size_t number() const { return number_; }
  void advance() { cursor_.advance(); }

  void wait() {
    state_.at(at_);
    state_.f().mbarrier_wait(cursor_.of(state_.roles.pipelines[number_].full), cursor_.parity());
  }

  void release() {
    state_.at(at_);
    // MMAs whose results are not used yet may still be reading.
    if (!state_.flights.all_landed()) land_all(state_);
    leave_stage(k_, state_, number_, cursor_.stage(), at_);
    cursor_.advance();
  }

 private:
  Builder& k_;
  KernelState& state_;
  std::source_location at_;
  std::size_t number_;
  Cursor cursor_;
};

void consume(Builder& k, KernelState& state, const Stages& stages) {
  Consumption ring(k, state, stages);
  const auto wait = [&] {
    ring.wait();
    if (stages.ahead) stages.ahead(ring.stage());
  };
  if (releases_late(stages)) {
    LateRelease late(k, state, stages, ring.number(), ring.stage());
    each_step(k, stages, [&](const Scalar& t) {
      wait();
      const int before = state.flights.commits();
      use_stage(state, stages, t, ring.stage(), [&](bool asked) {
        if (asked) return ring.release();
        late.release(t, before);
        ring.advance();
      });
    });
    return late.finish();
  }
  if (stages.ahead) k.when(Scalar(0) < stages.count, wait, stages.at);
  each_step(k, stages, [&](const Scalar& t) {
    if (!stages.ahead) wait();
    use_stage(state, stages, t, ring.stage(), [&](bool) {
      ring.release();
      if (stages.ahead) k.when(t + 1 < stages.count, wait, stages.at);
    });
  });
}

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
  state.log.report("kernel-option"_rule,
                   fmt::format("ping_pong(): the stages of warpgroup {} are filled by {}, those of "
                               "warpgroup 0 by {}; fill them by the same means, they are one ring",
                               state.roles.warpgroup, means(arrivals, state.fill.sharing),
                               means(pipeline.full_arrivals, pipeline.sharing)));
}

// `ring`: what warpgroups have in common; only the first of them begins it.
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

// While it lives, producers are described amid what consumers do.
class AsProducer {
 public:
  AsProducer(KernelState& state, std::size_t pipeline)
      : state_(state),
        begin_(std::exchange(state.roles.begin, state.roles.producers_begin)),
        partial_(std::exchange(state.partial, {})),
        fill_(state.fill),
        in_flight_(state.flights.set_aside()) {
    state.roles.current = Role::producer, state.roles.filled = pipeline;
  }
  ~AsProducer() {
    state_.roles.current = Role::consumer, state_.roles.begin = begin_;
    state_.partial = partial_, state_.fill = fill_;
    state_.flights.bring_back(std::move(in_flight_));
  }
  AsProducer(const AsProducer&) = delete;
  AsProducer& operator=(const AsProducer&) = delete;

 private:
  KernelState& state_;
  int begin_;
  Partial partial_;
  StageFill fill_;
  Flights::Variables in_flight_;
};

std::string_view told(codegen::Need::Of what) {
  switch (what) {
    using enum codegen::Need::Of;
    case result: break;
    case thread:
      return "a fill callback needs the index of a thread that is computed outside of it, where it "
             "is that of a consumer: expected thread(), lane() or warp() inside the callback";
    case variable:
      return "producer warps need a variable that a use callback changes, which they do not "
             "execute: expected a value that both roles compute, outside of the callbacks";
  }
  return "producer warps need a result that they do not have: expected the statement inside the "
         "fill callback that uses it; outside of fill callbacks consumers alone execute it";
}

// What producers execute of a body that has been described for consumers.
void take_producers_part(KernelState& state, int body) {
  for (const codegen::Need& each : state.f().take_second_role(body))
    state.log.report_at("wrong-role"_rule, each.place, std::string(told(each.what)));
}

void move_registers(KernelState& state, Role role) {
  if (!state.config.moves_registers()) return;
  const int count = state.config.consumer_registers();
  if (count <= state.config.first_registers()) return;  // no more than there are already
  constexpr int producer_registers = Configuration::producer_registers;
  state.f().set_max_registers(role == Role::producer ? producer_registers : count,
                              role == Role::consumer);
  if (role == Role::consumer)
    state.log.choose("registers", fmt::format("setmaxnreg: {} for consumer warpgroups", count),
                     fmt::format("producer warps keep {}", producer_registers));
}

// The first producer prefetches the tensor maps while others initialize the mbarriers.
void prefetch_maps(KernelState& state) {
  if (state.launch.maps().empty()) return;
  state.f().if_then(state.value(thread_index(state) == state.config.options.block), [&] {
    for (const codegen::Pointer& each : state.launch.map_pointers())
      state.f().prefetch_tensor_map(each);
  });
}

bool shared_by_cluster(const KernelState& state) {
  if (state.cluster.barrier) return true;
  return std::any_of(state.roles.pipelines.begin(), state.roles.pipelines.end(),
                     [](const RolePipeline& each) { return each.sharing != Sharing::none; });
}

// One thread initializes the mbarriers; the following barrier makes them visible to the block or,
// with multicast, to the cluster. The async proxy sees them behind the fence.
void init_barriers(KernelState& state) {
  codegen::FunctionBuilder& f = state.f();
  const bool for_cluster = shared_by_cluster(state);
  f.if_then(state.value(thread_index(state) == 0), [&] {
    for (const RolePipeline& each : state.roles.pipelines)
      for (int s = 0; s < each.stages; ++s) {
        f.mbarrier_init(f.offset(each.full, s * mbarrier_bytes), each.full_arrivals);
        f.mbarrier_init(f.offset(each.empty, s * mbarrier_bytes), each.empty_arrivals);
      }
    init_turns(state);
    init_cluster_barrier(state);
    if (state.config.has_tma()) f.mbarrier_init_fence();
  });
  if (for_cluster) f.cluster_barrier(false);  // the fence suffices
}

}  // namespace

void mark_prologue(KernelState& state) {
  const bool possible = state.roles.current == Role::all && state.flights.depth() == 0;
  if (possible && state.roles.prologue < 0) state.roles.prologue = state.f().mark();
}

bool divides_fill(KernelState& state) {
  if (state.roles.current == Role::consumer) state.roles.consumers_wait = true;
  if (state.roles.current != Role::producer || !state.roles.in_stage || !state.fill.divisible)
    return false;
  state.fill.divided = true;
  state.f().split();
  return true;
}

void each_step(Builder& k, const Stages& stages, const std::function<void(const Scalar&)>& step) {
  if (stages.kind != PipelineKind::peeled) return k.loop(0, stages.count, 1, step, stages.at);
  if (stages.count.constant().value_or(0) > 0) step(0);
  else
    k.when(
        Scalar(0) < stages.count, [&] { step(0); }, stages.at);
  k.loop(1, stages.count, 1, step, stages.at);
}

// `t` stays below the count, with the addend that it has here: fill() runs ahead.
InCallback::InCallback(KernelState& state, const Stages& stages, const Scalar& t,
                       const Scalar& stage, bool fills)
    : state_(state),
      before_(std::exchange(state.conditions, stages.conditions)),
      scope_(state.stages, {stages.pipeline, stages.stages, fills, t, stage}) {
  const auto count = map_number(state.launch, stages.count);
  if (count && !t.constant())
    state.launch.note_range(HandleParts::value(t).id, {.number = *count, .addend = addend(t)});
}

void use_stage(KernelState& state, const Stages& stages, const Scalar& t, const Scalar& stage,
               const std::function<void(bool asked)>& leave) {
  bool left = false;
  state.roles.stage_counts[state.value(stage, u32).id] = stages.stages;
  state.at(stages.at);
  const bool before = std::exchange(state.roles.in_stage, true);
  const InCallback in(state, stages, t, stage, false);
  stages.use(t, stage, [&] {
    if (left) return state.log.report("operand-count"_rule, "next() is called twice for one stage");
    left = true;
    leave(true);
  });
  state.roles.in_stage = before;
  if (!left) leave(false);
}

void role_pipeline(KernelState& state, const Stages& stages, CommonRing* ring) {
  if (state.roles.in_stage)
    return state.log.report(
        "kernel-option"_rule,
        "pipeline inside another pipeline's stage: producer warps never reach it; "
        "run them one after the other, or fill both rings in one stage");
  Builder k(state.shared_from_this());
  const std::size_t number = ring ? ring->pipeline : state.roles.pipelines.size();
  const auto consume_all = [&] {
    if (ring) consume_in_turn(k, state, stages, *ring);
    else consume(k, state, stages);
  };
  const auto produce_all = [&] {
    const AsProducer as(state, number);
    produce(k, state, stages, number, ring);
  };
  state.f().by_role(consume_all, produce_all);
  if (!ring && number < state.roles.pipelines.size())
    settle_releases(k, state, state.roles.pipelines[number]);
}

}  // namespace detail

void Builder::roles(const std::function<void()>& body, Here at) {
  using detail::Role;
  state_->at(at);
  detail::KernelState& state = *state_;
  if (!state.has_body(body != nullptr, "roles")) return;
  if (state.roles.current != Role::all)
    return state.log.report("wrong-role"_rule,
                            "roles() inside roles(): a thread block is warp-specialized once");
  if (state.roles.divided || state.flights.depth() > 0)
    return state.log.report(
        "kernel-option"_rule,
        "roles() must be called once, outside loops and conditions; put those into its body");
  state.roles.divided = true;
  if (state.config.options.producers == 0) return body();
  state.log.choose("roles",
                   fmt::format("warp-specialized: {} consumer threads, {} producer threads",
                               state.config.options.block, 32 * state.config.options.producers),
                   "two mbarriers per pipeline stage, full and empty");
  codegen::FunctionBuilder& f = state.f();
  detail::mark_prologue(state);
  f.barrier();
  const Scalar computes = thread_index(state) < state.config.options.block;
  state.roles.producers_begin = f.detached_mark();
  int described = -1, all_filled = -1;  // the body; where producers have started all copies
  const auto consume = [&] {
    state.roles.current = Role::consumer;
    detail::move_registers(state, Role::consumer);
    state.roles.begin = f.mark(), described = f.mark();
    f.at_mark(described, body);
    state.at(at);
    finish_stores(state);
  };
  const auto produce = [&] {
    state.roles.current = Role::producer;
    detail::move_registers(state, Role::producer);
    f.place(state.roles.producers_begin);
    detail::take_producers_part(state, described);
    state.at(at);
    all_filled = f.mark();
    for (const auto& each : std::exchange(state.roles.drains, {})) each();
  };
  f.if_else(state.value(computes), consume, produce);
  state.roles.current = Role::all;
  f.at_mark(state.roles.prologue, [&] {
    detail::prefetch_maps(state);
    detail::init_barriers(state);
  });
  // No block exits while others may still fill its stages or arrive at its mbarriers. Producers say
  // with a fence that they have started all copies, and then wait until all stages are released:
  // the fence, 0.4 us on an H200, is done by then. Consumers leave nothing that others must see,
  // and need not wait until their stores are visible.
  if (!detail::shared_by_cluster(state)) return;
  f.at_mark(all_filled, [&] { f.statement("fence.acq_rel.cluster;", {}, {}, false); });
  f.cluster_barrier(state.cluster.barrier || state.cluster.accessed);
  state.cluster.met = true, state.cluster.accessed.reset();
}

}  // namespace tartan::TARTAN_ABI
