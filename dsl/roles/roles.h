// SPDX-License-Identifier: Apache-2.0
// dsl/roles/roles.h - a pipeline between producers and consumers. Not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <utility>

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

/// How the k-tiles of a pipeline are described and run: all by one code; k-tile 0 by code of its
/// own; by warpgroups in turn.
enum class PipelineKind : std::uint8_t { uniform, peeled, ping_pong };

/// The arguments of Builder::pipeline().
struct Stages {
  int stages;
  const Scalar& count;
  const std::function<void(Scalar, Scalar)>& fill;
  const std::function<void(Scalar)>& ahead;
  const std::function<void(Scalar, Scalar, const std::function<void()>&)>& use;
  std::source_location at = {};  // of the call
  int pipeline = 0;              // for StageChecks
  int conditions = 0;            // of the user's, around it
  PipelineKind kind = PipelineKind::uniform;
};

/// `step` for each k-tile; of peeled ones for the first apart, as the constant 0.
void each_step(Builder& k, const Stages& stages, const std::function<void(const Scalar&)>& step);

/// Inside a callback for k-tile `t`, while it lives: what the callback may rely on.
class InCallback {
 public:
  InCallback(KernelState& state, const Stages& stages, const Scalar& t, const Scalar& stage,
             bool fills);
  ~InCallback() { state_.conditions = before_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  KernelState& state_;
  int before_;
  StageChecks::Scope scope_;
};

/// While it lives, producers are described amid what consumers do.
class AsProducer {
 public:
  explicit AsProducer(KernelState& state)
      : state_(state),
        begin_(std::exchange(state.roles.begin, state.roles.producers_begin)),
        partial_(std::exchange(state.partial, {})),
        in_flight_(state.flights.set_aside()) {
    state.roles.current = Role::producer;
  }
  ~AsProducer() {
    state_.roles.current = Role::consumer, state_.roles.begin = begin_;
    state_.partial = partial_;
    state_.flights.bring_back(std::move(in_flight_));
  }
  AsProducer(const AsProducer&) = delete;
  AsProducer& operator=(const AsProducer&) = delete;

 private:
  KernelState& state_;
  int begin_;
  Partial partial_;
  Flights::Variables in_flight_;
};

/// Describes a fill callback, while it lives.
class InFill {
 public:
  InFill(KernelState& state, Fill& fill)
      : state_(state), around_(std::exchange(state.fill, &fill)) {
    fill.depth = state.flights.depth();
  }
  ~InFill() { state_.fill = around_; }
  InFill(const InFill&) = delete;
  InFill& operator=(const InFill&) = delete;

 private:
  KernelState& state_;
  Fill* around_;
};

/// Consumes k-tile `t` in `stage`. `leave` runs when the description calls next() (`asked`), or
/// else after it.
void use_stage(KernelState& state, const Stages& stages, const Scalar& t, const Scalar& stage,
               const std::function<void(bool asked)>& leave);

/// Where roles() initializes mbarriers and prefetches tensor maps, if nothing has marked it yet: at
/// the first griddepcontrol_wait() outside of loops and conditions, or at roles().
void mark_prologue(KernelState& state);

/// griddepcontrol_wait() in a fill callback of producers divides it, where consumers have waited,
/// too: copies before it are issued ahead, for all stages that are free at first, and only those
/// after it wait. False anywhere else.
bool divides_fill(KernelState& state);

/// Both roles' parts of a pipeline, inside Builder::roles(). `ring`: that warpgroups have in
/// common.
void role_pipeline(KernelState& state, const Stages& stages, CommonRing* ring = nullptr);

}  // namespace tartan::TARTAN_ABI::detail
