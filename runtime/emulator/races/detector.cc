// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/detector.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/races/equal_stores.h"
#include "runtime/emulator/trial.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::uint64_t most_value_bytes = 32;  // of a lane's store

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
    const bool exchange = threads && place_.shared && wrote != access_.writes && !access_.mbarrier;
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

namespace {

Numbers numbers_of(const LaunchContext& context) {
  constexpr std::uint32_t most_mbarriers = 256;  // of a block, that are looked at
  Numbers made{
      .blocks = static_cast<std::uint32_t>(context.cluster.count()),
      .warps_per_block = static_cast<std::uint32_t>((context.launch.block.count() + 31) / 32)};
  if (context.program.ordered) made.mbarriers = most_mbarriers * made.blocks;
  return made;
}

}  // namespace

LaunchRaces::LaunchRaces(const LaunchContext& context, bool whole)
    : whole(whole),
      numbers(numbers_of(context)),
      reports(context, numbers),
      predecessor(context.predecessor) {
  const Program& program = context.program;
  bool sequential = false, narrow = false;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Watch& watch = program.watches[i];
    const Window window = program.ops[i].window;
    ordered |= watch.sequential || (watch.strong && watch.writes && window != Window::shared &&
                                    window != Window::cluster);
    sequential |= watch.sequential;
    narrow |= watch.inner && static_cast<Scope>(watch.scope) != Scope::gpu;
  }
  this->program = {.sequential = sequential, .narrow = narrow};
}

ClusterRaces::ClusterRaces(Cluster& cluster, LaunchRaces& launch)
    : cluster_(cluster),
      launch_(launch),
      clocks_(launch.numbers, launch.program),
      shared_(cluster.size(), Shadow(~0u)),
      boxes_(cluster.size()),
      barriers_(std::size_t{16} * cluster.size()),
      outliving_(cluster.size()) {
  if (launch.whole) convergence_.emplace(cluster.block(0).context().program);
}

void ClusterRaces::start(std::uint32_t cluster) {
  std::vector<std::uint32_t> lanes_of_warps;
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank)
    for (const Warp& warp : cluster_.block(rank).warps()) lanes_of_warps.push_back(warp.live);
  clocks_.start(cluster, lanes_of_warps);
  for (Shadow& shadow : shared_) shadow.clear();
  for (Boxes& boxes : boxes_) boxes.clear();
  for (VectorClock& each : barriers_) each = clocks_.fresh();
  for (auto& each : outliving_) each.clear();
  arriving_ = arrived_ = clocks_.fresh();
  if (convergence_) convergence_->start(lanes_of_warps.size());
  volatiles_.start();
  mbarriers_.clear();
  meetings_.clear();
  mbarrier_places_.clear();
  locations_.clear();
  maps_.clear();
  narrow_.clear();
}

// ---- What all judges ask and say.

bool ClusterRaces::strangers(std::uint32_t one, std::uint32_t other) const {
  const std::uint32_t distance = one < other ? other - one : one - other;
  return distance >= clocks_.numbers().span() && !launch_.ordered;
}

bool ClusterRaces::both_strong(const Past& past, const Warp& warp, Scope scope) const {
  if (!past.deed.strength()) return false;
  const auto other = static_cast<Scope>(past.deed.strength() - 1);
  return clocks_.within(past.warp, warp, std::min(scope, other));
}

bool ClusterRaces::reach(const Past& one, const Past& other) const {
  const Numbers& numbers = clocks_.numbers();
  const std::uint32_t strength = std::min(one.deed.strength(), other.deed.strength());
  if (!strength) return false;
  const auto scope = static_cast<Scope>(strength - 1);
  if (scope == Scope::gpu) return true;
  if (numbers.cluster(one.warp) != numbers.cluster(other.warp)) return false;
  return scope == Scope::cluster || (numbers.actor(one.warp) != Actor::mbarrier &&
                                     numbers.actor(other.warp) != Actor::mbarrier &&
                                     numbers.rank(one.warp) == numbers.rank(other.warp));
}

RaceSide ClusterRaces::side(std::uint32_t number, const Warp& warp, std::uint32_t lane) const {
  return {.actor = clocks_.numbers().actor(number),
          .thread = clocks_.number(warp),
          .lane = lane,
          .pc = warp.pc - 1};
}

Race ClusterRaces::race_with(const Past& past, bool wrote, const Place& place,
                             std::uint64_t cell) const {
  const Numbers& numbers = clocks_.numbers();
  const Actor actor = numbers.actor(past.warp);
  Race race{
      .first = {.actor = actor, .lane = past.deed.lane(), .pc = past.deed.pc(), .writes = wrote},
      .shared = place.shared,
      .rank = place.rank,
      .address = cell,
      .waited = clocks_.has_waited({past.warp, past.time, past.deed.lane()})};
  if (actor != Actor::mbarrier) {
    race.first.thread = numbers.as(Actor::thread, past.warp);
  } else if (const std::uint32_t index = numbers.mbarrier(past.warp);
             numbers.cluster(past.warp) == numbers.cluster(clocks_.number_of_mbarrier(0)) &&
             index < mbarrier_places_.size()) {
    race.completes_at = mbarrier_places_[index];
    race.phase = past.time - 1;
  }
  return race;
}

// Unless all memory is looked at, the first one stops the launch.
void ClusterRaces::report(Warp& warp, const Race& race) {
  if (launch_.whole) return launch_.reports.add(race);
  if (launch_.reports.is_ordinary(race) || cluster_.stopped()) return;
  launch_.reports.add(race);
  cluster_.stop(launch_.reports.findings().back());
  warp.leave = true;
}

// ---- Memory.

bool ClusterRaces::find_place(const Warp& warp, Window window, std::uint64_t address,
                              Place& to) const {
  if (window == Window::generic) {
    window = window_of(address);
    address -= window_base(window);
  }
  to.shared = window == Window::shared || window == Window::cluster;
  to.rank = 0;
  to.address = address;
  if (!to.shared) return window == Window::global;
  const auto place = static_cast<std::uint32_t>(address) >> rank_shift;
  to.rank = place == 0 ? warp.block->rank() : place - 1;
  to.address = address & shared_offset_mask;
  return to.rank < cluster_.size();
}

bool ClusterRaces::find_place(const Warp& warp, Window window, std::uint64_t address,
                              std::uint64_t bytes, Place& to) const {
  if (!find_place(warp, window, address, to)) return false;
  // What leads out of shared memory is a finding of its own.
  return to.shared ? to.address + bytes <= cluster_.block(to.rank).shared_bytes() : launch_.whole;
}

// Lanes that read the same place do it as one.
void ClusterRaces::access(Warp& warp, const WatchedAccess& access) {
  Judge judge(*this, warp, access);
  const std::uint64_t unit = access.alignment ? access.alignment : access.bytes;
  const bool together = !access.writes && access.actor != Actor::cp_async;
  std::array<LaneGroup, 32> groups;  // in `memory`
  std::size_t count = 0;
  std::uint64_t memory = 0;  // 1 + the block's rank; 0: global
  const auto judge_groups = [&] {
    const Place place{.shared = memory != 0,
                      .rank = memory ? static_cast<std::uint32_t>(memory - 1) : 0};
    if (count) access_lanes(judge, warp, access, place, {groups.data(), count});
    count = 0;
  };
  for (std::uint32_t left = access.lanes; left;) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(left));
    std::uint32_t lanes = 0;
    do lanes |= left & (0 - left), left &= left - 1;
    while (left && together && access.at[std::countr_zero(left)] == access.at[first]);
    Place where;
    if (!find_place(warp, access.window, access.at[first], access.bytes, where)) continue;
    if (where.address & (unit - 1)) continue;  // bad addresses are findings of their own
    if (const std::uint64_t here = where.shared ? 1 + std::uint64_t{where.rank} : 0;
        here != memory) {
      judge_groups();
      memory = here;
    }
    groups[count++] = {lanes, where.address};
  }
  judge_groups();
}

void ClusterRaces::access_lanes(Judge& judge, Warp& warp, const WatchedAccess& access,
                                const Place& memory, std::span<const LaneGroup> groups) {
  const std::uint32_t strength = access.strong ? 1 + static_cast<std::uint32_t>(access.scope) : 0;
  Past now{clocks_.number(warp, access.actor), clocks_.time(warp), Deed(warp.pc - 1, 0, strength)};
  if (access.collective) now.deed = now.deed.together();
  if (convergence_ && memory.shared) convergence_->note(index(warp), warp, clocks_.time(warp));
  judge.enter(memory);
  Shadow& shadow = this->shadow(memory);
  const auto lane_of = [&](std::size_t group) {
    return static_cast<std::uint32_t>(std::countr_zero(groups[group].lanes));
  };
  for (std::size_t i = 0, end = groups.size(); i < groups.size(); i = end, end = groups.size()) {
    if (access.actor == Actor::cp_async) {  // lanes of one time
      now.time = clocks_.group_time(warp, lane_of(i), Actor::cp_async);
      for (end = i + 1; end < groups.size(); ++end)
        if (clocks_.group_time(warp, lane_of(end), Actor::cp_async) != now.time) break;
    }
    shadow.access(groups.subspan(i, end - i), access.bytes, now, access.writes, judge);
  }
  if (warp.block->context().equal_stores && access.writes && access.actor == Actor::thread)
    for (const LaneGroup& group : groups)
      compare_equal_stores(judge, warp, access, memory, group, now);
  note_groups(warp, access, memory, now, groups);
  const bool by_thread = access.actor == Actor::thread && !access.mbarrier;
  if (access.is_volatile && memory.shared && launch_.whole)
    judge_volatile(warp, access, memory, groups);
  const detail::Trial* const trial = warp.block->context().trial;
  if (trial && trial->poisons && by_thread && !access.writes) poison(warp, access, memory, groups);
}

// ---- Stores of equal values.

void ClusterRaces::watch_equal_stores(const Warp& warp, const WatchedAccess& access,
                                      std::uint32_t lane, const Place& place) {
  EqualStores* const stores = warp.block->context().equal_stores;
  const auto where = place_of(warp, access.window, access.at[lane]);
  if (stores && where) stores->watch(where->first, place.address, access.bytes);
}

// Those before it that nothing orders and that left something else are a race: in another order
// that would have come last.
void ClusterRaces::compare_equal_stores(Judge& judge, Warp& warp, const WatchedAccess& access,
                                        const Place& memory, const LaneGroup& group,
                                        const Past& now) {
  EqualStores& stores = *warp.block->context().equal_stores;
  if (stores.empty()) return;
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(group.lanes));
  const auto where = place_of(warp, access.window, access.at[lane]);
  if (!where) return;
  EqualStores::Store made{now.of_lane(lane), group.address, {}, access.bytes};
  if (access.value && access.bytes <= most_value_bytes) {
    made.value.resize(access.bytes);
    read_value(warp, *access.value, lane, made.value.data());
  }
  judge.turn(group);
  stores.add(where->first, made, [&](const EqualStores::Store& before) {
    const bool own = before.past.warp == made.past.warp && before.past.deed.lane() == lane;
    const bool ordered = own || judge.knows(before.past);
    const bool agrees = made.agrees(before);
    if (!ordered && !agrees && !judge.both_strong(before.past)) {
      Race race = race_with(before.past, true, memory, group.address);
      race.second = side(now.warp, warp, lane);
      race.second.writes = true;
      report(warp, race);
    }
    return ordered && agrees && before.first == made.first && before.bytes == made.bytes;
  });
}

// For the launch before, and for blocks that exit.
void ClusterRaces::note_groups(const Warp& warp, const WatchedAccess& access, const Place& memory,
                               const Past& now, std::span<const LaneGroup> groups) {
  const bool early = launch_.predecessor && !memory.shared;
  const bool outliving = launch_.whole && memory.shared && memory.rank != warp.block->rank();
  if (!early && !outliving) return;
  for (const LaneGroup& group : groups) {
    const Place where{.shared = memory.shared, .rank = memory.rank, .address = group.address};
    if (early) {
      RaceSide side =
          this->side(now.warp, warp, static_cast<std::uint32_t>(std::countr_zero(group.lanes)));
      side.writes = access.writes;
      judge_predecessor(warp, group.lanes, where, access.bytes, side, now.deed.wide());
    }
    for (std::uint32_t m = outliving ? group.lanes : 0; m; m &= m - 1)
      note_outliving(warp, where,
                     {now.warp, now.time, static_cast<std::uint32_t>(std::countr_zero(m))},
                     access.writes);
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

// Lanes of an atomic come to one word one after another, and those behind learn what those before
// told.
void ClusterRaces::order(const Warp& warp, const StrongAccess& access) {
  const bool writes = access.use.kind != StrongUse::Kind::reads;
  const Ordering told = writes ? access.ordering : Ordering{};
  const bool leaves =
      (writes || launch_.program.sequential) && clocks_.can_publish(warp, access.lanes, told);
  if (no_locations() && !leaves) return;
  each_address(access.lanes, access.at, [&](std::uint32_t lanes, std::uint64_t address) {
    Place where;
    if (!find_place(warp, access.window, address, where)) return;
    Location* const known = location(where, leaves);
    if (!known) return;
    for (std::uint32_t left = lanes; left;) {
      const std::uint32_t now = writes ? left & (0 - left) : left;
      left &= ~now;
      if (access.reads) clocks_.learn(warp, now, *known, access.ordering);
      clocks_.use(warp, now, *known, access.use);
      if (writes) clocks_.publish(warp, now, *known, access.ordering, access.replaces);
    }
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
  forget_narrow(warp.block->rank(), arrived_);
  clocks_.acquire(warp, lanes, arrived_);
}

void ClusterRaces::cluster_phase_over() {
  arrived_ = arriving_;
  arriving_.clear();
}

}  // namespace tartan::inline TARTAN_ABI::emulator
