// SPDX-License-Identifier: Apache-2.0
// bench/latency/passes.h - what one process measures: a kernel's way from its description, or from
// CUDA C++, to its first result, twice.
#pragma once

#include <string>
#include <vector>

#include "bench/latency/subject.h"

namespace latency {

struct Pass {
  /// To a loaded kernel. NVRTC's way to PTX or a cubin counts as `generate`.
  tartan::StepTimes steps;
  double result = 0;  // microseconds from the launch to its end
  double all = 0;     // microseconds in all, also what is in no step
};

/// Two passes in this process, through one Loader. The device and the problem's buffers are there
/// before.
tartan::Result<std::vector<Pass>> tartan_passes(const Subject& subject, tartan::Device& device,
                                                const tartan::Cache& cache);
/// `target`: "compute_80" for PTX, "sm_80" for a cubin.
tartan::Result<std::vector<Pass>> nvrtc_passes(const Subject& subject, tartan::Device& device,
                                               const std::string& path, const std::string& target);

}  // namespace latency
