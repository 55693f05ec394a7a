// SPDX-License-Identifier: Apache-2.0
#include "tartan/support/times.h"

#include <chrono>
#include <utility>

#include "compiler/support/step_timer.h"

namespace tartan::TARTAN_ABI {
namespace {

using Clock = std::chrono::steady_clock;

// The step that a thread is in, and who counts it.
struct Running {
  StepTimes* times = nullptr;
  double StepTimes::*step = nullptr;
  Clock::time_point since = {};

  // Charges the time until now to the step.
  void settle() {
    if (!times) return;
    const auto now = Clock::now();
    if (step) times->*step += std::chrono::duration<double, std::micro>(now - since).count();
    since = now;
  }
};
thread_local Running running;

}  // namespace

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  for (const auto step : {&StepTimes::describe, &StepTimes::generate, &StepTimes::verify,
                          &StepTimes::cache, &StepTimes::assemble, &StepTimes::load})
    this->*step += other.*step;
  return *this;
}

StepClock::StepClock(StepTimes& times) : times_(times) {
  running.settle();
  outer_ = std::exchange(running.times, &mine_);
  outer_step_ = std::exchange(running.step, nullptr);
}

StepClock::~StepClock() {
  running.settle();
  times_ += mine_;
  if (outer_) *outer_ += mine_;
  running.times = outer_;
  running.step = outer_step_;
}

namespace detail {

StepTimer::StepTimer(double StepTimes::*step) {
  running.settle();
  outer_ = std::exchange(running.step, step);
}

StepTimer::~StepTimer() {
  running.settle();
  running.step = outer_;
}

}  // namespace detail

}  // namespace tartan::TARTAN_ABI
