// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/async_judge.h - the judge of accesses of one copy, or of those of a
// product by the same warps.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/races/detector.h"

namespace tartan::TARTAN_ABI::emulator {

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
    after_last_ = knows(past) && is_visible(past);
    if (after_last_) races_.note_use(warp_, past, place_);
    return after_last_;
  }
  bool after_read(const Past& past) const {
    return knows(past) && (!crosses_proxies(past) || knows(past, fenced(past)));
  }
  bool knows(const Past& past) const { return knows(past, past.warp); }
  bool all_ordered(const Past& past) const { return all_ordered(past, past.warp); }
  bool settled(const Past& past, bool wrote) const {
    return !wrote && all_ordered(past) &&
           (!crosses_proxies(past) || all_ordered(past, fenced(past)));
  }
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
    const Race::Kind kind = kind_of(past, wrote);
    RaceSide second = races_.side(access_.who.warp, warp_, lane_);
    second.writes = access_.writes;
    if (kind == Race::Kind::read_unfenced &&
        races_.launch_.reports.count(kind, {.pc = past.deed.pc()}, second, false, 1))
      return;
    Race race = races_.race_with(past, wrote, place_, cell);
    race.kind = kind;
    race.second = second;
    race.operand = access_.operand;
    race.lanes = static_cast<std::uint32_t>(std::popcount(access_.alike));
    races_.report(warp_, race);
  }

 private:
  Race::Kind kind_of(const Past& past, bool wrote) const {
    if (knows(past)) {
      if (!wrote) return Race::Kind::read_unfenced;
      // What tcgen05.alloc stored has been read: a copy may write there as behind a load.
      if (access_.writes &&
          opcode(warp_.block->context(), past.deed.pc()).starts_with("tcgen05.alloc"))
        return Race::Kind::alloc_unfenced;
      return access_.map ? Race::Kind::unacquired : Race::Kind::unfenced;
    }
    const std::uint32_t lane = past.deed.lane();
    const bool alike = wrote && access_.alike >> lane & 1 && past.warp == access_.who.warp &&
                       past.deed.pc() == warp_.pc - 1 &&
                       past.time == races_.clocks_.group_time(warp_, lane, Actor::bulk_write);
    return alike ? Race::Kind::by_every_lane : Race::Kind::unordered;
  }

  // Whether it is an ordinary access, and this one of the async proxy.
  bool crosses_proxies(const Past& past) const {
    return races_.launch_.whole && !access_.generic &&
           races_.clocks_.numbers().actor(past.warp) == Actor::thread;
  }
  // The actor of which those know who are behind a proxy fence that is behind `past`.
  std::uint32_t fenced(const Past& past) const {
    return races_.clocks_.numbers().as(place_.shared ? Actor::fenced_shared : Actor::fenced_global,
                                       past.warp);
  }
  bool all_ordered(const Past& past, std::uint32_t number) const {
    return !access_.warps && races_.clocks_.all_know(warp_, 1u << lane_, number, past.time);
  }

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
    return numbers.actor(past.warp) != Actor::thread || knows(past, fenced(past));
  }

  ClusterRaces& races_;
  Warp& warp_;
  const AsyncAccess& access_;
  Place place_;
  std::uint32_t lane_;
  Past last_;  // that was asked for
  bool after_last_ = false;
};

}  // namespace tartan::TARTAN_ABI::emulator
