// SPDX-License-Identifier: Apache-2.0
// bench/gpu/driver.h - further functions of the CUDA driver for benchmarks: graphs, and the primary
// context for libraries in the same process. Found like the runtime's driver; without a driver, or
// with the emulator, they are unavailable.
#pragma once

#include <functional>
#include <string>

#include "tartan/runtime/device.h"

namespace gpu {

class Driver {
 public:
  /// Makes the first GPU's primary context current for this thread.
  Driver();
  /// Of the first GPU; 0: unknown.
  int multiprocessors() const { return multiprocessors_; }
  /// A launch of all work that `work` enqueues on `stream`, as one graph; empty if impossible.
  std::function<void()> graph(const tartan::Stream& stream,
                              const std::function<void()>& work) const;

 private:
  void* library_ = nullptr;
  int multiprocessors_ = 0;
};

/// "580.159.03": the kernel module's version; empty if none.
std::string driver_version();

}  // namespace gpu
