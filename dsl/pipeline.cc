// SPDX-License-Identifier: Apache-2.0
// Rings of shared memory between copies and products.
#include "dsl/math.h"
#include "dsl/roles.h"

namespace tartan {
namespace {

using detail::KernelState;

// What `fill` copies goes by cp.async; targets before sm_80 have none, and copy at once.
class Filler {
 public:
  explicit Filler(KernelState& state) : state_(state), real_(state.target.arch.sm >= 80) {}

  void fill(const std::function<void()>& body) {
    state_.asynchronous = true;
    body();
    state_.asynchronous = false;
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

// t % stages, kept without a division.
Scalar next_stage(const Scalar& stage, int stages) {
  return select(stage == stages - 1, 0, stage + 1);
}

}  // namespace

void Builder::pipeline(int stages, const Scalar& count,
                       const std::function<void(Scalar, Scalar)>& fill,
                       const std::function<void(Scalar, Scalar)>& use, Here at) {
  state_->at(at);
  if (stages < 1)
    return state_->report("operand-count"_rule,
                          fmt::format("a pipeline has at least one stage, found {}", stages));
  if (state_->role != detail::Role::all)
    return detail::role_pipeline(*state_, stages, count, fill, use);
  Filler filler(*state_);
  state_->choose(fmt::format("pipeline of {} stages", stages),
                 state_->target.arch.sm >= 80 ? "cp.async groups, one a stage" : "plain copies",
                 stages > 1 ? fmt::format("{} tiles are on their way while one is used", stages - 1)
                            : "one stage: a tile is filled, then used");
  if (stages == 1) {
    loop(0, count, 1, [&](Scalar t) {
      filler.fill([&] { fill(t, 0); });
      filler.commit();
      filler.wait(0);
      barrier(at);
      use(t, 0);
      barrier(at);
    });
    return;
  }
  for (int s = 0; s < stages - 1; ++s) {
    when(
        Scalar(s) < count, [&] { filler.fill([&] { fill(s, s); }); }, at);
    filler.commit();
  }
  ScalarVariable reading = variable(constant(u32, 0, at), at),
                 writing = variable(constant(u32, stages - 1, at), at);
  loop(
      0, count, 1,
      [&](Scalar t) {
        // This thread's copies for t are done; behind the barrier everyone's are, and everyone has
        // finished with the stage that is filled next.
        filler.wait(stages - 2);
        barrier(at);
        const Scalar next = t + (stages - 1);
        when(
            next < count, [&] { filler.fill([&] { fill(next, writing); }); }, at);
        filler.commit();
        use(t, reading);
        reading = next_stage(reading, stages);
        writing = next_stage(writing, stages);
      },
      at);
  filler.wait(0);
  barrier(at);
}

Scalar Builder::constant(Type type, double value, Here at) {
  state_->at(at);
  if (!info(type).floating)
    return state_->scalar(state_->f().constant(type, static_cast<std::int64_t>(value)),
                          std::max<std::int64_t>(1, static_cast<std::int64_t>(value)),
                          static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  return state_->scalar(state_->f().constant(type, value));
}

ScalarVariable Builder::variable(const Scalar& initial, Here at) {
  state_->at(at);
  ScalarVariable out;
  out.state_ = state_;
  const bool bad = KernelState::is_bad(initial) || (KernelState::state_of(initial) &&
                                                    !state_->owns(initial, "the variable's value"));
  out.variable_ = state_->f().variable(bad ? state_->zero(u32) : state_->value(initial));
  return out;
}

ScalarVariable& ScalarVariable::operator=(const Scalar& value) {
  if (!state_ || !state_->function || KernelState::is_bad(value) ||
      (KernelState::state_of(value) && !state_->owns(value, "the value")))
    return *this;
  if (!value.constant() && value.type() != variable_.type) {
    state_->report("scalar-type"_rule,
                   fmt::format("the variable is a {}, found a value of type {}; convert() it",
                               name(variable_.type), name(value.type())));
    return *this;
  }
  state_->f().set(variable_, state_->value(value, variable_.type));
  return *this;
}

ScalarVariable::operator Scalar() const {
  if (!state_ || !state_->function) return KernelState::bad();
  return state_->scalar(state_->f().get(variable_));
}

}  // namespace tartan
