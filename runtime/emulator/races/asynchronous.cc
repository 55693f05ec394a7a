// SPDX-License-Identifier: Apache-2.0
// Accesses of copies and products, and the mbarriers at which copies complete.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/races/async_judge.h"

namespace tartan::TARTAN_ABI::emulator {

void ClusterRaces::asynchronous(Warp& warp, int lane, const AsyncAccess& access) {
  Place where;
  if (!access.bytes) return;
  if (!find_place(warp, access.window, access.address, access.bytes, where)) return;
  const auto issuer = static_cast<std::uint32_t>(lane);
  const std::uint32_t strength = access.strong ? 1 + static_cast<std::uint32_t>(*access.strong) : 0;
  const Past now{access.who.warp, access.who.time, Deed(warp.pc - 1, access.who.lane, strength)};
  AsyncJudge judge(*this, warp, issuer, access, where);
  if (access.writes) shadow(where).write(where.address, access.bytes, now, judge);
  else shadow(where).read(where.address, access.bytes, now, 1u << access.who.lane, judge);
  if (launch_.predecessor && !where.shared) {
    RaceSide side = this->side(access.who.warp, warp, issuer);
    side.writes = access.writes;
    judge_predecessor(warp, 1u << issuer, where, access.bytes, side, now.deed.wide());
  }
  note_outliving(warp, where, access.who, access.writes);
}

std::optional<std::uint64_t> ClusterRaces::address_of(const std::byte* at) const {
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank) {
    Block& block = cluster_.block(rank);
    const std::byte* first = block.shared();
    if (!std::less<>()(at, first) && std::less<>()(at, first + block.shared_bytes()))
      return place_of_rank(rank) | static_cast<std::uint64_t>(at - first);
  }
  return std::nullopt;
}

void ClusterRaces::acquire_map(Warp& warp, const std::uint64_t* at, Window window) {
  VectorClock known = clocks_.fresh();
  clocks_.release(warp, warp.mask, known);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    Place where;
    if (find_place(warp, window, at[std::countr_zero(m)], where) && !where.shared)
      maps_[{warp.block->rank(), where.address}].join(known);
  }
}

// ---- mbarriers.

void ClusterRaces::access_mbarrier(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier,
                                   Actor actor, std::uint32_t alike, bool invalidates,
                                   std::optional<Epoch> over, std::optional<Epoch> or_over) {
  const auto address = address_of(mbarrier);
  if (!address) return;
  std::uint64_t at[32];
  std::ranges::fill(at, *address);
  const bool writes = actor == Actor::init;
  // A commit that tracks nothing new arrives with the one before it; in another CTA, which may
  // have exited, it counts for itself.
  const std::uint32_t own = warp.block->rank();
  const bool with_issue = actor == Actor::tensor_core && rank_at(*address, own) == own;
  access(warp, WatchedAccess{.window = Window::cluster,
                             .lanes = lanes,
                             .bytes = 8,
                             .at = at,
                             .writes = writes,
                             .strong = !writes,
                             .actor = actor,
                             .mbarrier = true,
                             .invalidates = invalidates,
                             .scope = Scope::cluster,
                             .alike = alike,
                             .time = with_issue ? last_issue(warp, static_cast<std::uint32_t>(
                                                                       std::countr_zero(lanes)))
                                                : 0,
                             .over = over,
                             .or_over = or_over});
}

void ClusterRaces::initialise(Warp& warp, int lane, const std::byte* mbarrier,
                              std::uint32_t alike) {
  access_mbarrier(warp, 1u << lane, mbarrier, Actor::init, alike);
  const auto [found, fresh] = mbarriers_.try_emplace(mbarrier);
  Phases& made = found->second;
  made.valid = true;
  // The next one in the same place goes on with its count of phases, at one of parity 0.
  made.phases = (made.phases + 1) / 2 * 2;
  made.made = {clocks_.number(warp), clocks_.time(warp), static_cast<std::uint32_t>(lane)};
  made.made_at = warp.pc - 1;
  made.fenced = {};
  if (!fresh || mbarrier_places_.size() >= clocks_.numbers().mbarriers) return;
  made.number = clocks_.number_of_mbarrier(static_cast<std::uint32_t>(mbarrier_places_.size()));
  mbarrier_places_.push_back(address_of(mbarrier).value_or(0) & shared_offset_mask);
}

void ClusterRaces::invalidate(Warp& warp, int lane, const std::byte* mbarrier) {
  access_mbarrier(warp, 1u << lane, mbarrier, Actor::init, 0, true);
  if (const auto found = mbarriers_.find(mbarrier); found != mbarriers_.end())
    found->second.valid = false;
}

bool ClusterRaces::exists(Warp& warp, int lane, const std::byte* mbarrier) {
  const auto found = mbarriers_.find(mbarrier);
  if (found != mbarriers_.end() && found->second.valid) return true;
  const std::uint64_t offset = address_of(mbarrier).value_or(0) & shared_offset_mask;
  warp.fail("mbarrier"_rule,
            fmt::format(
                "no mbarrier at shared address 0x{:x}: expected mbarrier.init before its first use",
                offset),
            lane, offset);
  return false;
}

bool ClusterRaces::use_mbarrier(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
                                const MbarrierUse& use) {
  if (use.action == MbarrierAction::invalidate) return true;
  if (use.action != MbarrierAction::init)
    return this->use(warp, lanes, mbarrier,
                     use.by_copies        ? Actor::cp_async
                     : use.by_tensor_core ? Actor::tensor_core
                                          : Actor::thread);
  initialise(warp, std::countr_zero(lanes), mbarrier, use.alike);
  return true;
}

void ClusterRaces::count_mbarrier(Warp& warp, int lane, std::byte* mbarrier, MbarrierAction action,
                                  std::uint32_t) {
  if (action == MbarrierAction::invalidate) invalidate(warp, lane, mbarrier);
}

bool ClusterRaces::test_mbarrier(Warp& warp, int lane, std::byte* mbarrier, bool) {
  return exists(warp, lane, mbarrier);
}

// What counts in a phase is over when that is.
bool ClusterRaces::use(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier, Actor actor,
                       std::optional<Epoch> over) {
  if (!exists(warp, std::countr_zero(lanes), mbarrier)) return false;
  access_mbarrier(warp, lanes, mbarrier, actor, 0, false, over, completing_on(mbarrier));
  return !cluster_.stopped();
}

ClusterRaces::Phases& ClusterRaces::phases(const std::byte* mbarrier) {
  return mbarriers_[mbarrier];
}

VectorClock& ClusterRaces::pending(const Warp& warp, const std::byte* mbarrier, Arriver by) {
  auto& all = phases(mbarrier).arrivals;
  for (Arrivals& each : all)
    if (each.rank == warp.block->rank() && each.by == by) return each.pending;
  return all.emplace_back(Arrivals{warp.block->rank(), by, clocks_.fresh(), clocks_.fresh()})
      .pending;
}

void ClusterRaces::arrived_at_mbarrier(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
                                       MbarrierArrival arrival) {
  const auto [relaxed, of_cta, by_copies] = arrival;
  for (std::uint32_t m = by_copies ? lanes : 0; m; m &= m - 1)
    clocks_.release_copies(warp, m & (0 - m), pending(warp, mbarrier, Arriver::thread));
  if (by_copies) return;
  const Arriver by = of_cta ? Arriver::thread_of_cta : Arriver::thread;
  if (!relaxed) return clocks_.release(warp, lanes, pending(warp, mbarrier, by));
  // Other CTAs are reached by a fence that reaches them.
  clocks_.release_fenced(warp, lanes, Scope::cta, pending(warp, mbarrier, Arriver::thread_of_cta));
  if (!of_cta) clocks_.release_fenced(warp, lanes, Scope::cluster, pending(warp, mbarrier, by));
}

void ClusterRaces::ended_phase(Cluster&, std::byte* mbarrier) {
  Phases& all = phases(mbarrier);
  ++all.phases;
  for (Arrivals& each : all.arrivals) {
    each.known.join(each.pending);
    each.pending.clear();
  }
}

void ClusterRaces::passed(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
                          const MbarrierPass& pass) {
  const WaitScope scope = pass.scope;
  const Phases& all = phases(mbarrier);
  for (const Arrivals& each : all.arrivals) {
    const bool foreign = each.rank != warp.block->rank();
    // The CuTe DSL waits so for the tensor core of the other CTA.
    const bool narrow = scope == WaitScope::cta && each.by != Arriver::tensor_core;
    if (foreign && (each.by == Arriver::thread_of_cta || narrow)) continue;
    if (foreign && scope != WaitScope::cluster) note_narrow(warp, lanes, each.known);
    if (foreign && scope == WaitScope::cluster) forget_narrow(warp.block->rank(), each.known);
    if (pass.relaxed)
      clocks_.acquire_relaxed(warp, lanes, each.known, foreign ? Scope::cluster : Scope::cta);
    else clocks_.acquire(warp, lanes, each.known);
  }
  if (all.number) clocks_.learn_end(warp, lanes, *all.number, all.phases);
  access_mbarrier(warp, lanes, mbarrier, Actor::thread);
}

// What lanes do to an mbarrier is over when they have come to a collective: the one that then
// invalidates it, or that lets another thread know, comes behind it. No clock says so, since
// collectives order no memory, but neither does memory decide it: an mbarrier is used by
// instructions that the lanes have executed.
void ClusterRaces::met(Warp& warp) {
  if (!warp.program->invalidates) return;
  std::vector<Meeting>& all = meetings_[clocks_.number(warp)];
  const std::uint32_t time = clocks_.time(warp);
  if (!all.empty() && all.back().time == time && all.back().lanes == warp.mask) return;
  all.push_back({time, warp.mask});
  clocks_.tick(warp);
}

bool ClusterRaces::knows_by_meeting(const Warp& warp, std::uint32_t lane,
                                    const Epoch& epoch) const {
  const auto found = meetings_.find(epoch.warp);
  if (found == meetings_.end()) return false;
  std::uint32_t together = 1u << epoch.lane;
  for (const Meeting& each : found->second) {
    if (each.time < epoch.time || !(each.lanes & together)) continue;
    together |= each.lanes;
    for (std::uint32_t m = each.lanes; m; m &= m - 1)
      if (clocks_.knows(warp, lane,
                        {epoch.warp, each.time, static_cast<std::uint32_t>(std::countr_zero(m))}))
        return true;
  }
  return false;
}

void ClusterRaces::fence_inits(Warp& warp) {
  for (auto& [at, all] : mbarriers_)
    if (all.made.warp == clocks_.number(warp) && warp.mask >> all.made.lane & 1)
      all.fenced = {clocks_.number(warp, Actor::init), clocks_.time(warp), all.made.lane};
  clocks_.fence_inits(warp, warp.mask);
}

void ClusterRaces::completes_at(const Warp& warp, int lane, const std::byte* mbarrier) {
  const auto address = address_of(mbarrier);
  if (!launch_.whole || !address) return;
  const Phases& all = phases(mbarrier);
  const auto issuer = static_cast<std::uint32_t>(lane);
  const Numbers& numbers = clocks_.numbers();
  const Epoch seen{numbers.as(Actor::fenced_shared, all.made.warp), all.made.time, all.made.lane};
  if (!all.made.time || clocks_.knows(warp, issuer, seen) ||
      (all.fenced.time && clocks_.knows(warp, issuer, all.fenced)))
    return;
  const RaceSide init{.actor = Actor::init,
                      .thread = all.made.warp,
                      .lane = all.made.lane,
                      .pc = all.made_at,
                      .writes = true};
  launch_.reports.add({.kind = Race::Kind::init_unfenced,
                       .first = init,
                       .second = side(clocks_.number(warp), warp, issuer),
                       .rank = rank_at(*address, 0),
                       .address = *address & shared_offset_mask});
}

// ---- Waits of scope .cta for other blocks.

namespace {

std::uint32_t latest(const LaneTimes& times) {
  std::uint32_t out = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) out = std::max(out, times[lane]);
  return out;
}

}  // namespace

// Before the lanes learn it.
void ClusterRaces::note_narrow(const Warp& warp, std::uint32_t lanes, const VectorClock& known) {
  if (!launch_.whole) return;
  const std::uint32_t own = warp.block->rank();
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank)
    for (const Warp& other : cluster_.block(rank).warps()) {
      const std::uint32_t of = clocks_.number(other);
      const LaneTimes* const times = rank == own ? nullptr : known.find(of);
      const std::uint32_t last = times ? latest(*times) : 0;
      if (!last || clocks_.all_know(warp, lanes, of, last)) continue;
      std::uint32_t before = 0;
      for (std::uint32_t end = last; end - before > 1;) {
        const std::uint32_t middle = before + (end - before) / 2;
        (clocks_.all_know(warp, lanes, of, middle) ? before : end) = middle;
      }
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
      const Narrow now{before, last, side(clocks_.number(warp), warp, lane)};
      const auto [found, fresh] = narrow_.try_emplace({own, of}, now);
      Narrow& all = found->second;
      if (!fresh && before > all.up_to) all = now;
      all.up_to = std::max(all.up_to, last);
    }
}

void ClusterRaces::forget_narrow(std::uint32_t rank, const VectorClock& known) {
  for (auto at = narrow_.lower_bound({rank, 0}); at != narrow_.end() && at->first.first == rank;) {
    Narrow& each = at->second;
    if (const LaneTimes* times = known.find(at->first.second))
      each.after = std::max(each.after, times->least());
    at = each.after < each.up_to ? std::next(at) : narrow_.erase(at);
  }
}

const ClusterRaces::Narrow* ClusterRaces::narrow(const Warp& warp, const Past& past) const {
  if (narrow_.empty()) return nullptr;
  const auto found = narrow_.find({warp.block->rank(), past.warp});
  if (found == narrow_.end()) return nullptr;
  const Narrow& each = found->second;
  return past.time > each.after && past.time <= each.up_to ? &each : nullptr;
}

void ClusterRaces::note_use(const Warp& warp, const Past& past, const Place& place) {
  const Narrow* const found = narrow(warp, past);
  if (!found) return;
  Race race = race_with(past, true, place, place.address);
  race.kind = Race::Kind::narrow_wait;
  race.second = found->wait;
  race.use = warp.pc - 1;
  launch_.reports.add(race);
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> ClusterRaces::place_of(
    const Warp& warp, Window window, std::uint64_t address) const {
  Place where;
  if (!find_place(warp, window, address, where)) return std::nullopt;
  const Numbers& numbers = clocks_.numbers();
  const std::uint64_t first =
      std::uint64_t{numbers.cluster(clocks_.number(warp))} * numbers.blocks + 1;
  return std::pair(where.shared ? first + where.rank : 0, where.address);
}

std::optional<Epoch> ClusterRaces::completing_on(const std::byte* mbarrier) const {
  const auto found = mbarriers_.find(mbarrier);
  if (found == mbarriers_.end() || !found->second.number) return std::nullopt;
  return Epoch{*found->second.number, found->second.phases + 1, 0};
}

// ---- Copies.

bool ClusterRaces::issue_copy(Warp& warp, int lane, const AsyncCopy& copy) {
  const Filled& filled = copy.filled;
  if (!use(warp, 1u << lane, copy.mbarrier, Actor::thread, completing_on(copy.mbarrier)))
    return false;
  if (!filled.generic) completes_at(warp, lane, copy.mbarrier);
  const auto who = completing_on(copy.mbarrier);
  if (!who) return true;
  for (const Stretch& each : filled.from)
    asynchronous(warp, lane,
                 {.who = *who,
                  .window = each.window,
                  .address = each.address,
                  .bytes = each.bytes,
                  .strong = filled.strong_from});
  if (filled.map)
    asynchronous(warp, lane,
                 {.who = *who, .address = *filled.map, .bytes = map_bytes, .map = true});
  if (const auto address = filled.at ? address_of(filled.at) : std::nullopt)
    asynchronous(warp, lane,
                 {.who = *who,
                  .window = Window::cluster,
                  .address = *address,
                  .bytes = filled.room,
                  .writes = true,
                  .strong = filled.strong,
                  .generic = filled.generic});
  if (filled.shape) this->filled(warp, filled.at, filled.room, *filled.shape, *who);
  return !cluster_.stopped();
}

void ClusterRaces::completed(Cluster& cluster, const Completion& completion) {
  if (completion.ends) ended_phase(cluster, completion.mbarrier);
}

bool ClusterRaces::access_by_group(Warp& warp, int lane, const GroupAccess& access) {
  const auto issuer = static_cast<std::uint32_t>(lane);
  const Actor actor = access.writes ? Actor::bulk_write : Actor::bulk_read;
  asynchronous(warp, lane,
               {.who = clocks_.group_epoch(warp, issuer, actor),
                .window = access.where.window,
                .address = access.where.address,
                .bytes = access.where.bytes,
                .writes = access.writes,
                .strong = access.strong,
                .map = access.map,
                .alike = access.alike});
  return !cluster_.stopped();
}

// ---- Groups.

void ClusterRaces::commit(Warp& warp, AsyncKind kind) {
  if (kind == AsyncKind::product) return clocks_.commit_products(warp);
  if (kind == AsyncKind::copy) return clocks_.commit(warp, warp.mask, Actor::cp_async);
  clocks_.commit(warp, warp.mask, Actor::bulk_read);
  clocks_.commit(warp, warp.mask, Actor::bulk_write);
}

void ClusterRaces::wait(Warp& warp, AsyncKind kind, std::optional<std::uint32_t> pending,
                        bool reads) {
  if (kind == AsyncKind::product) return clocks_.wait_for_products(warp, pending.value_or(0));
  if (kind == AsyncKind::copy) return clocks_.wait(warp, warp.mask, Actor::cp_async, pending);
  clocks_.wait(warp, warp.mask, Actor::bulk_read, pending);
  if (!reads) clocks_.wait(warp, warp.mask, Actor::bulk_write, pending);
}

}  // namespace tartan::TARTAN_ABI::emulator
