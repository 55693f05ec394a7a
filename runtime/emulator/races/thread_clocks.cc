// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/thread_clocks.h"

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/block.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t all = 0xFFFFFFFF;

}  // namespace

// ---- Places in memory.

Location::Part& Location::part(Scope scope, std::uint32_t owner) {
  for (Part& each : parts_)
    if (each.scope == scope && each.owner == owner) return each;
  return parts_.emplace_back(Part{scope, owner, {}});
}

void Location::publish(const VectorClock& what, Scope scope, std::uint32_t cta,
                       std::uint32_t cluster) {
  part(Scope::cta, cta).known.join(what);
  if (scope >= Scope::cluster) part(Scope::cluster, cluster).known.join(what);
  if (scope >= Scope::gpu) part(Scope::gpu, 0).known.join(what);
}

void Location::learn(VectorClock& to, Scope scope, std::uint32_t cta, std::uint32_t cluster) const {
  for (const Part& each : parts_)
    if (each.scope <= scope &&
        (each.scope == Scope::gpu || each.owner == (each.scope == Scope::cta ? cta : cluster)))
      to.join(each.known);
}

// ---- Threads.

ThreadClocks::ThreadClocks(Numbers numbers, Location& sequential)
    : numbers_(numbers), warps_(numbers.warps()), sequential_(sequential) {}

void ThreadClocks::start(std::uint32_t cluster, const std::vector<std::uint32_t>& lanes_of_warps) {
  cluster_ = cluster;
  first_ = numbers_.first(cluster);
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    warps_[i] = {.lanes = lanes_of_warps[i]};
    warps_[i].groups.push_back({.lanes = lanes_of_warps[i], .now = fresh()});
  }
}

std::uint32_t ThreadClocks::index(const Warp& warp) const {
  return warp.block->rank() * numbers_.warps_per_block + warp.index;
}

std::uint32_t ThreadClocks::cta(const Warp& warp) const {
  return cluster_ * numbers_.blocks + warp.block->rank();
}

bool ThreadClocks::within(std::uint32_t number, const Warp& warp, Scope scope) const {
  if (scope == Scope::gpu) return true;
  if (numbers_.cluster(number) != cluster_) return false;
  return scope == Scope::cluster ||
         (numbers_.actor(number) != Actor::mbarrier && numbers_.rank(number) == warp.block->rank());
}

// Of what `lane` of the warp with the number `own` does in groups.
bool ThreadClocks::has_waited(const WarpState& mine, std::uint32_t own, std::uint32_t lane,
                              const Epoch& epoch) const {
  for (const Actor actor : grouped) {
    const GroupsOfLanes& all = mine.asynchronous[place_of(actor)];
    if (!all.empty() && epoch.warp == own + numbers_.distance(actor) &&
        all[lane].waited >= epoch.time)
      return true;
  }
  return false;
}

bool ThreadClocks::knows(const Warp& warp, std::uint32_t lane, const Epoch& epoch) const {
  const std::uint32_t own = number(warp);
  const WarpState& state = warps_[index(warp)];
  if (epoch.lane == lane &&
      (epoch.warp == own || epoch.warp == own + numbers_.distance(Actor::init) ||
       has_waited(state, own, lane, epoch)))
    return true;
  for (const Group& group : state.groups)
    if (group.lanes >> lane & 1) return group.now.knows(epoch);
  return true;  // there is no such lane
}

bool ThreadClocks::some_know(const Warp& warp, const Epoch& epoch) const {
  const std::uint32_t own = number(warp);
  const WarpState& state = warps_[index(warp)];
  return epoch.warp == own || epoch.warp == own + numbers_.distance(Actor::init) ||
         has_waited(state, own, epoch.lane, epoch) ||
         std::ranges::any_of(state.groups,
                             [&](const Group& group) { return group.now.knows(epoch); });
}

bool ThreadClocks::all_know(const Warp& warp, std::uint32_t mask, std::uint32_t of,
                            std::uint32_t time) const {
  for (const Group& group : warps_[index(warp)].groups) {
    if (!(group.lanes & mask)) continue;
    const LaneTimes* times = group.now.find(of);
    if (!times || times->least() < time) return false;
  }
  return true;
}

template <typename Body>
void ThreadClocks::each_group(WarpState& state, std::uint32_t lanes, Body&& body) {
  for (std::size_t i = 0, count = state.groups.size(); i < count; ++i) {
    const std::uint32_t here = state.groups[i].lanes & lanes;
    if (!here) continue;
    if (here != state.groups[i].lanes) {
      Group rest = state.groups[i];
      rest.lanes &= ~lanes;
      state.groups.push_back(std::move(rest));
      state.groups[i].lanes = here;
    }
    body(state.groups[i]);
  }
}

// What `lanes` of the group know, themselves included; lanes that do not exist do nothing.
void ThreadClocks::tell(WarpState& state, const Group& group, std::uint32_t lanes,
                        VectorClock& to) {
  to.join(group.now);
  const std::uint32_t own = first_ + static_cast<std::uint32_t>(&state - warps_.data());
  const std::uint32_t whole = lanes == state.lanes ? all : lanes;
  to.raise(own, whole, state.time);
  if (numbers_.mbarriers) to.raise(own + numbers_.distance(Actor::init), whole, state.time);
  for (const Actor actor : grouped) {
    const GroupsOfLanes& mine = state.asynchronous[place_of(actor)];
    if (mine.empty()) continue;
    const std::uint32_t number = own + numbers_.distance(actor);
    const std::uint32_t common = mine[static_cast<std::uint32_t>(std::countr_zero(lanes))].waited;
    bool even = true;
    for (std::uint32_t m = lanes; m && even; m &= m - 1)
      even = mine[static_cast<std::uint32_t>(std::countr_zero(m))].waited == common;
    if (even) {
      to.raise(number, whole, common);
      continue;
    }
    for (std::uint32_t m = lanes; m; m &= m - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
      to.raise(number, 1u << lane, mine[lane].waited);
    }
  }
}

void ThreadClocks::release(const Warp& warp, std::uint32_t lanes, VectorClock& to) {
  WarpState& mine = state(warp);
  for (const Group& group : mine.groups)
    if (const std::uint32_t here = group.lanes & lanes) tell(mine, group, here, to);
  ++mine.time;
}

void ThreadClocks::acquire(const Warp& warp, std::uint32_t lanes, const VectorClock& from) {
  each_group(state(warp), lanes, [&](Group& group) { group.now.join(from); });
}

void ThreadClocks::learn_end(const Warp& warp, std::uint32_t lanes, std::uint32_t number,
                             std::uint32_t time) {
  each_group(state(warp), lanes, [&](Group& group) { group.now.raise(number, all, time); });
}

void ThreadClocks::meet(const Warp& warp, std::uint32_t lanes, const VectorClock& from) {
  WarpState& mine = state(warp);
  Group together{.lanes = lanes & mine.lanes, .now = fresh(), .before_fence = {}, .seen = {}};
  if (!together.lanes) return;
  together.now.join(from);
  each_group(mine, lanes, [&](Group& group) {
    group.lanes = 0;
    if (group.fenced) {
      for (std::size_t i = 0; i < scopes; ++i) together.before_fence[i].join(group.before_fence[i]);
      together.fenced = true;
    }
    if (group.read) together.seen.join(group.seen), together.read = true;
  });
  std::erase_if(mine.groups, [](const Group& group) { return group.lanes == 0; });
  mine.groups.push_back(std::move(together));
}

void ThreadClocks::sync_warp(const Warp& warp, std::uint32_t lanes) {
  VectorClock all_know = fresh();
  release(warp, lanes, all_know);
  meet(warp, lanes, all_know);
}

// ---- Fences and strong operations.

void ThreadClocks::fence(const Warp& warp, std::uint32_t lanes, Ordering ordering) {
  WarpState& mine = state(warp);
  const std::uint32_t block = cta(warp);
  each_group(mine, lanes, [&](Group& group) {
    if (ordering.acquires && group.read) {
      group.now.join(group.seen);
      group.seen.clear();
      group.read = false;
    }
    if (ordering.sequential) sequential_.learn(group.now, ordering.scope, block, cluster_);
    if (!ordering.releases) return;
    VectorClock known = fresh();
    tell(mine, group, group.lanes, known);
    if (ordering.sequential) sequential_.publish(known, ordering.scope, block, cluster_);
    for (std::size_t i = 0; i <= static_cast<std::size_t>(ordering.scope); ++i)
      group.before_fence[i] = known;
    group.fenced = true;
  });
  if (ordering.releases) ++mine.time;
}

void ThreadClocks::fence_inits(const Warp& warp, std::uint32_t lanes) {
  WarpState& mine = state(warp);
  each_group(mine, lanes, [&](Group& group) {
    const std::uint32_t whole = group.lanes == mine.lanes ? all : group.lanes;
    for (std::size_t i = 0; i <= static_cast<std::size_t>(Scope::cluster); ++i) {
      if (!group.fenced) group.before_fence[i] = fresh();
      group.before_fence[i].raise(number(warp, Actor::init), whole, mine.time);
    }
    group.fenced = true;
  });
  ++mine.time;
}

void ThreadClocks::fence_proxy(const Warp& warp, std::uint32_t lanes, bool shared, bool global) {
  WarpState& mine = state(warp);
  each_group(mine, lanes, [&](Group& group) {
    const std::uint32_t whole = group.lanes == mine.lanes ? all : group.lanes;
    for (const Actor fenced : {Actor::fenced_shared, Actor::fenced_global}) {
      if (!(fenced == Actor::fenced_shared ? shared : global)) continue;
      group.now.copy(numbers_.warps(), numbers_.distance(fenced));
      group.now.raise(number(warp, fenced), whole, mine.time);
    }
  });
  ++mine.time;
}

void ThreadClocks::publish(const Warp& warp, std::uint32_t lanes, Location& at, Ordering ordering,
                           bool replaces) {
  WarpState& mine = state(warp);
  const std::uint32_t block = cta(warp);
  if (replaces) at = {};
  each_group(mine, lanes, [&](Group& group) {
    if (ordering.releases) {
      VectorClock known = fresh();
      tell(mine, group, group.lanes, known);
      at.publish(known, ordering.scope, block, cluster_);
    } else if (group.fenced) {
      for (std::size_t i = 0; i <= static_cast<std::size_t>(ordering.scope); ++i)
        at.publish(group.before_fence[i], static_cast<Scope>(i), block, cluster_);
    }
  });
  if (ordering.releases) ++mine.time;
}

bool ThreadClocks::can_publish(const Warp& warp, std::uint32_t lanes, Ordering ordering) const {
  return ordering.releases ||
         std::ranges::any_of(warps_[index(warp)].groups, [&](const Group& group) {
           return group.fenced && group.lanes & lanes;
         });
}

void ThreadClocks::release_fenced(const Warp& warp, std::uint32_t lanes, Scope scope,
                                  VectorClock& to) {
  for (const Group& group : state(warp).groups)
    if (group.lanes & lanes && group.fenced)
      to.join(group.before_fence[static_cast<std::size_t>(scope)]);
}

void ThreadClocks::acquire_relaxed(const Warp& warp, std::uint32_t lanes, const VectorClock& from) {
  each_group(state(warp), lanes, [&](Group& group) {
    group.seen.join(from);
    group.read = true;
  });
}

void ThreadClocks::learn(const Warp& warp, std::uint32_t lanes, const Location& at,
                         Ordering ordering) {
  const std::uint32_t block = cta(warp);
  each_group(state(warp), lanes, [&](Group& group) {
    at.learn(ordering.acquires ? group.now : group.seen, ordering.scope, block, cluster_);
    group.read |= !ordering.acquires;
  });
}

// ---- What lanes do asynchronously.

Epoch ThreadClocks::group_epoch(const Warp& warp, std::uint32_t lane, Actor actor) const {
  return {number(warp, actor), group_time(warp, lane, actor), lane};
}

void ThreadClocks::commit(const Warp& warp, std::uint32_t lanes, Actor actor) {
  WarpState& mine = state(warp);
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    Groups& own = groups_of(mine, static_cast<std::uint32_t>(std::countr_zero(m)), actor);
    own.commits.push_back(own.time++);
  }
}

void ThreadClocks::wait(const Warp& warp, std::uint32_t lanes, Actor actor,
                        std::optional<std::uint32_t> pending) {
  WarpState& mine = state(warp);
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    Groups& own = groups_of(mine, static_cast<std::uint32_t>(std::countr_zero(m)), actor);
    if (!pending) {
      own.waited = own.time++;
      own.commits.clear();
    } else if (own.commits.size() > *pending) {
      const auto over = own.commits.end() - static_cast<std::ptrdiff_t>(*pending);
      own.waited = std::max(own.waited, *(over - 1));
      own.commits.erase(own.commits.begin(), over);
    }
  }
}

void ThreadClocks::release_copies(const Warp& warp, std::uint32_t lanes, VectorClock& to) {
  WarpState& mine = state(warp);
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    to.raise(number(warp, Actor::cp_async), 1u << lane,
             groups_of(mine, lane, Actor::cp_async).time++);
  }
  release(warp, lanes, to);
}

bool ThreadClocks::has_waited(const Epoch& epoch) const {
  if (numbers_.cluster(epoch.warp) != cluster_) return false;
  const Actor actor = numbers_.actor(epoch.warp);
  if (actor == Actor::mbarrier) return false;
  const WarpState& mine = warps_[numbers_.warp(epoch.warp)];
  const std::uint32_t own = numbers_.as(Actor::thread, epoch.warp);
  if (actor != Actor::product) return has_waited(mine, own, epoch.lane, epoch);
  const std::size_t first = numbers_.warp(epoch.warp);
  for (std::size_t i = first; i < std::min(first + warps_of_warpgroup, warps_.size()); ++i)
    if (warps_[i].products_waited >= epoch.time) return true;
  return false;
}

std::uint32_t ThreadClocks::first_of_warpgroup(const Warp& warp) const {
  return index(warp) - warp.index % static_cast<std::uint32_t>(warps_of_warpgroup);
}

Epoch ThreadClocks::product_epoch(const Warp& warp) const {
  return {first_ + numbers_.distance(Actor::product) + first_of_warpgroup(warp),
          warps_[index(warp)].products + 1, 0};
}

std::optional<std::uint32_t> ThreadClocks::unwaited_product(const Warp& warp) const {
  const WarpState& mine = warps_[index(warp)];
  if (mine.last_product.group <= mine.products_waited) return std::nullopt;
  return mine.last_product.pc;
}

void ThreadClocks::wait_for_products(const Warp& warp, std::uint32_t pending) {
  WarpState& mine = state(warp);
  if (mine.products <= pending) return;
  mine.products_waited = mine.products - pending;
  learn_end(warp, all, product_epoch(warp).warp, mine.products_waited);
}

}  // namespace tartan::inline TARTAN_ABI::emulator
