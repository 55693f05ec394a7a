// SPDX-License-Identifier: Apache-2.0
// compiler/support/step_timer.h - what a StepClock of this thread counts: a step of a kernel's way.
//
//   const StepTimer timer(&StepTimes::verify);   // until it goes; a step within it is apart
#pragma once

#include "tartan/support/times.h"

namespace tartan::TARTAN_ABI::detail {

class StepTimer {
 public:
  explicit StepTimer(double StepTimes::*step);
  ~StepTimer();
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  double StepTimes::*outer_;
};

}  // namespace tartan::TARTAN_ABI::detail
