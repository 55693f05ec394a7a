// SPDX-License-Identifier: Apache-2.0
// tartan/runtime/trace.h - the timeline of a launch on a GPU, from timestamps that the kernel
// writes.
//
//   auto text = ptx::traced(compiled->ptx);             // any PTX, with timestamps
//   auto module = device.load(text->text);
//   auto kernel = module->kernel("gemm");
//   Timeline timeline;
//   auto trace = Trace::start(device, *module, *text, "gemm", launch, timeline.limits());
//   ...                                                 // launch, device.synchronize()
//   Status added = trace->add_to(timeline);
//   write_file("timeline.json", timeline.json());
//
// A kernel that was compiled with KernelOptions::trace has timestamps: pass {.text =
// compiled->ptx}.
//
// Time is in nanoseconds from the launch's first instruction: the SM's cycle counter, and between
// SMs the GPU's timer, which advances in steps. Writing timestamps takes time, too: a timeline says
// where time goes, and a kernel without timestamps is faster.
#pragma once

#include <cstdint>
#include <string>

#include "tartan/ptx/trace.h"
#include "tartan/runtime/device.h"
#include "tartan/runtime/timeline.h"

namespace tartan::TARTAN_ABI {

/// Memory for the timestamps of one launch. Launches of the module write into it until it is
/// destroyed, or another one is started.
class Trace {
 public:
  /// `module` is loaded from `text`, and `launch` is what the launch of `kernel` will be. The
  /// memory is about 64 MiB, for the CTAs that `limits` keeps, and bounds the number of events; a
  /// thread has at most 4096 records. TimelineLaunch::left_out counts those that did not fit, and
  /// events beyond those that the timeline keeps.
  static Result<Trace> start(Device& device, const Module& module, const ptx::Traced& text,
                             const std::string& kernel, const Launch& launch,
                             const TimelineLimits& limits = {});
  ~Trace();
  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) = delete;

  /// Once the launch has finished: what it wrote.
  Status add_to(Timeline& timeline) const;

 private:
  Trace() = default;
  Buffer variable_, records_;
  ptx::Traced text_;
  std::string kernel_, device_;
  Launch launch_;
  std::uint32_t ctas_ = 0, cluster_ = 1, records_of_thread_ = 0;
  bool owner_ = false;
};

}  // namespace tartan::TARTAN_ABI
