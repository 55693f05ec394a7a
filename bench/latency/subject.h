// SPDX-License-Identifier: Apache-2.0
// bench/latency/subject.h - the kernels whose latency is measured: how to describe one, how to
// launch it on a small problem, and what must come out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tartan/tartan.h"

namespace latency {

/// A small problem on a device.
struct Problem {
  tartan::Arguments arguments;
  std::vector<tartan::Buffer> buffers;  // that the arguments are
  /// Whether the result is right; to be asked when the launch is done.
  std::function<bool()> is_right;
};

/// CUDA C++ that computes the same.
struct CudaKernel {
  const char* name = nullptr;
  const char* source = nullptr;
  tartan::Launch launch = {};
};

struct Subject {
  std::string name;  // "gemm"
  tartan::Arch arch;
  std::function<tartan::Kernel()> kernel;
  tartan::Dim3 grid;
  std::function<tartan::Result<Problem>(tartan::Device&)> problem;
  CudaKernel cuda = {};  // no source: none computes the same with the same instructions
  std::string title() const { return name + ", " + arch.text(); }
};

const std::vector<Subject>& subjects();

}  // namespace latency
