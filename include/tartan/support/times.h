// SPDX-License-Identifier: Apache-2.0
// tartan/support/times.h - where the time goes between a kernel's description and the moment when
// it can be launched: microseconds of each step.
//
//   StepTimes times;
//   {
//     const StepClock clock(times);   // until it goes, the steps of this thread are added up
//     compiled = compile(product, device.arch(), cache);
//     module = device.load(compiled->ptx);
//   }
//   fmt::print("LLVM {} us, the driver {} us\n", times.generate, times.assemble);
//
// A Loader (tartan/load.h) keeps the times of each kernel with it: ReadyKernel::times.
#pragma once

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// Microseconds of the host's wall-clock time in each step; 0 of a step that was not taken. No
/// moment is in two steps: what the cache takes within a step is the cache's.
struct StepTimes {
  double describe = 0;  // the kernel's function runs, and LLVM IR is made of its calls
  double generate = 0;  // LLVM: passes, selection of instructions, printing
  double verify = 0;    // the PTX is parsed back and checked
  double cache = 0;     // entries are found, read, packed and written
  double assemble = 0;  // the driver's assembler, and with Device::load() of PTX what else the
                        // driver does in the same call
  double load = 0;      // machine code to the GPU, and finding the kernel in it; on the emulator
                        // parsing and decoding the PTX
  double total() const { return describe + generate + verify + cache + assemble + load; }
  StepTimes& operator+=(const StepTimes& other);
};

/// As long as it lives, adds to a StepTimes what each step of its thread takes: those of compile(),
/// of a Loader, a Cache, Device::load() and assemble(), Module::kernel(). It goes on the thread
/// that made it. Of two on a thread, the inner one's times are added to the outer one's when it
/// goes.
class StepClock {
 public:
  explicit StepClock(StepTimes& times);
  ~StepClock();
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;

 private:
  StepTimes& times_;
  StepTimes mine_;
  StepTimes* outer_ = nullptr;               // of the clock that goes on when this one goes
  double StepTimes::*outer_step_ = nullptr;  // the step in which this one began
};

}  // namespace tartan::TARTAN_ABI
