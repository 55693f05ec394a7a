// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/async_judge.h - the judge of accesses of one copy, or of those of a
// product by the same warps.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/races/detector.h"

namespace tartan::inline TARTAN_ABI::emulator {

/// Says of past accesses whether they are ordered before an asynchronous one, which begins with
/// what its issuer knows; and reports those that are not.
class ClusterRaces::AsyncJudge {
 public:
  AsyncJudge(ClusterRaces& races, Warp& warp, std::uint32_t lane, const AsyncAccess& access,
             const Place& place)
      : races_(races), warp_(warp), access_(access), place_(place), lane_(lane) {}

  bool after_write(const Past& past) {
    if (past.warp == last_.warp && past.time == last_.time &&
        past.deed.lane() == last_.deed.lane() && past.deed.strength() == last_.deed.strength())
      return after_last_;
    last_ = past;
    return after_last_ = knows(past) && is_visible(past);
  }
  bool after_read(const Past& past) const { return knows(past); }
  bool knows(const Past& past) const { return knows(past, past.warp); }
  bool all_ordered(const Past& past) const {
    return !access_.warps && races_.clocks_.all_know(warp_, 1u << lane_, past.warp, past.time);
  }
  bool settled(const Past& past, bool wrote) const { return !wrote && all_ordered(past); }
  bool both_strong(const Past& past) const {
    return access_.strong && races_.both_strong(past, warp_, *access_.strong);
  }
  bool reach(const Past& one, const Past& other) const { return races_.reach(one, other); }
  Extent extent() const { return {}; }  // elements of whatever size
  bool continues() const { return access_.strong.has_value(); }
  bool observes() const { return false; }
  std::uint32_t own() const { return ~0u; }  // it is no lane
  bool strangers(std::uint32_t one, std::uint32_t other) const {
    return races_.strangers(one, other);
  }
  void unordered(const Past& past, std::uint64_t cell, bool wrote) {
    Race race = races_.race_with(past, wrote, place_, cell);
    if (wrote && knows(past))
      race.kind = access_.map ? Race::Kind::unacquired : Race::Kind::unfenced;
    race.second = races_.side(access_.who.warp, warp_, lane_);
    race.second.writes = access_.writes;
    race.operand = access_.operand;
    races_.report(warp_, race);
  }

 private:
  // Whether the issuer knows of what `past` did, as the actor with that number.
  bool knows(const Past& past, std::uint32_t number) const {
    const auto of_lane = [&](std::uint32_t lane) { return knows({number, past.time, lane}); };
    if (!past.deed.collective()) return of_lane(past.deed.lane());
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      if (of_lane(lane)) return true;
    return false;
  }
  // Of a product, each of the warps that read must.
  bool knows(const Epoch& epoch) const {
    if (!access_.warps) return races_.clocks_.knows(warp_, lane_, epoch);
    const std::span<Warp> warps = warp_.block->warpgroup(warp_);
    for (std::size_t i = 0; i < warps.size(); ++i)
      if (access_.warps >> i & 1 && !races_.clocks_.some_know(warps[i], epoch)) return false;
    return true;
  }

  // What ordinary stores wrote: only behind a proxy fence.
  bool is_visible(const Past& past) const {
    const Numbers& numbers = races_.clocks_.numbers();
    if (access_.map) {
      const auto acquired = races_.maps_.find({warp_.block->rank(), access_.address});
      return acquired != races_.maps_.end() &&
             acquired->second.knows({past.warp, past.time, past.deed.lane()});
    }
    if (numbers.actor(past.warp) != Actor::thread) return true;
    return knows(
        past, numbers.as(place_.shared ? Actor::fenced_shared : Actor::fenced_global, past.warp));
  }

  ClusterRaces& races_;
  Warp& warp_;
  const AsyncAccess& access_;
  Place place_;
  std::uint32_t lane_;
  Past last_;  // that was asked for
  bool after_last_ = false;
};

}  // namespace tartan::inline TARTAN_ABI::emulator
