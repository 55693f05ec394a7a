// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/pipeline.h - options of Builder::copy() and Builder::pipeline(): which CTAs of a
// cluster a copy serves, what L2 keeps of it, and how the mainloop is described.
//
//   const auto fill = [&](Scalar t, Scalar stage) {
//     k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage], {.evict = Evict::last});
//     k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage], {.multicast = Among::column});
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
  /// the code is twice as long. A sum that began in no k-tile, where the count is 0, is what it
  /// was.
  ///   k.when(t == 0, [&] { mma.multiply(sum, a, b); }, [&] { mma.add(sum, a, b); });
  bool peel_first = false;
  /// Ping-pong: warpgroups run the mainloop in turn, on one ring. A call in the body of
  /// Builder::warpgroups(), inside roles(), is a turn. Producers fill the ring for the turns in
  /// their order, so that the next turn's first stages arrive during this one. A turn passes on
  /// once its last product has been issued: the tensor cores have work while this warpgroup waits
  /// for its accumulators and stores them. warpgroups() has an example.
  ///
  /// It pays where storing takes a good part of a tile's time: a large C and a short k. Where k is
  /// long, let the warpgroups compute one larger tile together, which reads less.
  ///
  /// Turns follow one another as those of in_turn(). They may differ in `count`, 0 included. All
  /// warpgroups, of which there are at least two, have as many calls in their bodies, with as many
  /// stages, and fill them by the same means (TMA, copies of threads). Neither an `ahead` callback
  /// nor peel_first goes with it. From sm_80 on: mbarriers (PTX ISA 9.0, 9.7.13.15) pass on the
  /// turn and the place in the ring.
  bool turns = false;
};

}  // namespace tartan::TARTAN_ABI
