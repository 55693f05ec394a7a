// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/detector.h"

#include <bit>
#include <cstring>
#include <functional>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t most_bytes = 32;  // of a lane's access

// What `lane` stores, at `to`.
void read_value(const Warp& warp, const StoredValue& value, std::uint32_t lane, std::byte* to) {
  for (std::uint32_t k = 0; k < value.op.count; ++k) {
    const std::uint32_t slot = warp.program->slots[value.op.list + k];
    const std::byte* from = warp.arena + slot + (value.wide ? 8 : 4) * std::size_t{lane};
    std::memcpy(to + std::size_t{k} * value.element_bytes, from, value.element_bytes);
  }
}

}  // namespace

// Says of past accesses whether they are ordered before that of the current lane, and reports those
// that are not.
class ClusterRaces::Judge {
 public:
  Judge(ClusterRaces& races, const Warp& warp, const WatchedAccess& access)
      : races_(races),
        warp_(warp),
        access_(access),
        own_(races.clocks_.number(warp)),
        time_(races.clocks_.time(warp)) {}

  void begin(std::uint32_t lane, const Place& place) {
    done_ |= lanes_;
    lane_ = lane;
    lanes_ = 1u << lane;
    place_ = place;
  }
  std::uint32_t own() const { return own_; }
  std::uint32_t time() const { return time_; }
  const Warp& warp() const { return warp_; }

  bool ordered(const Past& past) {
    if (past.warp == own_ && past.deed.lane() == lane_) return true;
    return all_ordered(past) || both_strong(past) || knows(past);
  }
  bool all_ordered(const Past& past) {
    if (past.warp == known_warp_ && past.time <= known_time_) return true;
    if (!races_.clocks_.all_know(warp_, access_.lanes, past.warp, past.time)) return false;
    known_warp_ = past.warp;
    known_time_ = past.time;
    return true;
  }
  // Whether nothing orders what the two warps do.
  bool strangers(std::uint32_t one, std::uint32_t other) const {
    const std::uint32_t distance = one < other ? other - one : one - other;
    return distance >= 2 * races_.clocks_.warps_of_cluster() && !races_.launch_.ordered;
  }
  void unordered(const Past& past, std::uint64_t cell, bool wrote) {
    const Epoch epoch{past.warp, past.time, past.deed.lane()};
    races_.launch_.reports.add(
        {.first = {past.warp, past.deed.lane(), past.deed.pc(), wrote},
         .second = {own_ + access_.copies, lane_, warp_.pc - 1, access_.writes},
         .shared = place_.shared,
         .rank = place_.rank,
         .address = cell,
         .same_value = wrote && access_.value && same_value(past),
         .copy_waited = past.warp % 2 && races_.clocks_.has_waited(epoch)});
  }

 private:
  bool knows(const Past& past) const {
    const auto of_lane = [&](std::uint32_t lane) {
      return races_.clocks_.knows(warp_, lane_, {past.warp, past.time, lane});
    };
    if (!past.deed.collective()) return of_lane(past.deed.lane());
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      if (of_lane(lane)) return true;
    return false;
  }

  bool both_strong(const Past& past) const {
    if (!access_.strong || !past.deed.strength()) return false;
    const auto scope = static_cast<Scope>(past.deed.strength() - 1);
    return races_.clocks_.within(past.warp, warp_, std::min(scope, access_.scope));
  }

  // Whether the past write left what this one writes.
  bool same_value(const Past& past) const {
    std::byte mine[most_bytes], other[most_bytes];
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
  const Warp& warp_;
  const WatchedAccess& access_;
  std::uint32_t own_, time_, lane_ = 0;
  std::uint32_t lanes_ = 0, done_ = 0;  // the current one; those before
  Place place_;
  std::uint32_t known_warp_ = ~0u, known_time_ = 0;  // all lanes know of that warp's
};

LaunchRaces::LaunchRaces(const LaunchContext& context) : reports(context) {
  const Program& program = context.program;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Watch& watch = program.watches[i];
    const Window window = program.ops[i].window;
    ordered |= watch.sequential || (watch.strong && watch.writes && window != Window::shared &&
                                    window != Window::cluster);
  }
}

ClusterRaces::ClusterRaces(Cluster& cluster, LaunchRaces& launch)
    : cluster_(cluster),
      launch_(launch),
      clocks_(cluster.size(), static_cast<std::uint32_t>(cluster.block(0).warps().size()),
              launch.sequential),
      shared_(cluster.size(), Shadow(~0u)),
      barriers_(std::size_t{16} * cluster.size()) {}

void ClusterRaces::start(std::uint32_t cluster) {
  std::vector<std::uint32_t> lanes_of_warps;
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank)
    for (const Warp& warp : cluster_.block(rank).warps()) lanes_of_warps.push_back(warp.live);
  clocks_.start(cluster, lanes_of_warps);
  for (Shadow& shadow : shared_) shadow.clear();
  for (VectorClock& each : barriers_) each = clocks_.fresh();
  arriving_ = arrived_ = clocks_.fresh();
  mbarriers_.clear();
  locations_.clear();
}

std::optional<ClusterRaces::Place> ClusterRaces::place(const Warp& warp, Window window,
                                                       std::uint64_t address) const {
  if (window == Window::generic) {
    window = window_of(address);
    address -= window_base(window);
  }
  if (window == Window::global) return Place{.address = address};
  if (window != Window::shared && window != Window::cluster) return std::nullopt;
  const auto place = static_cast<std::uint32_t>(address) >> rank_shift;
  const std::uint32_t rank = place == 0 ? warp.block->rank() : place - 1;
  if (rank >= cluster_.size()) return std::nullopt;
  return Place{.shared = true, .rank = rank, .address = address & shared_offset_mask};
}

void ClusterRaces::access(Warp& warp, const WatchedAccess& access) {
  Judge judge(*this, warp, access);
  const std::uint32_t strength = access.strong ? 1 + static_cast<std::uint32_t>(access.scope) : 0;
  for (std::uint32_t m = access.lanes; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    access_lane(judge, access, lane,
                {judge.own(), judge.time(), Deed(warp.pc - 1, lane, strength)});
  }
}

void ClusterRaces::access_lane(Judge& judge, const WatchedAccess& access, std::uint32_t lane,
                               Past now) {
  const auto where = place(judge.warp(), access.window, access.at[lane]);
  // Bad addresses are findings of their own.
  if (!where || where->address & (access.bytes - 1)) return;
  if (where->shared && where->address + access.bytes > cluster_.block(where->rank).shared_bytes())
    return;
  judge.begin(lane, *where);
  if (access.collective) now.deed = now.deed.together();
  if (access.copies) {
    const Epoch copy = clocks_.copy_epoch(judge.warp(), lane);
    now.warp = copy.warp;
    now.time = copy.time;
  }
  Shadow& shadow = where->shared ? shared_[where->rank] : launch_.global;
  if (access.writes) shadow.write(where->address, access.bytes, now, judge);
  else shadow.read(where->address, access.bytes, now, judge);
}

void ClusterRaces::filled(const std::byte* at, std::uint64_t bytes) {
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank) {
    Block& block = cluster_.block(rank);
    const std::byte* first = block.shared();
    if (!std::less<>()(at, first) && std::less<>()(at, first + block.shared_bytes()))
      return shared_[rank].forget(static_cast<std::uint64_t>(at - first), bytes);
  }
}

// ---- Strong operations.

Location* ClusterRaces::location(const Place& place, bool make) {
  Locations& all = place.shared ? locations_ : launch_.locations;
  const std::uint64_t key = std::uint64_t{place.rank} << 32 | place.address;
  if (make) return &all[place.shared ? key : place.address];
  const auto found = all.find(place.shared ? key : place.address);
  return found == all.end() ? nullptr : &found->second;
}

namespace {

// Calls body(lanes, address) for the lanes of each address.
template <typename Body>
void each_address(std::uint32_t mask, const std::uint64_t* at, Body&& body) {
  while (mask) {
    const std::uint64_t address = at[std::countr_zero(mask)];
    const std::uint32_t same = lanes_where(mask, [=](int lane) { return at[lane] == address; });
    body(same, address);
    mask &= ~same;
  }
}

}  // namespace

void ClusterRaces::publish(Warp& warp, Window window, const std::uint64_t* at, Ordering ordering,
                           bool replaces) {
  each_address(warp.mask, at, [&](std::uint32_t lanes, std::uint64_t address) {
    const auto where = place(warp, window, address);
    if (!where) return;
    Location* known = location(*where, clocks_.can_publish(warp, lanes, ordering));
    if (known) clocks_.publish(warp, lanes, *known, ordering, replaces);
  });
}

void ClusterRaces::learn(Warp& warp, Window window, const std::uint64_t* at, Ordering ordering) {
  each_address(warp.mask, at, [&](std::uint32_t lanes, std::uint64_t address) {
    const auto where = place(warp, window, address);
    if (const Location* known = where ? location(*where, false) : nullptr)
      clocks_.learn(warp, lanes, *known, ordering);
  });
}

// ---- Barriers.

void ClusterRaces::arrive(const Warp& warp, std::uint32_t id) {
  clocks_.release(warp, warp.mask, barrier(warp.block->rank(), id));
}

void ClusterRaces::leave(const Warp& warp, std::uint32_t lanes, std::uint32_t id) {
  clocks_.meet(warp, lanes, barrier(warp.block->rank(), id));
}

void ClusterRaces::all_gone(std::uint32_t rank, std::uint32_t id) { barrier(rank, id).clear(); }

void ClusterRaces::arrive_at_cluster(const Warp& warp, bool relaxed) {
  if (relaxed) clocks_.release_fenced(warp, warp.mask, Scope::cluster, arriving_);
  else clocks_.release(warp, warp.mask, arriving_);
}

void ClusterRaces::leave_cluster(const Warp& warp, std::uint32_t lanes) {
  clocks_.acquire(warp, lanes, arrived_);
}

void ClusterRaces::cluster_phase_over() {
  arrived_ = arriving_;
  arriving_.clear();
}

ClusterRaces::Phases& ClusterRaces::phases(const std::byte* mbarrier) {
  return mbarriers_.try_emplace(mbarrier, Phases{clocks_.fresh(), clocks_.fresh()}).first->second;
}

void ClusterRaces::arrive_at(const Warp& warp, std::uint32_t lanes, const std::byte* mbarrier,
                             bool relaxed) {
  if (relaxed) clocks_.release_fenced(warp, lanes, Scope::cta, phases(mbarrier).pending);
  else clocks_.release(warp, lanes, phases(mbarrier).pending);
}

void ClusterRaces::end_phase(const std::byte* mbarrier) {
  Phases& all = phases(mbarrier);
  all.known.join(all.pending);
  all.pending.clear();
}

void ClusterRaces::waited(const Warp& warp, std::uint32_t lanes, const std::byte* mbarrier,
                          bool relaxed) {
  if (relaxed) clocks_.acquire_relaxed(warp, lanes, phases(mbarrier).known);
  else clocks_.acquire(warp, lanes, phases(mbarrier).known);
}

void ClusterRaces::copies_arrive(const Warp& warp, std::uint32_t lane, const std::byte* mbarrier) {
  clocks_.release_copies(warp, 1u << lane, phases(mbarrier).pending);
}

}  // namespace tartan::inline TARTAN_ABI::emulator
