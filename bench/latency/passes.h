// SPDX-License-Identifier: Apache-2.0
// bench/latency/passes.h - what one process measures: a kernel's way from its description, or from
// CUDA C++, to its first result, twice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/latency/subject.h"

namespace latency {

/// Milliseconds of each step.
struct Pass {
  double code = 0;    // to PTX, or to a cubin
  double load = 0;    // to a loaded kernel
  double result = 0;  // from the launch to its end
  double total() const { return code + load + result; }
};

/// Two passes in this process, through one Loader. The device and the problem's buffers are there
/// before.
tartan::Result<std::vector<Pass>> tartan_passes(const Subject& subject, tartan::Device& device,
                                                const tartan::Cache& cache);
/// `target`: "compute_80" for PTX, "sm_80" for a cubin.
tartan::Result<std::vector<Pass>> nvrtc_passes(const Subject& subject, tartan::Device& device,
                                               const std::string& path, const std::string& target);

}  // namespace latency
