// SPDX-License-Identifier: Apache-2.0
// bench/latency/nvrtc.h - NVIDIA's run-time compiler, if this machine has it.
#pragma once

#include <string>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace latency {

class Nvrtc {
 public:
  /// Loads `path`; empty: libnvrtc where the system's loader looks, then below CUDA_HOME and
  /// /usr/local/cuda.
  static tartan::Result<Nvrtc> open(const std::string& path);

  std::string version() const;  // "13.0"
  /// What becomes of the source for "compute_80" (PTX) or "sm_80" (a cubin).
  tartan::Result<std::string> compile(const char* source, const std::string& target) const;

 private:
  explicit Nvrtc(void* library) : library_(library) {}
  void* library_;
};

}  // namespace latency
