// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/schedules/retry.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using isa::Opcode;

// Where the host has it; null: nowhere.
const std::byte* host_of(Warp& warp, std::uint64_t space, std::uint64_t address,
                         std::uint64_t bytes) {
  if (space == 0) {
    const Allocation* allocation = warp.block->memory().find(address, bytes);
    return allocation ? allocation->host + (address - allocation->address) : nullptr;
  }
  Cluster& cluster = warp.block->cluster();
  Block& block = cluster.block(static_cast<std::uint32_t>((space - 1) % cluster.size()));
  return address + bytes <= block.shared_bytes() ? block.shared() + address : nullptr;
}

bool is_wait(Opcode opcode) {
  return opcode == Opcode::mbarrier_test_wait || opcode == Opcode::mbarrier_try_wait;
}

std::uint32_t executing(Warp& warp, std::uint32_t lanes, std::uint32_t pc) {
  const Op& op = warp.program->ops[pc];
  return lanes & (predicate(warp, op.guard) ^ op.guard_flip);
}

std::uint64_t key_of(Warp& warp) { return races_of(warp).clocks().number(warp); }
std::uint64_t thread_of(std::uint64_t warp, std::uint32_t lane) { return warp * 32 + lane; }

bool leads_others(const Agent& agent) {
  const std::uint32_t mine = agent.warp->groups[agent.group].mask;
  return std::countr_zero(lanes_at(agent)) == std::countr_zero(mine);
}

}  // namespace

Explorer::Explorer(std::vector<std::uint32_t> choices)
    : fixed_(std::move(choices)), repeats_(true) {}

std::string Explorer::name() const {
  std::string out = "x";
  for (std::size_t i = 0; i < taken_.size();) {
    std::size_t end = i;
    while (end < taken_.size() && taken_[end] == taken_[i]) ++end;
    if (out.size() > 1) out += ",";
    out += fmt::format("{}", taken_[i]);
    if (end - i > 1) out += fmt::format("*{}", end - i);
    i = end;
  }
  return out;
}

// ---- From run to run.

bool Explorer::again() {
  if (std::exchange(began_, true)) {
    branch();
    while (!choices_.empty()) {
      Choice& last = choices_.back();
      last.done.insert(last.chosen);
      if (last.event) last.sleeping.emplace(last.chosen, execution_[*last.event]);
      const auto next = std::ranges::find_if(last.wanted, [&](std::uint64_t agent) {
        return !last.done.contains(agent) && !last.sleeping.contains(agent);
      });
      if (next != last.wanted.end()) {
        last.chosen = *next;
        last.event.reset();
        break;
      }
      choices_.pop_back();
    }
    if (choices_.empty()) return false;
  }
  depth_ = 0;
  redundant_ = false;
  taken_.clear();
  execution_.clear();
  known_.clear();
  return true;
}

// Threads, mbarriers and addresses are named as in the launch before, and are others.
void Explorer::begin(const LaunchContext& context) {
  ListedSchedule::begin(context);
  step_ = {};
  earlier_ = execution_.size();
  issued_.clear();
  last_.clear();
  mbarriers_.clear();
  rounds_.clear();
  places_.clear();
  changes_ = 0;
  passed_.clear();
  choices_passed_ = 0;
  states_.clear();
}

// Where events of the last run may come the other way round, another agent is wanted.
void Explorer::branch() {
  std::vector<std::size_t> choice_of(execution_.size(), 0);
  for (std::size_t i = 0; i < choices_.size(); ++i)
    if (choices_[i].event) choice_of[*choices_[i].event] = i;
  for (const Execution::Reversal& each : execution_.reversals(deadline_)) {
    Choice& choice = choices_[choice_of[each.at]];
    const auto wanted = [&](std::uint64_t agent) { return choice.wanted.contains(agent); };
    if (std::ranges::any_of(each.agents, wanted)) continue;
    const auto able = std::ranges::find_if(each.agents, [&](std::uint64_t agent) {
      return std::ranges::find(choice.enabled, agent) != choice.enabled.end();
    });
    if (able != each.agents.end()) choice.wanted.insert(*able);
    else choice.wanted.insert(choice.enabled.begin(), choice.enabled.end());
  }
}

// ---- Within a run.

bool Explorer::is_visible(const Warp& warp, std::uint32_t pc) {
  const auto [found, fresh] = visible_.try_emplace({warp.program, pc}, false);
  if (fresh)
    found->second = (*warp.program->observation<RaceWatches>())[pc].strong ||
                    isa::is_mbarrier(opcode_at(warp.block->context(), pc));
  return found->second;
}

// Of the enabled agents that are allowed, the one that has come back to where it was least often.
template <typename Allowed>
std::optional<std::size_t> Explorer::fairest(std::span<const Agent> agents,
                                             std::span<const std::size_t> enabled,
                                             Allowed&& allowed) {
  std::optional<std::size_t> best;
  std::uint32_t least = 0;
  for (std::size_t i = 0; i < enabled.size(); ++i) {
    const std::uint64_t id = agents[enabled[i]].id;
    if (!allowed(id)) continue;
    const auto rounds = rounds_.find(id);
    const std::uint32_t returns = rounds == rounds_.end() ? 0 : rounds->second.returns;
    if (best && returns >= least) continue;
    best = i;
    least = returns;
  }
  return best;
}

// A choice that no run has made yet.
void Explorer::begin_choice(std::span<const Agent> agents, std::span<const std::size_t> enabled) {
  Choice made;
  if (depth_ > 0) {
    const Choice& before = choices_.back();
    for (const auto& [agent, event] : before.sleeping)
      if (!before.event || !may_depend(event, execution_[*before.event]))
        made.sleeping.emplace(agent, event);
  }
  for (const std::size_t i : enabled) made.enabled.push_back(agents[i].id);
  const auto awake =
      fairest(agents, enabled, [&](std::uint64_t agent) { return !made.sleeping.contains(agent); });
  redundant_ = !awake;
  if (redundant_) return;
  made.chosen = agents[enabled[*awake]].id;
  made.wanted.insert(made.chosen);
  choices_.push_back(std::move(made));
}

// Which of the enabled ones goes on.
std::size_t Explorer::choose(std::span<const Agent> agents, std::span<const std::size_t> enabled) {
  const auto anyone = [](std::uint64_t) { return true; };
  if (repeats_) {
    if (depth_ < fixed_.size()) return std::min<std::size_t>(fixed_[depth_], enabled.size() - 1);
    return fairest(agents, enabled, anyone).value_or(0);
  }
  if (depth_ == choices_.size() && !redundant_) begin_choice(agents, enabled);
  if (depth_ < choices_.size()) {
    const std::uint64_t id = choices_[depth_].chosen;
    const auto chosen =
        std::ranges::find_if(enabled, [&](std::size_t i) { return agents[i].id == id; });
    if (chosen != enabled.end()) return static_cast<std::size_t>(chosen - enabled.begin());
  }
  return fairest(agents, enabled, anyone).value_or(0);
}

ListedSchedule::Turn Explorer::next(std::span<const Agent> agents) {
  finish();
  std::vector<std::size_t> enabled;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const Agent& agent = agents[i];
    if (!agent.warp) {
      const auto from = last_.find(thread_of(
          step_.number, static_cast<std::uint32_t>(std::countr_zero(step_.lanes | 1u << 31))));
      if (from != last_.end()) issued_.try_emplace(agent.id, from->second);
      enabled.push_back(i);
      continue;
    }
    Warp& warp = *agent.warp;
    const std::uint32_t pc = warp.groups[agent.group].pc;
    if (!is_visible(warp, pc)) {
      if (!changes_nothing(warp, pc)) {
        forget_rounds(rounds_[agent.id]);
        ++changes_;
      }
      step_ = {.running = true,
               .agent = agent,
               .lanes = warp.groups[agent.group].mask,
               .number = static_cast<std::uint32_t>(key_of(warp))};
      return {i, 1};
    }
    if (leads_others(agent) && !is_blocked(agent)) enabled.push_back(i);
  }
  if (enabled.empty()) {
    const Agent& agent = agents.front();
    agent.warp->block->fail(*agent.warp, agent.warp->groups[agent.group].pc, "deadlock"_rule,
                            "deadlock: all threads that are left try again and again for what "
                            "nobody will do",
                            std::countr_zero(agent.warp->groups[agent.group].mask), 0);
    return {0, 1};
  }
  if (is_livelock(agents, enabled)) {
    const Agent& agent = agents[enabled.front()];
    if (agent.warp) {
      const Group& group = agent.warp->groups[agent.group];
      agent.warp->block->fail(*agent.warp, group.pc, "livelock"_rule,
                              fmt::format("livelock: the {} threads that can go on may come back "
                                          "to the same state for ever, each undoing what others do",
                                          enabled.size()),
                              std::countr_zero(group.mask), 0);
      return {enabled.front(), 1};
    }
  }
  const std::size_t chosen = choose(agents, enabled);
  passed_[(choices_passed_ - 1) % longest_cycle].chosen = agents[enabled[chosen]].id;
  ++depth_;
  taken_.push_back(static_cast<std::uint32_t>(chosen));
  const Agent& agent = agents[enabled[chosen]];
  step_ = {.running = true, .visible = true, .agent = agent};
  step_.event = event_of(agent);
  return {enabled[chosen], 1};
}

// What the agent's next step touches, as far as that can be said before.
Event Explorer::event_of(const Agent& agent) {
  Event event{.agent = agent.id};
  if (!agent.warp) {
    if (const auto from = issued_.find(agent.id); from != issued_.end())
      event.after.push_back(from->second);
    return event;
  }
  Warp& warp = *agent.warp;
  const ThreadClocks& clocks = races_of(warp).clocks();
  step_.pc = warp.groups[agent.group].pc;
  step_.lanes = lanes_at(agent);
  step_.number = clocks.number(warp);
  step_.time = clocks.time(warp);
  for (std::uint32_t m = step_.lanes; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    const auto last = last_.find(thread_of(step_.number, lane));
    if (last != last_.end() && std::ranges::find(event.after, last->second) == event.after.end())
      event.after.push_back(last->second);
  }
  touch_memory(warp, step_.lanes, step_.pc, event);
  return event;
}

void Explorer::touch_memory(Warp& warp, std::uint32_t group, std::uint32_t pc, Event& event) {
  const Program& program = *warp.program;
  const Op& op = program.ops[pc];
  const Watch& watch = (*program.observation<RaceWatches>())[pc];
  const Opcode opcode = opcode_at(warp.block->context(), pc);
  std::uint64_t at[32];
  addresses(warp, op, at);
  for (std::uint32_t m = executing(warp, group, pc); m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto place = races_of(warp).place_of(warp, op.window, at[lane]);
    if (!place) continue;
    Touch touch{.space = place->first, .first = place->second, .bytes = 8};
    if (watch.strong) touch.bytes = watch.bytes;
    const std::byte* host = host_of(warp, place->first, place->second, touch.bytes);
    if (host) step_.before.push_back({host, {host, host + touch.bytes}});
    if (watch.strong) {
      const bool reduces = watch.atomic == Watch::Atomic::reduces && watch.operation;
      touch.kind = !watch.writes ? Touch::Kind::read
                   : reduces     ? Touch::Kind::reduce
                                 : Touch::Kind::write;
      if (reduces) touch.reduction = watch.operation;
    } else {
      if (!host) continue;
      if (opcode == Opcode::mbarrier_init)
        mbarriers_.try_emplace(host, Watched{.space = place->first, .address = place->second});
      if (!is_wait(opcode)) continue;
      const bool parity = op.flags & 1 ? lanes<std::uint32_t>(warp, op.b)[lane] & 1
                                       : lanes<std::uint64_t>(warp, op.b)[lane] >> 63;
      const auto known = mbarriers_.find(host);
      if (known == mbarriers_.end() || Mbarrier::load(host).phase == parity) continue;
      touch.kind = Touch::Kind::wait;
      touch.phase = known->second.phases;
    }
    event.touches.push_back(touch);
  }
}

// The step is over: what it did to mbarriers shows now.
void Explorer::finish() {
  if (!std::exchange(step_.running, false)) return;
  if (!step_.visible) return;
  Event& event = step_.event;
  compare_mbarriers(event);
  note_rounds();
  const bool counted = !repeats_ && !redundant_ && depth_ <= choices_.size();
  if (event.touches.empty() || !counted) return;
  const Agent& agent = step_.agent;
  const auto knows = [&](std::size_t i) {
    if (i < earlier_) return true;
    const Known& past = known_[i];
    if (!agent.warp || !past.lanes) return false;
    const ThreadClocks& clocks = races_of(*agent.warp).clocks();
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(step_.lanes));
    for (std::uint32_t m = past.lanes; m; m &= m - 1)
      if (!clocks.knows(*agent.warp, lane,
                        {past.number, past.time, static_cast<std::uint32_t>(std::countr_zero(m))}))
        return false;
    return true;
  };
  choices_[depth_ - 1].event = execution_.size();
  for (std::uint32_t m = agent.warp ? step_.lanes : 0; m; m &= m - 1)
    last_[thread_of(step_.number, static_cast<std::uint32_t>(std::countr_zero(m)))] =
        execution_.size();
  known_.push_back({step_.number, agent.warp ? step_.lanes : 0, step_.time});
  execution_.add(std::move(event), knows);
}

void Explorer::compare_mbarriers(Event& event) {
  for (auto& [host, known] : mbarriers_) {
    const Mbarrier now = Mbarrier::load(host), was = std::exchange(known.state, now);
    if (now.word() == was.word()) continue;
    const bool ends = now.phase != was.phase,
               fresh = was.expected == 0;  // it was made, or made anew
    const bool expects = !ends && now.pending == was.pending && now.transactions > was.transactions;
    if (fresh) continue;
    event.touches.push_back({.kind = expects ? Touch::Kind::expect : Touch::Kind::change,
                             .space = known.space,
                             .first = known.address,
                             .bytes = 8,
                             .phase = known.phases,
                             .ends = ends});
    known.phases += ends;
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
