// SPDX-License-Identifier: Apache-2.0
// What all events have in common: time, places, limits, and how they reach the timeline.
#include "runtime/emulator/timeline/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/places.h"

namespace tartan::TARTAN_ABI::emulator {

void LaunchTimeline::begin(Cluster& cluster, std::uint64_t index) {
  cluster.dismiss<ClusterTimeline>();
  if (index != 0 && (index + 1) * cluster.size() > to_.limits().ctas) return;
  cluster.listen(*(clusters_[index] = std::make_unique<ClusterTimeline>(*this, cluster)));
}

bool LaunchTimeline::admit() {
  if (events_ < to_.limits().events) return ++events_, true;
  ++left_out_;
  return false;
}

void LaunchTimeline::finish() {
  std::vector<TimelineCta> ctas;
  std::vector<TimelineBarrier> barriers;
  std::vector<TimelineEvent> events;
  for (const auto& [index, cluster] : clusters_) cluster->move_to(ctas, barriers, events);
  TimelineLaunch launch{.kernel = context_.program.name,
                        .shape = context_.launch,
                        .ctas = context_.launch.grid.count(),
                        .kept_ctas = ctas.size(),
                        .left_out = left_out_,
                        .stopped = stopped_};
  launch.shape.cluster = context_.cluster;
  to_.add(std::move(launch), std::move(ctas), std::move(barriers), std::move(events));
}

// A warp's life is always there, whatever the limit.
ClusterTimeline::ClusterTimeline(LaunchTimeline& launch, Cluster& cluster)
    : launch_(launch), cluster_(&cluster) {
  for (std::uint32_t rank = 0; rank < cluster.size(); ++rank) {
    Block& block = cluster.block(rank);
    ctas_.push_back({.place = block.place()});
    work_.emplace_back(block.warps().size());
    for (const Warp& warp : block.warps()) {
      lives_[&warp] = events_.size();
      events_.push_back({.kind = Kind::warp,
                         .cta = rank,
                         .warp = static_cast<std::int32_t>(warp.index),
                         .ended = false,
                         .lanes = warp.live,
                         .name = "warp"});
    }
  }
}

// Steps of all warps so far, the running instruction included.
std::uint64_t ClusterTimeline::clock() {
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < cluster_->size(); ++rank)
    for (const Warp& warp : cluster_->block(rank).warps()) sum += warp.steps;
  return last_clock_ = sum;
}

std::int64_t ClusterTimeline::push(TimelineEvent event) {
  if (!launch_.admit()) return TimelineEvent::none;
  events_.push_back(std::move(event));
  return static_cast<std::int64_t>(events_.size()) - 1;
}

void ClusterTimeline::pop() {
  events_.pop_back();
  launch_.withdraw();
}

// One step of `warp`, up to now.
TimelineEvent ClusterTimeline::made(const Warp& warp, Kind kind, std::uint32_t pc) {
  const std::uint64_t now = clock();
  const LaunchContext& context = launch_.context();
  return {.kind = kind,
          .cta = warp.block->rank(),
          .warp = static_cast<std::int32_t>(warp.index),
          .begin = now > 0 ? now - 1 : 0,
          .end = now,
          .lanes = warp.mask,
          .count = 1,
          .opcode = std::string(opcode(context, pc)),
          .line = line(context, pc),
          .source = source(context, pc)};
}

void ClusterTimeline::exited(const Warp& warp) {
  const std::uint64_t now = clock();
  if (const auto life = lives_.find(&warp); life != lives_.end()) {
    events_[life->second].end = now;
    events_[life->second].ended = true;
    lives_.erase(life);
  }
  std::erase_if(waits_, [&](const Wait& wait) {
    if (wait.warp != &warp) return false;
    events_[wait.event].end = now;
    return true;
  });
}

void ClusterTimeline::stopped(const Finding& finding) {
  clock();
  launch_.stop(finding);
}

void ClusterTimeline::move_to(std::vector<TimelineCta>& ctas,
                              std::vector<TimelineBarrier>& barriers,
                              std::vector<TimelineEvent>& events) {
  for (auto& [place, barrier] : barriers_) {
    const bool awaited = std::ranges::any_of(
        waits_, [&](const Wait& wait) { return events_[wait.event].barrier == barrier.index; });
    if (!awaited && barrier.arrivals == 0 && barrier.bytes == 0) continue;
    if (const auto phase = end_phase(place, barrier, TimelineEvent::none); phase >= 0)
      at(phase).ended = false;
  }
  for (TimelineEvent& event : events_)
    if (!event.ended) event.end = last_clock_;
  for (std::uint32_t rank = 0; rank < ctas_.size(); ++rank)
    ctas_[rank].roles = detail::timeline_roles(work_[rank]);

  // In the order in which they began, CTA by CTA.
  std::vector<std::size_t> order(events_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return std::pair(events_[i].cta, events_[i].begin); });
  std::vector<std::int64_t> to(events_.size());
  const auto first = static_cast<std::int64_t>(events.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    to[order[i]] = first + static_cast<std::int64_t>(i);
  const auto first_cta = static_cast<std::uint32_t>(ctas.size());
  const auto first_barrier = static_cast<std::int32_t>(barriers.size());
  for (const std::size_t i : order) {
    TimelineEvent& event = events.emplace_back(std::move(events_[i]));
    event.cta += first_cta;
    if (event.barrier >= 0) event.barrier += first_barrier;
    const bool run = event.kind == Kind::copy || event.kind == Kind::product;
    if (run && event.count > 1) event.name += fmt::format(" x{}", event.count);
    if (event.cause >= 0) event.cause = to[static_cast<std::size_t>(event.cause)];
  }
  for (TimelineBarrier& barrier : barrier_names_) {
    barrier.cta += first_cta;
    barriers.push_back(std::move(barrier));
  }
  std::ranges::move(ctas_, std::back_inserter(ctas));
}

}  // namespace tartan::TARTAN_ABI::emulator
