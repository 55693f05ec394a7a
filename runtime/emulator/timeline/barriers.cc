// SPDX-License-Identifier: Apache-2.0
// Arrivals at barriers, their phases, and who waits for them.
#include <fmt/format.h>

#include <bit>
#include <utility>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/timeline/recorder.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Second halves of a place, beside offsets of mbarriers in shared memory.
constexpr std::uint64_t numbered = std::uint64_t{1} << 32, of_cluster = numbered + 16,
                        of_warpgroups = of_cluster + 1, of_registers = numbered << 1;

constexpr bool is_mbarrier(std::uint64_t where) { return where < numbered; }

}  // namespace

ClusterTimeline::Place ClusterTimeline::place_of(const std::byte* at) const {
  for (std::uint32_t rank = 0; rank < cluster_->size(); ++rank) {
    Block& block = cluster_->block(rank);
    if (at >= block.shared() && at < block.shared() + block.shared_bytes())
      return {rank, static_cast<std::uint64_t>(at - block.shared())};
  }
  return {0, 0};
}

std::string ClusterTimeline::text(Place place) const {
  const std::uint64_t where = place.second;
  if (where == of_cluster) return "cluster barrier";
  if (!is_mbarrier(where)) return fmt::format("barrier {}", where - numbered);
  const std::string name = shared_text(launch_.context(), where);
  return fmt::format("mbarrier {}", name.substr(0, name.find(" (")));
}

ClusterTimeline::Barrier& ClusterTimeline::barrier(Place place) {
  const auto [found, is_new] = barriers_.try_emplace(place);
  if (is_new) {
    found->second.index = static_cast<std::int32_t>(barrier_names_.size());
    found->second.began = last_clock_ > 0 ? last_clock_ - 1 : 0;
    barrier_names_.push_back({.cta = place.first, .name = text(place)});
  }
  return found->second;
}

// The running instruction arrives.
void ClusterTimeline::arrive(Place place, std::uint64_t arrivals, std::uint64_t bytes) {
  Barrier& at_barrier = barrier(place);
  if (!is_mbarrier(place.second) && at_barrier.arrivals == 0)
    at_barrier.began = last_clock_ > 0 ? last_clock_ - 1 : 0;
  at_barrier.arrivals += arrivals;
  at_barrier.bytes += bytes;
  if (current_ < 0) return;
  TimelineEvent& event = at(current_);
  event.arrivals += arrivals;
  event.bytes += bytes;
  if (event.barrier < 0) {
    event.barrier = at_barrier.index;
    event.name = fmt::format("arrive at {}", text(place));
  }
}

std::int64_t ClusterTimeline::end_phase(Place place, Barrier& barrier, std::int64_t cause) {
  const std::uint64_t began = std::exchange(barrier.began, last_clock_);
  const std::uint64_t bytes = std::exchange(barrier.bytes, 0),
                      arrivals = std::exchange(barrier.arrivals, 0), number = barrier.phases++;
  return push({.kind = Kind::phase,
               .cta = place.first,
               .barrier = barrier.index,
               .begin = began,
               .end = last_clock_,
               .count = 1,
               .bytes = bytes,
               .arrivals = arrivals,
               .cause = cause,
               .name = fmt::format("phase {}", number)});
}

// ---- Waits.

// The running instruction is the wait (`own`), or arrives and then waits.
void ClusterTimeline::open_wait(const Warp& warp, Place place, bool parity, std::string name,
                                bool own) {
  if (current_ < 0) return;
  std::int64_t event = current_;
  if (!own) {
    TimelineEvent wait = at(current_);
    wait.kind = Kind::wait;
    wait.begin = wait.end;
    wait.lanes = warp.mask;
    wait.bytes = wait.arrivals = wait.multiply_adds = 0;
    event = push(std::move(wait));
  }
  if (event < 0) return;
  TimelineEvent& wait = at(event);
  wait.ended = false;
  wait.name = std::move(name);
  if (const auto known = barriers_.find(place); known != barriers_.end())
    wait.barrier = known->second.index;
  waits_.push_back({static_cast<std::size_t>(event), &warp, place, parity});
}

template <typename Which>
void ClusterTimeline::close_waits(std::int64_t cause, Which&& which) {
  std::erase_if(waits_, [&](const Wait& wait) {
    if (!which(wait)) return false;
    TimelineEvent& event = events_[wait.event];
    event.end = last_clock_;
    event.ended = true;
    if (cause != static_cast<std::int64_t>(wait.event)) event.cause = cause;
    return true;
  });
}

// ---- Barriers 0 to 15, and of the cluster.

void ClusterTimeline::arrived(Warp& warp, std::uint32_t id, std::uint32_t threads, bool waits) {
  clock();
  const Place place{warp.block->rank(), numbered + id};
  arrive(place, static_cast<std::uint64_t>(std::popcount(warp.mask)), 0);
  if (!waits) return;
  const std::string whom = threads ? fmt::format(" of {} threads", threads) : "";
  open_wait(warp, place, false, fmt::format("wait for barrier {}{}", id, whom), false);
}

void ClusterTimeline::released(Block& block, std::uint32_t id) {
  clock();
  const Place place{block.rank(), numbered + id};
  close_waits(current_, [&](const Wait& wait) { return wait.place == place; });
  end_phase(place, barrier(place), current_);
}

void ClusterTimeline::arrived_at_cluster(Warp& warp, bool) {
  clock();
  arrive({0, of_cluster}, static_cast<std::uint64_t>(std::popcount(warp.mask)), 0);
}

void ClusterTimeline::waits_for_cluster(Warp& warp) {
  clock();
  open_wait(warp, {0, of_cluster}, false, "wait for cluster barrier", true);
}

void ClusterTimeline::released_cluster(Cluster&) {
  clock();
  const Place place{0, of_cluster};
  close_waits(current_, [&](const Wait& wait) { return wait.place == place; });
  end_phase(place, barrier(place), current_);
}

// ---- The other warps of a warpgroup, and registers.

void ClusterTimeline::waits_for_warpgroup(Warp& warp) {
  clock();
  parked_ = true;
  const Place place{warp.block->rank(), of_warpgroups + warp.index / warps_of_warpgroup};
  open_wait(warp, place, false, "wait for the warpgroup", false);
}

void ClusterTimeline::gathered_warpgroup(Warp& warp) {
  clock();
  const Place place{warp.block->rank(), of_warpgroups + warp.index / warps_of_warpgroup};
  close_waits(current_, [&](const Wait& wait) { return wait.place == place; });
}

void ClusterTimeline::waits_for_registers(Warp& warp, std::uint32_t wanted) {
  clock();
  open_wait(warp, {warp.block->rank(), of_registers}, false,
            fmt::format("wait for {} registers per thread", wanted), true);
}

void ClusterTimeline::has_registers(const Warp& warp) {
  clock();
  const std::uint64_t where = of_registers;
  close_waits(current_,
              [&](const Wait& wait) { return wait.warp == &warp && wait.place.second == where; });
}

// ---- mbarriers.

void ClusterTimeline::count_mbarrier(Warp&, int, std::byte* at, MbarrierAction action,
                                     std::uint32_t count) {
  using Action = MbarrierAction;
  switch (action) {
    case Action::init: return initialised(at);
    case Action::invalidate: return;
    case Action::expect: return arrived_at(at, 0, count);
    case Action::complete: return void(completes(at, {}, count, 0));
    case Action::arrive_expect:
    case Action::arrive_drop_expect: return arrived_at(at, 1, count);
    case Action::arrive:
    case Action::arrive_drop: return arrived_at(at, count, 0);
  }
}

void ClusterTimeline::initialised(const std::byte* at) {
  clock();
  const Place place = place_of(at);
  Barrier& fresh = barrier(place);
  fresh = {.index = fresh.index, .began = last_clock_ - 1};
  if (current_ < 0) return;
  TimelineEvent& event = this->at(current_);
  event.barrier = fresh.index;
  event.name = fmt::format("init {}", text(place));
}

void ClusterTimeline::arrived_at(const std::byte* at, std::uint64_t arrivals, std::uint64_t bytes) {
  clock();
  const Place place = place_of(at);
  arrive(place, arrivals, 0);
  if (current_ >= 0) this->at(current_).bytes += bytes;
}

void ClusterTimeline::ended_phase(Cluster&, std::byte* at) { phase_ended(at, current_); }

void ClusterTimeline::phase_ended(const std::byte* at, std::int64_t cause) {
  clock();
  const Place place = place_of(at);
  Barrier& ended = barrier(place);
  const bool parity = !Mbarrier::load(at).phase;
  ended.flips[parity] = cause;
  end_phase(place, ended, ended.flips[parity]);
}

void ClusterTimeline::found_pending(Warp& warp, std::byte* at, bool parity) {
  clock();
  const Place place = place_of(at);
  for (const Wait& wait : waits_)
    if (wait.warp == &warp && wait.place == place && wait.parity == parity) {
      ++events_[wait.event].count;
      drop_ = true;
      return;
    }
  barrier(place);
  open_wait(warp, place, parity, fmt::format("wait for {}, phase parity {:d}", text(place), parity),
            true);
}

void ClusterTimeline::passed(Warp& warp, std::uint32_t, std::byte* at, const MbarrierPass& pass) {
  if (!pass.first) return;
  const bool parity = pass.parity;
  clock();
  const Place place = place_of(at);
  const Barrier& ended = barrier(place);
  land(place, parity);
  const auto same = [&](const Wait& wait) {
    return wait.warp == &warp && wait.place == place && wait.parity == parity;
  };
  for (const Wait& wait : waits_)
    if (same(wait)) {
      ++events_[wait.event].count;
      drop_ = true;
    }
  if (drop_) return close_waits(ended.flips[parity], same);
  if (current_ < 0) return;
  TimelineEvent& event = this->at(current_);
  event.barrier = ended.index;
  event.cause = ended.flips[parity];
  event.name = fmt::format("wait for {}, phase parity {:d}", text(place), parity);
}

}  // namespace tartan::TARTAN_ABI::emulator
