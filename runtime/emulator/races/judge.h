// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/judge.h - the judge of accesses of the lanes of a warp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/races/detector.h"
#include "runtime/emulator/trial.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr std::uint64_t most_value_bytes = 32;  // of a lane's store

/// What `lane` stores, at `to`.
inline void read_value(const Warp& warp, const StoredValue& value, std::uint32_t lane,
                       std::byte* to) {
  for (std::uint32_t k = 0; k < value.op.count; ++k) {
    const std::uint32_t slot = warp.program->slots[value.op.list + k];
    const std::byte* from = warp.arena + slot + (value.wide ? 8 : 4) * std::size_t{lane};
    std::memcpy(to + std::size_t{k} * value.element_bytes, from, value.element_bytes);
  }
}

/// Says of past accesses whether they are ordered before that of the current lane, and reports
/// those that are not.
class ClusterRaces::Judge {
 public:
  Judge(ClusterRaces& races, Warp& warp, const WatchedAccess& access)
      : races_(races),
        warp_(warp),
        access_(access),
        own_(races.clocks_.number(warp)),
        ordinary_(!races.launch_.whole && access.actor == Actor::thread && !access.mbarrier) {}

  /// What follows leads to that memory.
  void enter(const Place& place) { place_ = place; }
  void turn(const LaneGroup& group) {
    done_ |= lanes_;
    lanes_ = group.lanes;
    lane_ = static_cast<std::uint32_t>(std::countr_zero(group.lanes));
    place_.address = group.address;
  }
  void pass(std::uint32_t lanes) { done_ |= lanes; }
  std::uint32_t own() const { return own_; }

  /// A strong access of `bytes` is one of so many bytes after another.
  std::uint64_t element_bytes(std::uint64_t bytes) const {
    return access_.element_bytes ? access_.element_bytes : bytes;
  }
  void element(std::uint64_t address) {
    extent_ = {static_cast<std::uint32_t>(address), access_.element_bytes};
  }
  const Extent& extent() const { return extent_; }
  bool continues() const { return access_.continues; }
  bool observes() const { return access_.observes; }
  bool both_strong(const Past& past) const {
    return access_.strong && races_.both_strong(past, warp_, access_.scope);
  }
  bool reach(const Past& one, const Past& other) const { return races_.reach(one, other); }

  bool after_write(const Past& past) {
    if (access_.noncoherent || !after_read(past)) return false;
    races_.note_use(warp_, past, place_);
    return true;
  }
  bool after_read(const Past& past) {
    if (past.warp == own_ && 1u << past.deed.lane() == lanes_) return true;
    return settled(past) || !lanes_without(past);
  }
  bool knows(const Past& past) { return !lanes_without(past); }
  /// All lanes, of all that the other warp's lanes had done by then.
  bool all_ordered(const Past& past) {
    Known& known = known_[past.warp % known_.size()];
    if (known.warp != past.warp) known = {.warp = past.warp};
    if (past.time <= known.up_to) return true;
    if (past.time >= known.not_from) return false;
    const bool ordered = races_.clocks_.all_know(warp_, access_.lanes, past.warp, past.time);
    (ordered ? known.up_to : known.not_from) = past.time;
    return ordered;
  }
  bool settled(const Past& past, bool wrote) {
    return !(wrote && (access_.noncoherent || races_.narrow(warp_, past))) && settled(past);
  }
  bool strangers(std::uint32_t one, std::uint32_t other) const {
    return races_.strangers(one, other);
  }
  void unordered(const Past& past, std::uint64_t cell, bool wrote) {
    const RaceSide first{
        .actor = races_.clocks_.numbers().actor(past.warp), .pc = past.deed.pc(), .writes = wrote};
    const RaceSide second{.actor = access_.actor, .pc = warp_.pc - 1, .writes = access_.writes};
    const Race::Kind kind = kind_of(past, first.actor, wrote);
    const std::uint32_t racing = access_.noncoherent ? lanes_ : lanes_without(past);
    if (kind == Race::Kind::same_value) races_.watch_equal_stores(warp_, access_, lane_, place_);
    if (kind == Race::Kind::unordered) note_read(past, first.actor, cell, wrote);
    if (races_.launch_.whole &&
        races_.launch_.reports.count(kind, first, second, access_.mbarrier, std::popcount(racing)))
      return;
    Race race = races_.race_with(past, wrote, place_, cell);
    race.kind = kind;
    race.second = races_.side(races_.clocks_.number(warp_, access_.actor), warp_, lane_);
    race.second.writes = access_.writes;
    race.mbarrier = access_.mbarrier;
    for (std::uint32_t m = racing; m; m &= m - 1) {
      race.second.lane = static_cast<std::uint32_t>(std::countr_zero(m));
      races_.report(warp_, race);
    }
  }

 private:
  bool settled(const Past& past) { return of_no_interest(past) || all_ordered(past); }

  Race::Kind kind_of(const Past& past, Actor other, bool wrote) {
    if (access_.noncoherent) return Race::Kind::noncoherent;
    if (both_strong(past)) return Race::Kind::mixed;
    if (access_.alike >> past.deed.lane() & 1 && is_this_op(past)) return Race::Kind::repeated_init;
    const bool threads = other == Actor::thread && access_.actor == Actor::thread;
    if (wrote && threads && (access_.value || access_.rows) && same_value(past))
      return Race::Kind::same_value;
    // What wmma.store leaves has been seen to be late for the loads of other lanes.
    const std::uint32_t store = wrote ? past.deed.pc() : warp_.pc - 1;
    const bool exchange = threads && place_.shared && wrote != access_.writes &&
                          !access_.mbarrier &&
                          !opcode(warp_.block->context(), store).starts_with("wmma.store");
    return exchange && races_.together(warp_, past) ? Race::Kind::converged : Race::Kind::unordered;
  }

  bool is_this_op(const Past& past) const {
    return past.warp == races_.clocks_.number(warp_, access_.actor) &&
           past.time == races_.clocks_.time(warp_) && past.deed.pc() == warp_.pc - 1;
  }

  // A load and a store of threads: for the run that finds whether the load is used.
  void note_read(const Past& past, Actor other, std::uint64_t cell, bool wrote) {
    const detail::Trial* const trial = warp_.block->context().trial;
    if (!trial || !trial->notes || other != Actor::thread || access_.actor != Actor::thread ||
        wrote == access_.writes)
      return;
    if (wrote) {
      const std::uint32_t time = races_.clocks_.time(warp_);
      const Deed deed(warp_.pc - 1, lane_, access_.strong ? 1 : 0);
      return races_.note_read(warp_, place_, cell, {own_, time, deed}, time);
    }
    // Those that this lane knows of do not race.
    Past read = past;
    std::uint32_t known = 0, unknown = past.time;
    while (unknown - known > 1) {
      read.time = known + (unknown - known) / 2;
      (is_known(lane_, read) ? known : unknown) = read.time;
    }
    races_.note_read(warp_, place_, cell, past, unknown);
  }

  // Where shared memory alone is looked at, nobody hears of races between ordinary accesses.
  bool of_no_interest(const Past& past) const {
    return ordinary_ && races_.clocks_.is_thread(past.warp);
  }

  // Lanes of the access that do not know of it.
  std::uint32_t lanes_without(const Past& past) const {
    std::uint32_t out = 0;
    for (std::uint32_t m = lanes_; m; m &= m - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
      const bool own = past.warp == own_ && past.deed.lane() == lane;
      if (!own && !is_known(lane, past)) out |= 1u << lane;
    }
    return out;
  }

  bool is_known(std::uint32_t mine, const Past& past) const {
    const auto of_lane = [&](std::uint32_t lane) {
      const Epoch epoch{past.warp, past.time, lane};
      return races_.clocks_.knows(warp_, mine, epoch) ||
             (access_.invalidates && races_.knows_by_meeting(warp_, mine, epoch));
    };
    if (!past.deed.collective()) return of_lane(past.deed.lane());
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      if (of_lane(lane)) return true;
    return false;
  }

  // Whether the past write left what this one writes.
  bool same_value(const Past& past) const {
    if (access_.rows) {
      const bool now = past.warp == own_ && done_ >> past.deed.lane() & 1 && is_this_op(past) &&
                       access_.at[past.deed.lane()] == access_.at[lane_];
      const std::byte* const other =
          now ? access_.rows->now[past.deed.lane()] : access_.rows->before[lane_];
      return std::memcmp(access_.rows->now[lane_], other, StoredRows::bytes) == 0;
    }
    if (access_.bytes > most_value_bytes) return false;
    std::byte mine[most_value_bytes], other[most_value_bytes];
    read_value(warp_, *access_.value, lane_, mine);
    const std::uint32_t lane = past.deed.lane();
    const bool now = past.warp == own_ && past.deed.pc() == warp_.pc - 1 && done_ >> lane & 1 &&
                     access_.at[lane] == access_.at[lane_];
    if (now) {
      read_value(warp_, *access_.value, lane, other);
    } else if (place_.shared) {
      std::memcpy(other, races_.cluster_.block(place_.rank).shared() + place_.address,
                  access_.bytes);
    } else {
      const Allocation* allocation = warp_.block->memory().find(place_.address, access_.bytes);
      if (!allocation) return false;
      std::memcpy(other, allocation->host + (place_.address - allocation->address), access_.bytes);
    }
    return std::memcmp(mine, other, access_.bytes) == 0;
  }

  ClusterRaces& races_;
  Warp& warp_;
  const WatchedAccess& access_;
  std::uint32_t own_, lane_ = 0;
  std::uint32_t lanes_ = 0, done_ = 0;  // the current ones, lane_ the first; those before
  bool ordinary_;
  Place place_;
  Extent extent_;
  /// What all lanes know of a warp's times.
  struct Known {
    std::uint32_t warp = ~0u, up_to = 0, not_from = ~0u;
  };
  std::array<Known, 8> known_;
};

}  // namespace tartan::TARTAN_ABI::emulator
