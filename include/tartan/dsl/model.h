// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/model.h - what the compiler makes of a kernel, for those who choose among
// configurations without compiling each: registers, unrolling, exchanged memory.
//
//   const auto budget = model::ThreadBudget::of({.block = 256, .producers = 4}, target);
//   const bool spills = accumulators + 20 > budget.consumers;
//   const bool loops = model::copies_in_loop(128 * 128 / 16, 256);     // 128 rows of 128 bytes
#pragma once

#include <cstdint>

#include "tartan/dsl/kernel.h"
#include "tartan/dsl/tiled_mma.h"
#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::model {

/// The threads of a CTA, and the registers that each has: where producers and consumers are whole
/// warpgroups, on sm_90a, setmaxnreg moves some from those to these (PTX ISA 9.0, 9.7.19.5).
struct ThreadBudget {
  int threads = 0;     // of a CTA, those of producers included
  int at_start = 0;    // registers of each thread where the kernel starts, at most 255
  int consumers = 0;   // of each consumer, or of each thread without producers, after setmaxnreg
  bool moves = false;  // whether there is setmaxnreg

  /// Of a kernel with these options. Options that the target lacks count as compile() takes them:
  /// before sm_80 there are no producers.
  static ThreadBudget of(const KernelOptions& options, const Target& target);
};

/// Accesses of a thread to a tile that Builder::copy() unrolls. More become a loop, which takes
/// about twice as long for each of them that waits for its loads.
inline constexpr int unrolled_accesses = 16;

/// Whether so many accesses to a tile are more than `threads` unroll.
constexpr bool copies_in_loop(double accesses, double threads) {
  return accesses > unrolled_accesses * threads;
}

/// A pipeline of more stages, between producers and consumers, releases a stage when the products
/// of the next one have been issued, not when its own are complete. That takes a stage from the
/// loads: of three to five, it costs more than it gains. A CTA's only warpgroup, whose waits
/// nothing hides, is up to 1.2 times as fast, two and three 1 %. Not where the description says
/// with next() that it has read its stage: block-scaled products, whose next one waits for this
/// one's promotion, took 1.3 times as long. Peeled pipelines, whose callbacks overlap products with
/// arithmetic, were not measured.
inline constexpr int most_prompt_stages = 5;

/// Whether Builder::block_tile() orders `count` clusters of `down` x `across` CTAs by GPC: those in
/// a line, which share one operand by multicast, where all run at the same time on sm_90. A GPC
/// reads a line from the second-level cache once for all of its CTAs that ask for it at the same
/// time (not by multicast), but clusters go to the GPCs in turn.
bool ordered_by_gpc(Arch arch, int down, int across, std::int64_t count);

/// Bytes of shared memory through which the `ctas` CTAs of a cluster exchange a tile of f32 in
/// reduce_scatter(), of `room` bytes that are left: in parts, or all at once. 0: of one CTA, or of
/// a tile whose warps have less than a fragment of 8 columns.
std::int64_t exchange_bytes(const Tile& tile, int ctas, std::int64_t room);

}  // namespace tartan::TARTAN_ABI::model
