// SPDX-License-Identifier: Apache-2.0
// kernels/tuner/gemm_cost.h - what a configuration of gemm() costs on a GPU: the model by which
// tuned() chooses. Not installed.
//
//   const GemmCost cost = gemm_cost(options, target, *isa::find_gpu(target.arch));
//
// The model counts cycles. A multiprocessor computes its tiles in rounds of as many CTAs as fit on
// it. In each k-tile of a round, tensor cores, shared memory, loads and the latency of loads take
// their time side by side, and the longest counts. Prologue and epilogue come on top. All
// multiprocessors together cannot exceed the bandwidth of the second-level cache and of memory. The
// constants were fitted to recordings of bench/gpu_regret; see docs/choosing.md.
#pragma once

#include "kernels/gemm/gemm_resources.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// Constants of the model, in cycles where nothing else is said: what the table of GPUs does not
/// tell. The same for all GPUs.
struct GemmConstants {
  double launch = 84.96;         // of an empty kernel
  double direct = 261.1;         // of direct reads, before and after all steps
  double second_launch = 2063;   // of the reduction after split-K and stream-K
  double sum_share = 0.5552;     // of the bandwidth, for partial sums that are written and read
  double sum_wait = 770.6;       // of a thread of stream-K's reduction, for each part of an element
  double prologue = 292.7;       // of a CTA, beside the latency of its first loads
  double epilogue = 190.8;       // of a tile
  double convert = 14.88;        // of each accumulator of a thread, in the epilogue
  double store = 23.58;          // bytes of C per cycle and SM
  double store_swapped = 37.55;  // the same of a transpose whose elements lanes store
  double store_lanes = 10.69;    // the same where lanes store their elements
  double store_parts = 23.63;    // the same of partial sums
  double between = 158.1;        // of a persistent CTA, between two tiles
  double wave = 107.5;           // of CTAs that follow others on a multiprocessor
  double wave_of_four = 3000;    // the same of clusters of four or more: as many must be free
  double turn = 80.53;           // of a tile of warpgroups in turn, until the next one multiplies
  double turn_convert = 1.827;   // of each accumulator, where one warpgroup at a time converts
  double wgmma_wait = 7.536;     // of a k-tile: a warpgroup that waits for its own products
  double wgmma_alone = 64.54;    // the same of a CTA's only warpgroup, whose waits nothing hides
  double wgmma_behind = 37.43;   // the same where it releases stages late
  double mma_wait = 18.47;       // the same for mma.sync, without producers
  double producer_wait = 76.08;  // with
  double wgmma_share = 0.7972;   // of the tensor cores' rate
  double mma_share = 0.814;
  double power = 0.9063;    // times the share of each multiprocessor in all products by wgmma, at
                            // least: the more of them multiply, the lower is the clock
  double shared = 87.64;    // bytes of shared memory per cycle
  double filled = 0.2916;   // the share of what fills it that counts with what is read
  double fill = 94.74;      // bytes per cycle that an SM takes from the second-level cache, by TMA
  double fill_off = 1.674;  // times what fills it, if rows start within sectors
  double apart = 1.408;     // times the loads of clusters that divide k
  double apart_copied = 1.318;   // the same of threads that copy
  double together = 0.7757;      // the share that counts of what neighbours read together
  double straddle = 2.644;       // times a row's loads by TMA, if it starts off a 128-byte line
  double sectors = 0.9241;       // the share of that which is more, if it starts at a sector
  double copy_off = 2.791;       // times a row's loads by threads, if it starts off a 128-byte line
  double copy = 2.185;           // of each access of a warp that threads make to fill a stage
  double copy_elements = 0.648;  // the same of each load where each element takes one
  double copy_wait = 14.82;      // of a warp for each of its accesses; the warps take turns
  double word_loop = 2.054;      // times that, of more accesses of an operand than are unrolled
  double serial_wait = 1.239;    // the same of producers of wgmma, who wait for their own copies,
  double serial_line = 3.211;    // and of each line of 128 bytes
  double element_wait = 12.29;   // the same for elements, in batches
  double loop = 2.153;           // times that, of more words of an operand than are unrolled
  double few_wait = 60.14;       // the same of producers, whose batches are shorter
  double piece = 32;             // of each 16 bytes of a thread of a warp that reads lines
  double piece_wait = 51;        // of a warp for each of those
  double aligned = 312;          // of a k-tile whose rows are aligned
  double lines = 1.675;          // times a row's loads, if it is read line by line
  double clusters = 0.9073;      // times the cycles of CTAs that share what they read
  double clusters_on_lines = 0.97;  // the same where rows begin on lines
  double square = 1.03;             // the same of persistent CTAs that share both operands
  double tall = 1.02;               // the same of tiles of 256 rows, whose warpgroups have 128 each
  double cluster_launch = 837.1;    // of a launch in clusters that share what they read
  double launch_on_lines = 1674;    // the same where rows begin on lines
  double cluster_sum = 1349;        // of a launch in clusters that divide k, and the sum over them
  double cluster_part = 44.78;      // of that, for each part of k
  double cluster_bytes = 7.253;     // of accumulators per cycle, in that sum
  double memory_share = 1.955;      // of the bandwidth of memory; above 1 as that of the cache is
  double cache_share = 2.401;  // of the cache's; above 1, since limits that act together add up
  double reuse = 0.2764;       // of the second-level cache, that keeps operands
  double pieces = 2.075;       // times reading memory, by launches whose CTAs divide k
};
const GemmConstants& gemm_constants();

struct GemmCost {
  double cycles = 0;
  // Parts, for a look at the model: what one multiprocessor takes, and the two limits of all.
  double multiprocessor = 0, cache = 0, memory = 0;
  double fixed = 0;  // launches, prologue and epilogue
};
/// Sizes of 0 count as 4096 rows and columns, and a k of 4096.
GemmCost gemm_cost(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
                   const GemmConstants& constants = gemm_constants());
/// The same of Gemm::direct.
GemmCost direct_cost(const Gemm& options, const isa::GpuRow& gpu, const GemmConstants& c);

}  // namespace tartan::TARTAN_ABI::kernels::detail
