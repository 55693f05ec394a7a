// SPDX-License-Identifier: Apache-2.0
// dsl/kernels/gemm_cost.h - what a configuration of gemm() costs on a GPU: the model by which
// tuned() chooses. Not installed.
//
//   const GemmCost cost = gemm_cost(options, target, *find_gpu(target.arch));
//
// The model counts cycles. A multiprocessor computes its tiles in rounds of as many CTAs as fit on
// it. In each k-tile of a round, tensor cores, shared memory, loads and the latency of loads take
// their time side by side, and the longest counts. Prologue and epilogue come on top. All
// multiprocessors together cannot exceed the bandwidth of the second-level cache and of memory. The
// constants were fitted to a recording of bench/gpu_regret; see docs/performance.md.
#pragma once

#include <span>

#include "tartan/dsl/kernels/gemm.h"

namespace tartan::inline TARTAN_ABI::detail {

/// A GPU in the model. Rates are per cycle of its multiprocessors.
struct GpuRow {
  const char* name;
  int sm;                // the architecture that it stands for, and those after it in the table
  int multiprocessors;   // SMs
  int shared_bytes;      // of an SM, for all of its CTAs
  int cache_bytes;       // of the second level
  double clock;          // GHz
  double mma, wgmma;     // multiply-adds of 16-bit elements of an SM; wgmma 0: none
  double cache, memory;  // bytes of the whole GPU
  double loads;          // bytes that one SM loads at most
  double latency;        // cycles of a load from memory
};
/// The GPU of an architecture; of unknown ones the nearest older one. Null before sm_80.
const GpuRow* find_gpu(Arch arch);
std::span<const GpuRow> gpus();

/// Constants of the model, in cycles where nothing else is said: what the table of GPUs does not
/// tell. The same for all GPUs.
struct GemmConstants {
  double launch = 2500;         // of an empty kernel
  double second_launch = 2500;  // of the reduction after split-K and stream-K
  double prologue = 1200;       // of a CTA, beside the latency of its first loads
  double epilogue = 1500;       // of a tile
  double store = 24;            // bytes of C per cycle and SM
  double store_lanes = 10;      // the same where lanes store their elements
  double between = 3000;        // of a persistent CTA, between two tiles
  double wgmma_wait = 60;       // of a k-tile: a warpgroup that waits for its own products
  double mma_wait = 100;        // the same for mma.sync, without producers
  double producer_wait = 60;    // with
  double wgmma_share = 0.95;    // of the tensor cores' rate
  double mma_share = 0.88;
  double shared = 128;         // bytes of shared memory per cycle
  double straddle = 1.5;       // times the loads, if rows start off 128-byte lines
  double copy = 6;             // of each access of a warp that threads make to fill a stage
  double copy_elements = 16;   // the same where each element takes an access
  double cluster_wait = 60;    // of a k-tile, for the other CTA
  double memory_share = 0.85;  // of the bandwidth
  double cache_share = 0.75;
  double reuse = 0.6;  // of the second-level cache, that keeps operands
  double norm = 4;     // of the limits side by side: a high one takes the maximum
};
const GemmConstants& gemm_constants();

struct GemmCost {
  double cycles = 0;
  // Parts, for a look at the model: what one multiprocessor takes, and the two limits of all.
  double multiprocessor = 0, cache = 0, memory = 0;
  double fixed = 0;  // launches, prologue and epilogue
};
/// Sizes of 0 count as 4096 rows and columns, and a k of 4096.
GemmCost gemm_cost(const kernels::Gemm& options, const Target& target, const GpuRow& gpu,
                   const GemmConstants& constants = gemm_constants());

/// How the kernel multiplies and copies.
bool by_wgmma(const kernels::Gemm& options, const Target& target);
bool by_tma(const kernels::Gemm& options, const Target& target);
/// Bytes of shared memory of a CTA, without what stages C; a bound for what that may add is 2 KB.
std::int64_t shared_bytes(const kernels::Gemm& options);
/// 32-bit registers of the accumulators of a thread, and those that a thread has.
int accumulators(const kernels::Gemm& options);
int thread_registers(const kernels::Gemm& options, const Target& target);

}  // namespace tartan::inline TARTAN_ABI::detail
