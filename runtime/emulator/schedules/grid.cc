// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "compiler/support/counted.h"
#include "runtime/emulator/schedules/polls.h"
#include "runtime/emulator/schedules/retry.h"

namespace tartan::TARTAN_ABI::emulator {
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
  schedule_.begin(context);
  // Others may have multiprocessors: clusters that would all fit are left to be taken.
  if (context.program.takes_clusters) room_ = 1 + schedule_.starts(room_);
  context_.cancel = [this]() -> std::optional<Dim3> {
    const auto index = take(window);
    if (!index) return std::nullopt;
    ++done_;
    return Cluster::first_block(context_, *index);
  };
}

// A cluster that has not started, one of the next `most`.
std::optional<std::uint64_t> Grid::take(std::size_t most) {
  while (waiting_.size() < window && next_ < clusters_) waiting_.push_back(next_++);
  if (waiting_.empty()) return std::nullopt;
  const std::size_t choices = std::min(waiting_.size(), most);
  const auto at = waiting_.begin() + static_cast<std::ptrdiff_t>(schedule_.starts(choices));
  const std::uint64_t index = *at;
  waiting_.erase(at);
  return index;
}

// No cluster starts that leaves no room for those before it: kernels wait for CTAs with lower
// numbers, and GPUs start these first.
void Grid::admit() {
  while (residents_.size() < room_) {
    const auto index = take(room_ - residents_.size());
    if (!index) return;
    if (idle_.empty()) idle_.push_back(std::make_unique<Cluster>(context_));
    const Place made = residents_.emplace(*index, Resident{std::move(idle_.back()), {}, {}}).first;
    idle_.pop_back();
    made->second.cluster->start(*index);
    look(made);
    schedule_.offer(*index, made->second.agents, 0);
  }
}

void Grid::run(const std::function<void(std::uint64_t)>& progress) {
  admit();
  while (!residents_.empty() && !finding_) {
    const std::uint64_t done = done_;
    const auto choice = schedule_.choose();
    if (choice) give_turn(*choice);
    else wait_for_change();
    if (choice && !finding_ && schedule_.polls() && ++turns_ % between_polls == 0) poll_next();
    if (finding_) break;
    admit();
    if (done_ != done) progress(done_);
  }
  if (!finding_) return;
  done_ += residents_.size();
  for (auto& [index, resident] : residents_) interruption_.add(index, *resident.cluster);
  interruption_.explain(*finding_, done_ * context_.cluster.count(), context_);
}

// What can go on in a cluster.
void Grid::look(Place place) {
  auto& [index, resident] = *place;
  Cluster& cluster = *resident.cluster;
  resident.agents.clear();
  resident.blocked.clear();
  for (std::uint32_t rank = 0; rank < cluster.size(); ++rank)
    for (Warp& warp : cluster.block(rank).warps()) {
      if (warp.done()) continue;
      warp.wake();
      for (std::size_t i = 0; i < warp.groups.size(); ++i) {
        const Group& group = warp.groups[i];
        if (group.state != Group::State::ready) continue;
        const bool waiting = cluster.block(rank).still_waits(group);
        (waiting ? resident.blocked : resident.agents)
            .push_back({.id = agent_of(index, warp, group.mask),
                        .warp = &warp,
                        .group = i,
                        .waiting = waiting});
      }
    }
  const Late& late = cluster.late();
  for (std::size_t i = 0; i < late.size(); ++i)
    if (late.can_advance(i))
      resident.agents.push_back({.id = index << 32 | late.number(i) << 1 | 1, .group = i});
  if (resident.blocked.empty()) blocked_.erase(index);
  else blocked_.insert(index);
}

// After a turn of so many instructions.
void Grid::settle(Place place, std::uint64_t instructions) {
  auto& [index, resident] = *place;
  Cluster& cluster = *resident.cluster;
  if (!cluster.stopped() && !cluster.done()) {
    look(place);
    schedule_.offer(index, resident.agents, instructions);
    return;
  }
  cluster.count(report_);
  if (context_.watch && context_.watch->stopped()) interruption_.add(index, cluster);
  if (const auto& finding = cluster.finding()) finding_ = *finding;
  else cluster.finish();
  ++done_;
  schedule_.end(index);
  blocked_.erase(index);
  idle_.push_back(std::move(resident.cluster));
  residents_.erase(place);
}

// How many it ran.
std::uint64_t Grid::run_group(const Agent& agent, std::uint32_t instructions) {
  if (Polls* const polls = schedule_.heard()) polls->begin_turn(agent.id);
  const std::uint64_t before = agent.warp->steps;
  agent.warp->block->run_group(*agent.warp, agent.group, instructions);
  return agent.warp->steps - before;
}

void Grid::give_turn(const Schedule::Choice& choice) {
  const Place place = residents_.find(choice.agent >> 32);
  Resident& resident = place->second;
  const auto agent = std::ranges::find(resident.agents, choice.agent, &Agent::id);
  if (choice.stuck && all_wait()) return report_stuck(*agent);
  std::uint64_t ran = 1;
  if (agent->warp) ran = run_group(*agent, choice.instructions);
  else resident.cluster->late().advance(agent->group);
  settle(place, ran);
}

// Lanes that wait may do so in loops that look at other things, too. Whether one does not any more.
bool Grid::poll(Place place) {
  Resident& resident = place->second;
  std::vector<std::uint64_t> ids;
  for (const Agent& agent : resident.blocked) ids.push_back(agent.id);
  bool any = false;
  for (const std::uint64_t id : ids) {
    const auto same = std::ranges::find(resident.blocked, id, &Agent::id);
    if (same == resident.blocked.end()) continue;
    run_group(*same, poll_instructions);
    if (resident.cluster->stopped()) return true;
    look(place);
    any |= std::ranges::find(resident.blocked, id, &Agent::id) == resident.blocked.end();
  }
  return any;
}

// Those of one cluster, and of the next one the next time.
void Grid::poll_next() {
  if (blocked_.empty()) return;
  auto next = blocked_.upper_bound(polled_);
  if (next == blocked_.end()) next = blocked_.begin();
  polled_ = *next;
  const Place place = residents_.find(polled_);
  poll(place);
  settle(place, 0);
}

// All wait: until one of them goes on, or nothing will ever change.
void Grid::wait_for_change() {
  for (int rounds = 0, patience = rounds_of_a_deadlock; !blocked_.empty(); ++rounds) {
    bool any = false;
    const std::vector<std::uint64_t> clusters(blocked_.begin(), blocked_.end());
    for (const std::uint64_t cluster : clusters) {
      const Place place = residents_.find(cluster);
      any |= poll(place);
      settle(place, 0);
      if (finding_) return;
    }
    if (any) return;
    if (rounds < patience) continue;
    if (report_deadlocks()) return;
    patience = std::min(2 * patience, most_rounds);
    rounds = 0;
  }
  report_deadlocks();
}

// In the first cluster that has one.
bool Grid::report_deadlocks() {
  for (auto place = residents_.begin(); place != residents_.end(); ++place) {
    place->second.cluster->report_deadlock();
    if (!place->second.cluster->stopped()) continue;
    settle(place, 0);
    return true;
  }
  return false;
}

// Whether those that wait for an mbarrier do nothing else.
bool Grid::all_wait() const {
  return std::ranges::all_of(residents_, [&](const auto& each) {
    const Resident& resident = each.second;
    return resident.cluster->late().empty() &&
           std::ranges::all_of(resident.blocked, [&](const Agent& agent) {
             const Group::Poll& poll = agent.warp->groups[agent.group].poll;
             return idles(context_, poll.pc, poll.length);
           });
  });
}

void Grid::report_stuck(const Agent& agent) {
  const Group& group = agent.warp->groups[agent.group];
  std::string text =
      "deadlock, no thread can proceed: these lanes read again and again what nobody will write";
  const std::uint64_t size = context_.cluster.count();
  if (const std::uint64_t left = clusters_ - next_ + waiting_.size())
    text += fmt::format("; {} cannot start before one of the {} that are resident ends",
                        detail::counted(left * size, "CTA"), residents_.size() * size);
  agent.warp->block->fail(*agent.warp, group.pc, "deadlock"_rule, std::move(text),
                          std::countr_zero(group.mask), 0);
  settle(residents_.find(agent.id >> 32), 0);
}

}  // namespace tartan::TARTAN_ABI::emulator
