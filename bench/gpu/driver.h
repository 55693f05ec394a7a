// SPDX-License-Identifier: Apache-2.0
// bench/gpu/driver.h - what benchmarks ask of the CUDA driver beside launches: graphs, and the
// primary context for libraries in the same process. Found as the runtime finds it; without a
// driver, or with the emulator, there is none of it.
#pragma once

#include <functional>
#include <string>

#include "tartan/runtime/device.h"

namespace gpu {

class Driver {
 public:
  /// Makes the first GPU's primary context current for this thread.
  Driver();
  /// Of the first GPU; 0: not known.
  int multiprocessors() const { return multiprocessors_; }
  /// A launch of all that `work` puts on `stream`, as one graph; empty where that cannot be.
  std::function<void()> graph(const tartan::Stream& stream,
                              const std::function<void()>& work) const;

 private:
  void* library_ = nullptr;
  int multiprocessors_ = 0;
};

/// "580.159.03": the kernel module's version; empty where there is none.
std::string driver_version();

}  // namespace gpu
