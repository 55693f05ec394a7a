// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/detector.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/races/judge.h"
#include "runtime/emulator/trial.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

Numbers numbers_of(const LaunchContext& context) {
  constexpr std::uint32_t most_mbarriers = 256;  // of a block, that are looked at
  Numbers made{
      .blocks = static_cast<std::uint32_t>(context.cluster.count()),
      .warps_per_block = static_cast<std::uint32_t>((context.launch.block.count() + 31) / 32)};
  if (context.program.ordered) made.mbarriers = most_mbarriers * made.blocks;
  if (!context.program.uses_tensor_memory)
    made.kinds = static_cast<std::uint32_t>(Actor::tensor_load);
  return made;
}

}  // namespace

LaunchRaces::LaunchRaces(const LaunchContext& context, bool whole, Predecessor* predecessor,
                         EqualStores* equal_stores)
    : whole(whole),
      numbers(numbers_of(context)),
      reports(context, numbers, predecessor),
      predecessor(predecessor),
      equal_stores(equal_stores) {
  const Program& program = context.program;
  const RaceWatches& watches = *program.observation<RaceWatches>();
  bool sequential = false, narrow = false;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Watch& watch = watches[i];
    const Window window = program.ops[i].window;
    ordered |= watch.sequential || (watch.strong && watch.writes && window != Window::shared &&
                                    window != Window::cluster);
    sequential |= watch.sequential;
    narrow |= watch.inner && static_cast<Scope>(watch.scope) != Scope::gpu;
  }
  this->program = {.sequential = sequential, .narrow = narrow};
}

void LaunchRaces::attach(Cluster& cluster) {
  cluster.add(std::make_unique<ClusterRaces>(cluster, *this));
}

void UncheckedRaces::attach(Cluster& cluster) {
  auto own = std::make_unique<LaunchRaces>(context_, false);
  LaunchRaces& launch = *own;
  cluster.add(std::make_unique<ClusterRaces>(cluster, launch, std::move(own)));
}

ClusterRaces::ClusterRaces(Cluster& cluster, LaunchRaces& launch, std::unique_ptr<LaunchRaces> own)
    : cluster_(cluster),
      own_(std::move(own)),
      launch_(launch),
      clocks_(launch.numbers, launch.program),
      shared_(cluster.size(), Shadow(~0u)),
      tensor_(cluster.size(), Shadow(~0u)),
      freed_columns_(cluster.size()),
      begun_(cluster.size()),
      issues_(cluster.size()),
      boxes_(cluster.size()),
      barriers_(std::size_t{16} * cluster.size()),
      outliving_(cluster.size()) {
  if (launch.whole) convergence_.emplace(cluster.block(0).context().program);
}

void ClusterRaces::start(Cluster&, std::uint32_t index) {
  std::vector<std::uint32_t> lanes_of_warps;
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank)
    for (const Warp& warp : cluster_.block(rank).warps()) lanes_of_warps.push_back(warp.live);
  clocks_.start(index, lanes_of_warps);
  for (Shadow& shadow : shared_) shadow.clear();
  for (Shadow& shadow : tensor_) shadow.clear();
  for (VectorClock& each : freed_columns_) each = clocks_.fresh();
  joined_.clear();
  for (auto& each : begun_) each.clear();
  for (TensorIssues& each : issues_) each = {};
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
  to.rank = rank_at(static_cast<std::uint32_t>(address), warp.block->rank());
  to.address = address & shared_offset_mask;
  return to.rank < cluster_.size();
}

bool ClusterRaces::find_place(const Warp& warp, Window window, std::uint64_t address,
                              std::uint64_t bytes, Place& to) const {
  if (!find_place(warp, window, address, to)) return false;
  // What leads out of shared memory is a finding of its own.
  return to.shared ? to.address + bytes <= cluster_.block(to.rank).shared_bytes() : launch_.whole;
}

void ClusterRaces::access(Warp& warp, const LaneAccess& access) {
  this->access(warp, WatchedAccess{.window = access.window,
                                   .lanes = access.lanes,
                                   .bytes = access.bytes,
                                   .at = access.at,
                                   .writes = access.writes,
                                   .collective = access.collective,
                                   .alignment = access.alignment});
}

void ClusterRaces::allocated(Warp&, std::uint64_t address, std::uint64_t bytes) {
  if (launch_.whole) launch_.global.forget(address, (bytes + 15) / 16 * 16);
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
  if (access.time) now.time = access.time;
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
  if (launch_.equal_stores && access.writes && access.actor == Actor::thread)
    for (const LaneGroup& group : groups)
      compare_equal_stores(judge, warp, access, memory, group, now);
  note_groups(warp, access, memory, now, groups);
  const bool by_thread = access.actor == Actor::thread && !access.mbarrier;
  if (access.is_volatile && memory.shared && launch_.whole)
    judge_volatile(warp, access, memory, groups);
  const detail::Trial* const trial = warp.block->context().trial;
  if (trial && trial->poisons && by_thread && !access.writes) poison(warp, access, memory, groups);
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
                     access.over.value_or(Epoch{now.warp, now.time,
                                                static_cast<std::uint32_t>(std::countr_zero(m))}),
                     access.writes, access.or_over);
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

void ClusterRaces::arrived(Warp& warp, std::uint32_t id, std::uint32_t, bool) {
  clocks_.release(warp, warp.mask, barrier(warp.block->rank(), id));
}

void ClusterRaces::leave(Warp& warp, std::uint32_t lanes, std::uint32_t id) {
  clocks_.meet(warp, lanes, barrier(warp.block->rank(), id));
}

void ClusterRaces::released(Block& block, std::uint32_t id) { barrier(block.rank(), id).clear(); }

void ClusterRaces::arrived_at_cluster(Warp& warp, bool relaxed) {
  if (relaxed) clocks_.release_fenced(warp, warp.mask, Scope::cluster, arriving_);
  else clocks_.release(warp, warp.mask, arriving_);
}

void ClusterRaces::leave_cluster(Warp& warp, std::uint32_t lanes) {
  forget_narrow(warp.block->rank(), arrived_);
  clocks_.acquire(warp, lanes, arrived_);
  note_begun(warp, lanes);
}

void ClusterRaces::released_cluster(Cluster&) {
  arrived_ = arriving_;
  arriving_.clear();
}

}  // namespace tartan::TARTAN_ABI::emulator
