// SPDX-License-Identifier: Apache-2.0
// bench/gpu/probe.h - the peak throughput of an MMA instruction: registers only, many
// independent products.
#pragma once

#include <cstdint>
#include <string_view>

#include "tartan/dsl/builder.h"

namespace gpu {

/// Options of the throughput probe of one MMA.
struct Probe {
  int block = 256;       // threads
  int accumulators = 8;  // independent products of each warp, issued in turn
};

/// Issues the product `spelling` (mma, also sparse or block-scaled, or wmma.mma, with D of C's
/// type) in a loop. Parameters: rounds (s32) and out (b32 or b64), which gets the sum of all
/// products: the first accumulator register of each thread. The store keeps the compiler from
/// removing products.
tartan::Kernel mma_probe(std::string_view spelling, const Probe& options = {});

/// Multiplications and additions of one launch; 0 if there is no such instruction.
double probe_operations(std::string_view spelling, const Probe& options, std::int64_t blocks,
                        std::int64_t rounds);

}  // namespace gpu
