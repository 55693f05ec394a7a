// SPDX-License-Identifier: Apache-2.0
// Producers and consumers: one description, of which each executes its part.
#include "dsl/roles/roles.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "dsl/cluster/cluster.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
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
      : state_(state),
        at_(stages.at),
        number_(state.roles.pipelines.size()),
        cursor_(k, state, stages),
        reading_(state.roles) {
    add_pipeline(state, stages);
  }

  Scalar stage() const { return cursor_.stage(); }
  std::size_t number() const { return number_; }
  void advance() { cursor_.advance(); }

  void wait() {
    state_.at(at_);
    await_stage(state_, state_.roles.pipelines[number_], cursor_);
  }

  void release() {
    state_.at(at_);
    // MMAs whose results are not used yet may still be reading.
    if (!state_.flights.all_landed()) land_all(state_);
    leave_stage(state_, number_, cursor_.stage());
    cursor_.advance();
  }

 private:
  KernelState& state_;
  std::source_location at_;
  std::size_t number_;
  Cursor cursor_;
  Reading reading_;
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

// What the count of a pipeline needs.
std::string told_of_count(const ir::Need& need) {
  switch (need.what) {
    using enum ir::Need::Of;
    case memory:
    case result: break;
    case thread:
      return "the count of a pipeline needs the index of a thread, which is another number in each "
             "role: expected one that both compute alike, such as a parameter or a block's index";
    case variable:
      return "the count of a pipeline needs a variable that a use callback changes, which producer "
             "warps do not execute: expected a number that both roles compute";
    case change:
      return fmt::format(
          "the count of a pipeline needs a variable that a fill callback changes at {}, which "
          "consumers do not execute: expected a number that both roles compute",
          text(need.written));
  }
  return "the count of a pipeline needs a result that producer warps do not have, since consumers "
         "alone execute its statement: expected a number that both roles compute, such as a "
         "parameter or a block's index";
}

std::string told(const ir::Need& need) {
  switch (need.what) {
    using enum ir::Need::Of;
    case result: break;
    case memory:
      return fmt::format(
          "producer warps need an element of memory that consumers write at {}: producers do not "
          "wait for them; write it before roles(), or read memory that this kernel does not write",
          text(need.written));
    case thread:
      return "producer warps need the index of a thread that is computed outside of a fill "
             "callback, where it is that of a consumer: expected thread(), lane() or warp() inside "
             "the callback, and of a pipeline's count and of conditions around it a number that "
             "both roles compute";
    case variable:
      return "producer warps need a variable that a use callback changes, which they do not "
             "execute: expected a value that both roles compute, outside of the callbacks";
    case change:
      return fmt::format(
          "consumers need a variable that a fill callback changes at {}, which they do not "
          "execute: expected a value that both roles compute, outside of the callbacks",
          text(need.written));
  }
  return "producer warps need a result that they do not have: expected the statement inside the "
         "fill callback that uses it; outside of fill callbacks consumers alone execute it, also "
         "where a pipeline's count or a condition around it depends on it";
}

// What producers execute of a body that has been described for consumers.
void take_producers_part(KernelState& state, int body) {
  const auto of_count = [&](const ir::Need& need) {
    return need.what != ir::Need::Of::memory &&
           std::ranges::any_of(state.roles.counts, [&](const ir::Value& count) {
             return state.f().depends_on(count, need.place);
           });
  };
  for (const ir::Need& each : state.f().take_second_role(body))
    if (each.what != ir::Need::Of::memory || !state.roles.producers_meet)
      state.log.report_at("wrong-role"_rule, each.place,
                          of_count(each) ? told_of_count(each) : told(each));
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
    for (const ir::Pointer& each : state.launch.map_pointers()) state.f().prefetch_tensor_map(each);
  });
}

bool shared_by_cluster(const KernelState& state) {
  if (state.cluster.barrier || state.tensor_sums.pairs) return true;
  return std::any_of(
      state.roles.pipelines.begin(), state.roles.pipelines.end(),
      [](const RolePipeline& each) { return each.writes.sharing() != Sharing::none; });
}

// One thread initializes the mbarriers; the following barrier makes them visible to the block or,
// with multicast, to the cluster. The async proxy sees them behind the fence.
void init_barriers(KernelState& state) {
  ir::FunctionBuilder& f = state.f();
  const bool for_cluster = shared_by_cluster(state);
  f.if_then(state.value(thread_index(state) == 0), [&] {
    for (const RolePipeline& each : state.roles.pipelines)
      for (int s = 0; s < each.stages; ++s) {
        f.mbarrier_init(f.offset(each.full, s * mbarrier_bytes), each.full_arrivals);
        f.mbarrier_init(f.offset(each.empty, s * mbarrier_bytes), each.empty_arrivals);
        if (each.peer_arrivals)
          f.mbarrier_init(f.offset(each.peer, s * mbarrier_bytes), each.peer_arrivals);
      }
    init_turns(state);
    init_tensor_barriers(state);
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
  if (state.roles.current != Role::producer || !state.fill || !state.fill->divided) return false;
  *state.fill->divided = true;
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
      scope_(state.stages,
             {stages.pipeline, stages.stages, fills, t, stage, stages.at, state.flights.depth()}) {
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
  Fill* const around = std::exchange(state.fill, nullptr);  // a use callback's copies are not its
  const InCallback in(state, stages, t, stage, false);
  stages.use(t, stage, [&] {
    if (left) return state.log.report("operand-count"_rule, "next() is called twice for one stage");
    left = true;
    leave(true);
    if (state.roles.current == Role::consumer &&
        state.flights.depth() == state.stages.current()->depth)
      state.stages.note_release();
  });
  state.roles.in_stage = before, state.fill = around;
  if (!left) leave(false);
}

void role_pipeline(KernelState& state, const Stages& stages, CommonRing* ring) {
  if (state.roles.in_stage)
    return state.log.report(
        "kernel-option"_rule,
        "pipeline inside another pipeline's stage: producer warps never reach it; "
        "run them one after the other, or fill both rings in one stage");
  Builder k(state.shared_from_this());
  if (state_of(stages.count)) state.roles.counts.push_back(HandleParts::value(stages.count));
  const std::size_t number = ring ? ring->pipeline : state.roles.pipelines.size();
  const auto consume_all = [&] {
    if (ring) consume_in_turn(k, state, stages, *ring);
    else consume(k, state, stages);
  };
  const auto produce_all = [&] {
    const AsProducer as(state);
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
  ir::FunctionBuilder& f = state.f();
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
    detail::settle_tensor_sums(state, described);
    state.at(at);
    finish_stores(state);
    detail::free_tensor_memory(state);
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
  detail::check_roles(state);
  f.at_mark(state.roles.prologue, [&] {
    detail::prefetch_maps(state);
    detail::allocate_tensor_memory(state);
    detail::init_barriers(state);
  });
  // No block exits while others may still fill its stages or arrive at its mbarriers. Producers say
  // with a fence that they have started all copies, and then wait until all stages are released:
  // the fence, 0.4 us on an H200, is done by then. Consumers leave nothing that others must see,
  // and need not wait until their stores are visible.
  if (!detail::shared_by_cluster(state)) return;
  f.at_mark(all_filled, [&] { f.statement("fence.acq_rel.cluster;", {}, {}, false); });
  f.cluster_barrier(state.cluster.barrier || state.cluster.accessed || state.tensor_sums.pairs);
  detail::free_tensor_memory_of_pair(state);
  state.cluster.met = true, state.cluster.accessed.reset();
}

}  // namespace tartan::TARTAN_ABI
