// SPDX-License-Identifier: Apache-2.0
// tests/dsl/register_sweep.h - configurations of kernels as lines of text:
//
//   gemm sm_90a a=e4m3 sums=f32 c=f32 tile=128x256x64 warps=8x1 stages=2 producers=4 promote=4
//   attention sm_80 type=f16 head=64 queries=128 keys=64 warps=4 stages=2 producers=0 causal
//
// What the assembler said of each is in tests/data/registers.txt.
#pragma once

#include <tartan/tartan.h>

#include <string>
#include <vector>

namespace tartan::test {

/// The assembler's verdict on a kernel.
struct Registers {
  bool refused = false;       // C7602: wgmma needs more registers than a thread has
  int used = 0, spilled = 0;  // spilled: bytes of stores
};

struct RegisterRow {
  std::string configuration, target;
  Kernel kernel;
  Registers recorded;
};

/// Rows of a file, "CONFIGURATION -> 168 registers, 0 bytes" or "CONFIGURATION -> refused"; lines
/// that begin with # are comments. A malformed one is a failure of the test.
std::vector<RegisterRow> register_rows(const std::string& path);

}  // namespace tartan::test
