// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/thread_clocks.h"

#include <algorithm>
#include <bit>
#include <span>

#include "runtime/emulator/machine/block.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t all = 0xFFFFFFFF;

}  // namespace

// ---- Places in memory.

// Nobody can say any more in which order they came, and all that comes is behind them.
void Location::seal_reductions() {
  writes_.join(reductions_);
  reductions_ = {};
}

void Location::use(const StrongUse& how, const Scoped<SharedTimes>& passed,
                   Scoped<SharedTimes>& forced) {
  const bool reduces = how.kind == StrongUse::Kind::reduces;
  if (!reduces || operation_ != how.operation) seal_reductions();
  forced.join(writes_);
  if (how.kind == StrongUse::Kind::reads) return reads_.join(passed);
  forced.join(reads_);
  writes_.join(reads_);
  reads_ = {};
  (reduces ? reductions_ : writes_).join(passed);
  operation_ = how.operation;
}

// ---- Threads.

ThreadClocks::ThreadClocks(Numbers numbers, Program program)
    : numbers_(numbers), program_(program), warps_(numbers.warps()) {}

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

ScopedPlace ThreadClocks::place(const Warp& warp) const {
  return {cluster_ * numbers_.blocks + warp.block->rank(), cluster_};
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

namespace {

std::uint32_t whole(std::uint32_t lanes, std::uint32_t of_warp) {
  return lanes == of_warp ? all : lanes;
}

}  // namespace

// What `lanes` of the group know, themselves included; lanes that do not exist do nothing.
void ThreadClocks::tell(const WarpState& state, const Warp& warp, const Group& group,
                        std::uint32_t lanes, VectorClock& to) const {
  to.join(group.now);
  const std::uint32_t own = this->own(state), these = whole(lanes, state.lanes);
  to.raise(own, these, state.time);
  if (numbers_.mbarriers) to.raise(own + numbers_.distance(Actor::init), these, state.time);
  for (const Actor actor : grouped) {
    const GroupsOfLanes& mine = state.asynchronous[place_of(actor)];
    if (mine.empty()) continue;
    const std::uint32_t number = own + numbers_.distance(actor);
    const std::uint32_t common = mine[static_cast<std::uint32_t>(std::countr_zero(lanes))].waited;
    bool even = true;
    for (std::uint32_t m = lanes; m && even; m &= m - 1)
      even = mine[static_cast<std::uint32_t>(std::countr_zero(m))].waited == common;
    if (even) {
      to.raise(number, these, common);
      continue;
    }
    for (std::uint32_t m = lanes; m; m &= m - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
      to.raise(number, 1u << lane, mine[lane].waited);
    }
  }
  const bool fences = std::ranges::any_of(group.sequential, &Fence::time);
  if (fences)
    to.fences().change(
        [&](Fences& known) { known.passed.join(passed(state, warp, group, lanes)); });
}

void ThreadClocks::release(const Warp& warp, std::uint32_t lanes, VectorClock& to) {
  WarpState& mine = state(warp);
  for (const Group& group : mine.groups)
    if (const std::uint32_t here = group.lanes & lanes) tell(mine, warp, group, here, to);
  ++mine.time;
}

void ThreadClocks::acquire(const Warp& warp, std::uint32_t lanes, const VectorClock& from) {
  each_group(state(warp), lanes, [&](Group& group) { group.now.join(from); });
}

void ThreadClocks::learn_end(const Warp& warp, std::uint32_t lanes, std::uint32_t number,
                             std::uint32_t time) {
  each_group(state(warp), lanes, [&](Group& group) { group.now.raise(number, all, time); });
}

// Lanes whose fences or relaxed reads differ stay apart: a pattern is of one thread.
void ThreadClocks::meet(const Warp& warp, std::uint32_t lanes, const VectorClock& from) {
  WarpState& mine = state(warp);
  VectorClock together = fresh();
  together.join(from);
  std::vector<Group> met;
  each_group(mine, lanes & mine.lanes, [&](Group& group) {
    const auto alike = std::ranges::find_if(met, [&](const Group& other) {
      return std::ranges::equal(group.before, other.before) &&
             std::ranges::equal(group.seen, other.seen);
    });
    if (alike != met.end()) {
      alike->lanes |= group.lanes;
      alike->tensor.join(group.tensor);
    } else {
      group.now = together;
      std::ranges::fill(group.sequential, Fence{});  // `together` has them
      met.push_back(std::move(group));
    }
    group.lanes = 0;
  });
  std::erase_if(mine.groups, [](const Group& group) { return group.lanes == 0; });
  std::ranges::move(met, std::back_inserter(mine.groups));
}

void ThreadClocks::sync_warp(const Warp& warp, std::uint32_t lanes) {
  VectorClock all_know = fresh();
  release(warp, lanes, all_know);
  meet(warp, lanes, all_know);
}

// ---- Fences and strong operations.

ThreadClocks::Fence ThreadClocks::fence_of(const WarpState& state, const Group& group) const {
  Fence made{group.now.knowledge(), state.time, {}};
  for (const Actor actor : grouped) {
    const GroupsOfLanes& mine = state.asynchronous[place_of(actor)];
    if (mine.empty()) continue;
    LaneTimes waited;
    for (std::uint32_t m = group.lanes; m; m &= m - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
      waited.raise(1u << lane, mine[lane].waited);
    }
    made.waited.emplace_back(own(state) + numbers_.distance(actor), std::move(waited));
  }
  return made;
}

Knowledge ThreadClocks::before(const WarpState& state, const Fence& fence,
                               std::uint32_t lanes) const {
  if (!fence.time) return fence.known;  // none, or of mbarrier.init alone
  VectorClock known = fresh();
  const std::uint32_t own = this->own(state), these = whole(lanes, state.lanes);
  known.join(fence.known);
  known.raise(own, these, fence.time);
  if (numbers_.mbarriers) known.raise(own + numbers_.distance(Actor::init), these, fence.time);
  for (const auto& [number, waited] : fence.waited)
    for (std::uint32_t m = lanes; m; m &= m - 1)
      known.raise(number, m & (0 - m), waited[static_cast<std::uint32_t>(std::countr_zero(m))]);
  return known.knowledge();
}

Scoped<SharedTimes> ThreadClocks::passed(const WarpState& state, const Warp& warp,
                                         const Group& group, std::uint32_t lanes) const {
  Scoped<SharedTimes> out;
  if (group.now.fences()) out = group.now.fences()->passed;
  for (std::size_t i = program_.narrow ? 0 : scopes - 1; i < scopes; ++i)
    if (group.sequential[i].time)
      out.add(before(state, group.sequential[i], lanes).times, static_cast<Scope>(i), place(warp));
  return out;
}

void ThreadClocks::fence(const Warp& warp, std::uint32_t lanes, Ordering ordering) {
  WarpState& mine = state(warp);
  const std::size_t reach = static_cast<std::size_t>(ordering.scope) + 1;
  each_group(mine, lanes, [&](Group& group) {
    if (ordering.acquires && group.read) {
      for (Knowledge& each : std::span(group.seen, reach)) {
        group.now.join(each);
        each = {};
      }
      group.read = std::ranges::any_of(group.seen,
                                       [](const Knowledge& each) { return !each.times.empty(); });
    }
    if (ordering.sequential && group.now.fences())
      SharedFences(group.now.fences())
          ->forced.heard(ordering.scope, place(warp),
                         [&](const SharedTimes& each) { group.now.join(each); });
    if (!ordering.releases) return;
    const Fence here = fence_of(mine, group);
    std::ranges::fill(std::span(group.before, reach), here);
    if (ordering.sequential) std::ranges::fill(std::span(group.sequential, reach), here);
    group.fenced = true;
  });
  if (ordering.releases) ++mine.time;
}

void ThreadClocks::fence_inits(const Warp& warp, std::uint32_t lanes) {
  WarpState& mine = state(warp);
  each_group(mine, lanes, [&](Group& group) {
    VectorClock inits = fresh();
    inits.raise(number(warp, Actor::init), whole(group.lanes, mine.lanes), mine.time);
    for (Fence& each : std::span(group.before, static_cast<std::size_t>(Scope::cluster) + 1))
      each.known.join(inits.knowledge());
    group.fenced = true;
  });
  ++mine.time;
}

void ThreadClocks::fence_proxy(const Warp& warp, std::uint32_t lanes, bool shared, bool global) {
  WarpState& mine = state(warp);
  each_group(mine, lanes, [&](Group& group) {
    for (const Actor fenced : {Actor::fenced_shared, Actor::fenced_global}) {
      if (!(fenced == Actor::fenced_shared ? shared : global)) continue;
      group.now.copy(numbers_.warps(), numbers_.distance(fenced));
      group.now.raise(number(warp, fenced), whole(group.lanes, mine.lanes), mine.time);
    }
  });
  ++mine.time;
}

void ThreadClocks::publish(const Warp& warp, std::uint32_t lanes, Location& at, Ordering ordering,
                           bool replaces) {
  WarpState& mine = state(warp);
  const std::size_t first = program_.narrow ? 0 : scopes - 1,
                    reach = static_cast<std::size_t>(ordering.scope) + 1;
  if (replaces) at.published = {};
  each_group(mine, lanes, [&](Group& group) {
    if (ordering.releases) {
      VectorClock known = fresh();
      tell(mine, warp, group, group.lanes, known);
      const Knowledge told = known.knowledge();
      for (std::size_t i = first; i < reach; ++i)
        at.published.add(told, static_cast<Scope>(i), place(warp));
    } else if (group.fenced) {
      for (std::size_t i = first; i < reach; ++i)
        at.published.add(before(mine, group.before[i], group.lanes), static_cast<Scope>(i),
                         place(warp));
    }
  });
  if (ordering.releases) ++mine.time;
}

bool ThreadClocks::can_publish(const Warp& warp, std::uint32_t lanes, Ordering ordering) const {
  return ordering.releases ||
         std::ranges::any_of(warps_[index(warp)].groups, [&](const Group& group) {
           return group.lanes & lanes &&
                  (group.fenced || (program_.sequential && group.now.fences()));
         });
}

void ThreadClocks::release_fenced(const Warp& warp, std::uint32_t lanes, Scope scope,
                                  VectorClock& to) {
  const WarpState& mine = state(warp);
  for (const Group& group : mine.groups) {
    const Fence& fence = group.before[static_cast<std::size_t>(scope)];
    const std::uint32_t here = group.lanes & lanes;
    if (here && group.fenced) to.join(before(mine, fence, here));
  }
}

void ThreadClocks::acquire_relaxed(const Warp& warp, std::uint32_t lanes, const VectorClock& from,
                                   Scope scope) {
  const Knowledge told = from.knowledge();
  each_group(state(warp), lanes, [&](Group& group) {
    group.seen[static_cast<std::size_t>(scope)].join(told);
    group.read = true;
  });
}

void ThreadClocks::learn(const Warp& warp, std::uint32_t lanes, const Location& at,
                         Ordering ordering) {
  if (at.published.empty()) return;
  each_group(state(warp), lanes, [&](Group& group) {
    for (std::size_t i = 0; i <= static_cast<std::size_t>(ordering.scope); ++i) {
      const Knowledge* told = at.published.find(static_cast<Scope>(i), place(warp));
      if (!told) continue;
      if (ordering.acquires) group.now.join(*told);
      else group.seen[i].join(*told);
      group.read |= !ordering.acquires;
    }
  });
}

void ThreadClocks::use(const Warp& warp, std::uint32_t lanes, Location& at, const StrongUse& how) {
  if (!program_.sequential) return;
  WarpState& mine = state(warp);
  each_group(mine, lanes, [&](Group& group) {
    Scoped<SharedTimes> forced;
    at.use(how, passed(mine, warp, group, group.lanes), forced);
    if (!forced.empty())
      group.now.fences().change([&](Fences& known) { known.forced.join(forced); });
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
}

void ThreadClocks::issue_to_core(const Warp& warp, std::uint32_t pc) {
  WarpState& mine = state(warp);
  if (mine.to_core.pc == pc && mine.to_core.time == mine.time) return;  // another of its accesses
  mine.to_core = {pc, ++mine.time};
}

void ThreadClocks::release_core(const Warp& warp, std::uint32_t lane, VectorClock& to) {
  WarpState& mine = state(warp);
  const std::uint32_t bit = 1u << lane;
  to.raise(number(warp, Actor::tensor_core), bit, mine.time);
  each_group(mine, bit, [&](Group& group) {  // it contains before_thread_sync
    group.now.raise(number(warp, Actor::fenced_core), bit, mine.time);
    if (mine.to_core.time) to.join(group.now);
  });
  if (mine.to_core.time) to.raise(number(warp, Actor::thread), bit, mine.to_core.time - 1);
  ++mine.time;
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
  mine.products_waited = std::max(mine.products_waited, mine.products - pending);
  learn_end(warp, all, product_epoch(warp).warp, mine.products_waited);
}

}  // namespace tartan::TARTAN_ABI::emulator
