// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/pipeline.h - options of Builder::copy() and Builder::pipeline(): which CTAs of a
// cluster a copy serves, what L2 keeps of it, and how the mainloop is described.
//
//   const auto fill = [&](Scalar t, Scalar stage) {
//     k.copy(A.tile(tile.m, tile.k, row, t), sA[stage], {.evict = Evict::last});
//     k.copy(B.tile(tile.k, tile.n, t, col), sB[stage], {.multicast = Among::column});
//   };
//   k.pipeline({.stages = 4, .peel_first = true}, steps, fill, use);
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// Which CTAs of a cluster need a tile: only this one, all, or those whose tiles of the result are
/// in the same row or column of the cluster (KernelOptions::cluster_columns).
enum class Among : std::uint8_t { none, cluster, row, column };

/// Which lines L2 evicts first: those that no CTA reads again, or last: those that all CTAs read
/// (PTX ISA 9.0, 9.7.9.2, "Cache Eviction Priority Hints").
enum class Evict : std::uint8_t { normal, first, last };

/// What a copy to shared memory is beside its tile.
struct CopyOptions {
  /// CTAs that need the same tile, for the same stage: each loads its share of it by TMA multicast,
  /// so that they read it once. Only in the fill callback of a pipeline; those CTAs must fill the
  /// same number of stages. Elsewhere, and before sm_90 and PTX 8.0, each CTA copies for itself.
  Among multicast = Among::none;
  /// A hint to L2 about what the copy reads. Copies by TMA pass it on; others have none.
  Evict evict = Evict::normal;
};

/// How Builder::pipeline() runs the mainloop.
struct PipelineOptions {
  int stages = 1;  // 1 to 256: matrices of each ring
  /// Loop peeling: `use` is described twice, for t = 0 as a constant, then for all others. What
  /// begins with the first k-tile, such as a sum, needs neither zeros nor a branch in the loop;
  /// the code is twice as long.
  bool peel_first = false;
};

}  // namespace tartan::TARTAN_ABI
