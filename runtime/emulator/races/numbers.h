// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/numbers.h - who accesses memory, as one number in the grid.
//
// A warp's lanes are threads. What they have done asynchronously is done by threads of its own, and
// so are the phases of an mbarrier: a copy that completes there is over when its phase is. A
// cluster takes a span of numbers, one stretch for each kind of actor.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// Kinds of actors, one of a warp each, but for mbarriers.
enum class Actor : std::uint8_t {
  thread,
  cp_async,
  bulk_read,      // what copies of a bulk group take
  bulk_write,     // and what they write
  init,           // mbarrier.init and mbarrier.inval
  product,        // wgmma: of a warpgroup's first warp
  fenced_shared,  // not an actor: what of `thread` a proxy fence has covered, in shared memory
  fenced_global,
  tensor_load,  // tcgen05.ld and .st, of a whole warp: these in kernels that use tensor memory
  tensor_store,
  tensor_core,  // what a lane has issued to it
  fenced_load,  // not actors: what of these three tcgen05.fence::before_thread_sync has covered
  fenced_store,
  fenced_core,
  mbarrier
};

/// One access: who did it, when.
struct Epoch {
  std::uint32_t warp = 0;  // number in the grid
  std::uint32_t time = 0;  // 0: never
  std::uint32_t lane = 0;
};

struct Numbers {
  std::uint32_t blocks = 1, warps_per_block = 1;
  std::uint32_t mbarriers = 0;  // of a cluster, that are looked at
  std::uint32_t kinds = static_cast<std::uint32_t>(Actor::mbarrier);  // of actors of a warp

  std::uint32_t warps() const { return blocks * warps_per_block; }
  std::uint32_t span() const { return kinds * warps() + mbarriers; }
  std::uint32_t first(std::uint32_t cluster) const { return cluster * span(); }
  std::uint32_t distance(Actor actor) const {
    return (actor == Actor::mbarrier ? kinds : static_cast<std::uint32_t>(actor)) * warps();
  }

  std::uint32_t cluster(std::uint32_t number) const { return number / span(); }
  Actor actor(std::uint32_t number) const {
    const std::uint32_t kind = number % span() / warps();
    return kind < kinds ? static_cast<Actor>(kind) : Actor::mbarrier;
  }
  /// The warp in its cluster; not of mbarriers.
  std::uint32_t warp(std::uint32_t number) const { return number % span() % warps(); }
  std::uint32_t rank(std::uint32_t number) const { return warp(number) / warps_per_block; }
  std::uint32_t mbarrier(std::uint32_t number) const { return number % span() - kinds * warps(); }
  /// Of the launch before, where it may still run: of no cluster, and of no kind of actor.
  std::uint32_t predecessor() const { return ~std::uint32_t{0} / span() * span() - 1; }
  /// The number of another kind of actor of the same warp.
  std::uint32_t as(Actor actor, std::uint32_t number) const {
    return first(cluster(number)) + distance(actor) + warp(number);
  }
};

}  // namespace tartan::TARTAN_ABI::emulator
