// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/kernels/probe.h - how fast an MMA instruction can be at all: registers only, many
// products that do not wait for each other.
#pragma once

#include <cstdint>
#include <string_view>

#include "tartan/dsl/builder.h"

namespace tartan::inline TARTAN_ABI::kernels {

/// Options of the throughput probe of one MMA.
struct Probe {
  int block = 256;       // threads
  int accumulators = 8;  // independent products of each warp, one behind the other
};

/// Runs the product `spelling` (mma, sparse or block-scaled too, or wmma.mma, with D of C's type)
/// in a loop: parameters rounds (s32) and out (b32 or b64: the first accumulator register of each
/// thread, all products added up, so that none of them is for nothing).
Kernel mma_probe(std::string_view spelling, const Probe& options = {});

/// Multiplications and additions that one launch does; 0 where there is no such instruction.
double probe_operations(std::string_view spelling, const Probe& options, std::int64_t blocks,
                        std::int64_t rounds);

}  // namespace tartan::inline TARTAN_ABI::kernels
