// SPDX-License-Identifier: Apache-2.0
// Rings of shared memory between copies and products.
#include "dsl/roles/roles.h"

#include <utility>

#include "dsl/roles/warpgroups.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::KernelState;

// Copies in `fill` use cp.async; targets before sm_80 have none and copy synchronously.
class Filler {
 public:
  explicit Filler(KernelState& state) : state_(state), real_(state.config.has_async_copy()) {}

  void fill(const std::function<void()>& body) {
    detail::Fill fill;
    const detail::InFill in(state_, fill);
    body();
  }
  void commit() {
    if (real_) state_.f().copy_async_commit();
  }
  void wait(int pending) {
    if (real_) state_.f().copy_async_wait(pending);
  }

 private:
  KernelState& state_;
  bool real_;
};

// t % stages, computed without a division.
Scalar next_stage(const Scalar& stage, int stages) {
  return select(stage == stages - 1, 0, stage + 1);
}

// All threads fill and consume, in turn.
class CommonPipeline {
 public:
  CommonPipeline(Builder& k, KernelState& state, const detail::Stages& ring)
      : k_(k), state_(state), ring_(ring), filler_(state) {}

  void run() {
    const int stages = ring_.stages;
    state_.log.choose(
        fmt::format("pipeline of {} stages", stages),
        state_.config.has_async_copy() ? "cp.async groups, one per stage" : "plain copies",
        stages > 1 ? fmt::format("{} k-tiles are in flight while one is used", stages - 1)
                   : "single stage: each tile is filled, then used");
    if (stages == 1) detail::each_step(k_, ring_, [&](const Scalar& t) { fill_and_use(t); });
    else keep_filled();
  }

 private:
  void fill(const Scalar& t, const Scalar& stage) {
    state_.at(ring_.at);
    const detail::InCallback in(state_, ring_, t, stage, true);
    filler_.fill([&] { ring_.fill(t, stage); });
  }

  void fill_and_use(const Scalar& t) {
    fill(t, 0);
    filler_.commit();
    wait(0);
    if (ring_.ahead) ring_.ahead(0);
    detail::use_stage(state_, ring_, t, 0, [](bool) {});
    k_.barrier(ring_.at);
  }

  void keep_filled() {
    const int stages = ring_.stages;
    for (int s = 0; s < stages - 1; ++s) fill_if_there(s, s);
    ScalarVariable reading = k_.variable(k_.constant(u32, 0, ring_.at), ring_.at),
                   writing = k_.variable(k_.constant(u32, stages - 1, ring_.at), ring_.at);
    // After it, everyone has finished with the stage that is filled next.
    const auto come_to_stage = [&] {
      wait(stages - 2);
      if (ring_.ahead) ring_.ahead(reading);
    };
    if (ring_.ahead) k_.when(Scalar(0) < ring_.count, come_to_stage, ring_.at);
    const auto step = [&](const Scalar& t) {
      if (!ring_.ahead) come_to_stage();
      fill_if_there(t + (stages - 1), writing);
      detail::use_stage(state_, ring_, t, reading, [&](bool) {
        reading = next_stage(reading, stages);
        writing = next_stage(writing, stages);
        if (ring_.ahead) k_.when(t + 1 < ring_.count, come_to_stage, ring_.at);
      });
    };
    detail::each_step(k_, ring_, step);
    wait(0);
  }

  void fill_if_there(const Scalar& t, const Scalar& stage) {
    k_.when(
        t < ring_.count, [&] { fill(t, stage); }, ring_.at);
    state_.at(ring_.at);
    filler_.commit();
  }

  // This thread's copies are done, except those of `pending` stages; after the barrier, everyone's.
  void wait(int pending) {
    state_.at(ring_.at);
    filler_.wait(pending);
    k_.barrier(ring_.at);
  }

  Builder& k_;
  KernelState& state_;
  const detail::Stages& ring_;
  Filler filler_;
};

using Fill = std::function<void(Scalar, Scalar)>;
using Ahead = std::function<void(Scalar)>;
using Use = std::function<void(Scalar, Scalar, const std::function<void()>&)>;

// The count of a pipeline. In place of one that is refused it is one of which nothing is known: the
// callbacks' own mistakes count too.
Scalar checked_count(Builder& k, KernelState& state, const Scalar& count, Here at) {
  constexpr std::string_view what = "the count of a pipeline";
  if (!state.is_index(count, what)) return k.blocks_x(at);
  const std::int64_t number = count.constant().value_or(0);
  if (number >= 0 || (count.type() != Type::none && info(count.type()).is_signed)) return count;
  state.log.report("immediate-range"_rule,
                   fmt::format("{}: expected 0 or more, found {}", what, number));
  return k.blocks_x(at);
}

void describe(Builder& k, KernelState& state, int stages, const Scalar& count, const Fill& fill,
              const Ahead& ahead, const Use& use, Here at, detail::PipelineKind kind) {
  state.at(at);
  if (!state.has_body(fill && use, "a pipeline")) return;
  constexpr int most = 256;
  if (stages < 1 || stages > most)
    return state.log.report(
        "operand-count"_rule,
        fmt::format("pipeline stages: expected 1 to {}, found {}", most, stages));
  const Scalar counted = checked_count(k, state, count, at);
  const detail::RoleState& roles = state.roles;
  const bool ping_pong = kind == detail::PipelineKind::ping_pong;
  detail::CommonRing* const common = ping_pong ? detail::next_ring(state, stages) : nullptr;
  if (ping_pong && !common) return;
  const int number = common ? detail::StageChecks::role_pipeline(common->pipeline)
                     : roles.current == detail::Role::all
                         ? state.stages.begin_pipeline()
                         : detail::StageChecks::role_pipeline(roles.pipelines.size());
  const detail::Stages ring{stages, counted, fill, ahead, use, at, number, state.conditions, kind};
  if (roles.current != detail::Role::all) detail::role_pipeline(state, ring, common);
  else CommonPipeline(k, state, ring).run();
}

// Whether warpgroups can run a pipeline in turn; reports if not.
bool may_turn(KernelState& state, const PipelineOptions& options, bool has_ahead) {
  if (!detail::may_ping_pong(state)) return false;
  if (!options.peel_first && !has_ahead) return true;
  state.log.report(
      "kernel-option"_rule,
      fmt::format("{}: expected no {}; warpgroups that run a pipeline in turn describe use once, "
                  "for stages that have arrived",
                  detail::turns_call, has_ahead ? "ahead callback" : ".peel_first"));
  return false;
}

}  // namespace

void Builder::pipeline(const PipelineOptions& options, const Scalar& count, const Fill& fill,
                       const std::function<void(Scalar, Scalar)>& use, Here at) {
  state_->at(at);
  if (!state_->has_body(use != nullptr, "a pipeline")) return;
  pipeline(
      options, count, fill, nullptr,
      [&](Scalar t, Scalar stage, const std::function<void()>&) { use(t, stage); }, at);
}

void Builder::pipeline(const PipelineOptions& options, const Scalar& count, const Fill& fill,
                       const Ahead& ahead, const Use& use, Here at) {
  state_->at(at);
  if (options.turns && !may_turn(*state_, options, ahead != nullptr)) return;
  describe(*this, *state_, options.stages, count, fill, ahead, use, at,
           options.turns        ? detail::PipelineKind::ping_pong
           : options.peel_first ? detail::PipelineKind::peeled
                                : detail::PipelineKind::uniform);
}

}  // namespace tartan::TARTAN_ABI
