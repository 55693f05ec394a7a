// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/grid.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::size_t window = 64;           // of the clusters that start next
constexpr std::uint64_t between_polls = 64;  // turns
constexpr std::uint32_t poll_instructions = 4096;
constexpr int rounds_of_a_deadlock = 256, most_rounds = 1 << 20;

}  // namespace

Grid::Grid(LaunchContext& context, Schedule& schedule, std::uint64_t most)
    : context_(context),
      schedule_(schedule),
      clusters_(context.launch.grid.count() / context.cluster.count()),
      room_(schedule.residents(std::min(most, clusters_))) {
  schedule_.begin_launch();
  context_.cancel = [this]() -> std::optional<Dim3> {
    const auto index = take();
    if (!index) return std::nullopt;
    ++done_;
    return Cluster::first_block(context_, *index);
  };
}

// A cluster that has not started.
std::optional<std::uint64_t> Grid::take() {
  while (waiting_.size() < window && next_ < clusters_) waiting_.push_back(next_++);
  if (waiting_.empty()) return std::nullopt;
  const auto at = waiting_.begin() + static_cast<std::ptrdiff_t>(schedule_.starts(waiting_.size()));
  const std::uint64_t index = *at;
  waiting_.erase(at);
  return index;
}

void Grid::admit() {
  while (residents_.size() < room_) {
    const auto index = take();
    if (!index) return;
    if (idle_.empty()) idle_.push_back(std::make_unique<Cluster>(context_));
    Resident& made = residents_.emplace_back(Resident{std::move(idle_.back()), *index, {}});
    idle_.pop_back();
    made.cluster->start(*index);
    look(made);
  }
}

void Grid::run(const std::function<void(std::uint64_t)>& progress) {
  admit();
  while (!residents_.empty()) {
    collect();
    const std::uint64_t done = done_;
    if (agents_.empty()) wait_for_change();
    else if (schedule_.polls() && ++turns_ % between_polls == 0 && !blocked_.empty()) poll();
    else give_turn(schedule_.next(agents_));
    for (std::size_t i = 0; i < residents_.size();) {
      Cluster& cluster = *residents_[i].cluster;
      if (cluster.stopped() || cluster.done()) end(i);
      else ++i;
    }
    if (finding_) return;
    admit();
    if (done_ != done) progress(done_);
  }
}

// What can go on in a cluster.
void Grid::look(Resident& resident) {
  Cluster& cluster = *resident.cluster;
  resident.agents.clear();
  for (std::uint32_t rank = 0; rank < cluster.size(); ++rank)
    for (Warp& warp : cluster.block(rank).warps()) {
      if (warp.done()) continue;
      warp.wake();
      for (std::size_t i = 0; i < warp.groups.size(); ++i) {
        const Group& group = warp.groups[i];
        if (group.state != Group::State::ready) continue;
        const auto lane = static_cast<std::uint64_t>(std::countr_zero(group.mask));
        const std::uint64_t thread =
            (std::uint64_t{rank} * cluster.block(rank).warps().size() + warp.index) * 32 + lane;
        resident.agents.push_back({.id = resident.index << 32 | thread << 1,
                                   .warp = &warp,
                                   .group = i,
                                   .waiting = cluster.block(rank).still_waits(group)});
      }
    }
  const Late& late = *cluster.late();
  for (std::size_t i = 0; i < late.size(); ++i)
    if (late.can_advance(i))
      resident.agents.push_back({.id = resident.index << 32 | late.number(i) << 1 | 1, .group = i});
}

void Grid::collect() {
  agents_.clear();
  blocked_.clear();
  for (std::size_t i = 0; i < residents_.size(); ++i)
    for (Agent agent : residents_[i].agents) {
      agent.cluster = i;
      (agent.waiting ? blocked_ : agents_).push_back(agent);
    }
}

void Grid::give_turn(const Schedule::Turn& turn) {
  const Agent& agent = agents_[turn.agent];
  Resident& resident = residents_[agent.cluster];
  if (agent.warp) agent.warp->block->run_group(*agent.warp, agent.group, turn.instructions);
  else resident.cluster->late()->advance(agent.group);
  look(resident);
}

// Lanes that wait may do so in loops that look at other things, too. Whether one does not any more.
bool Grid::poll() {
  bool any = false;
  for (const Agent& agent : blocked_) {
    Resident& resident = residents_[agent.cluster];
    const auto same = std::ranges::find_if(
        resident.agents, [&](const Agent& each) { return each.id == agent.id && each.waiting; });
    if (same == resident.agents.end()) continue;
    const std::uint64_t id = agent.id;
    agent.warp->block->run_group(*agent.warp, same->group, poll_instructions);
    if (resident.cluster->stopped()) return true;
    look(resident);
    any |= std::ranges::none_of(resident.agents,
                                [&](const Agent& each) { return each.id == id && each.waiting; });
  }
  return any;
}

// All wait: until one of them goes on, or nothing will ever change.
void Grid::wait_for_change() {
  for (int rounds = 0, patience = rounds_of_a_deadlock; !blocked_.empty(); ++rounds) {
    if (poll()) return;
    collect();
    if (!agents_.empty()) return;
    if (rounds < patience) continue;
    for (Resident& each : residents_) {
      each.cluster->report_deadlock();
      if (each.cluster->stopped()) return;
    }
    patience = std::min(2 * patience, most_rounds);
    rounds = 0;
  }
  for (Resident& each : residents_) {
    each.cluster->report_deadlock();
    if (each.cluster->stopped()) return;
  }
}

void Grid::end(std::size_t at) {
  Resident& resident = residents_[at];
  resident.cluster->count(report_);
  if (const auto& finding = resident.cluster->finding()) finding_ = *finding;
  else resident.cluster->finish();
  ++done_;
  idle_.push_back(std::move(resident.cluster));
  residents_.erase(residents_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace tartan::inline TARTAN_ABI::emulator
