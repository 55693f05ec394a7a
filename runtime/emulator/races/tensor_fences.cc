// SPDX-License-Identifier: Apache-2.0
// tcgen05.fence (PTX ISA 9.0, 9.7.16.6.3): what threads do to tensor memory is asynchronous, and a
// barrier or an mbarrier between two of them orders it where before_thread_sync stands in front of
// the one and after_thread_sync behind the other. Relaxed arrivals and waits order nothing else.
#include <bit>
#include <span>
#include <utility>

#include "runtime/emulator/machine/block.h"
#include "runtime/emulator/races/thread_clocks.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::pair<Actor, Actor> moved_actors[] = {{Actor::tensor_load, Actor::fenced_load},
                                                    {Actor::tensor_store, Actor::fenced_store}};

}  // namespace

void ThreadClocks::fence_tensor_before(const Warp& warp, std::uint32_t lanes) {
  WarpState& mine = state(warp);
  each_group(mine, lanes, [&](Group& group) {
    VectorClock own = fresh();
    for (const auto& [actor, fenced] : moved_actors) {
      const GroupsOfLanes& all = mine.asynchronous[place_of(actor)];
      for (std::uint32_t m = all.empty() ? 0 : group.lanes; m; m &= m - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
        own.raise(number(warp, actor), 1u << lane, all[lane].waited);
        own.raise(number(warp, fenced), 1u << lane, all[lane].waited);
      }
    }
    own.raise(number(warp, Actor::fenced_core), group.lanes, mine.time);
    join_tensor(own, group.now);
    join_tensor(group.now, own);
    const Knowledge told = own.knowledge();
    for (Fence& each : std::span(group.before, static_cast<std::size_t>(Scope::cluster) + 1))
      each.known.join(told);
    group.fenced = true;
  });
  ++mine.time;
}

void ThreadClocks::fence_tensor_after(const Warp& warp, std::uint32_t lanes) {
  each_group(state(warp), lanes, [&](Group& group) {
    for (const Knowledge& each : group.seen) {
      if (each.times.empty()) continue;
      VectorClock told = fresh();
      told.join(each);
      join_tensor(told, group.now);
    }
    group.tensor = group.now;
  });
}

bool ThreadClocks::fenced_after(const Warp& warp, std::uint32_t lanes, const Epoch& epoch) const {
  for (const Group& group : warps_[index(warp)].groups)
    if (group.lanes & lanes && group.tensor.knows(epoch)) return true;
  return false;
}

void ThreadClocks::join_tensor(const VectorClock& from, VectorClock& to) const {
  constexpr Actor kinds[] = {Actor::tensor_load, Actor::tensor_store, Actor::tensor_core,
                             Actor::fenced_load, Actor::fenced_store, Actor::fenced_core};
  for (const Actor actor : kinds)
    for (std::uint32_t i = 0; i < numbers_.warps(); ++i) {
      const std::uint32_t number = first_ + numbers_.distance(actor) + i;
      const LaneTimes* const times = from.find(number);
      if (!times || times->nothing()) continue;
      to.raise(number, ~0u, times->least());
      for (std::uint32_t lane = 0; lane < 32; ++lane)
        if ((*times)[lane] > times->least()) to.raise(number, 1u << lane, (*times)[lane]);
    }
}

}  // namespace tartan::TARTAN_ABI::emulator
