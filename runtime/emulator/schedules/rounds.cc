// SPDX-License-Identifier: Apache-2.0
// Loops that wait, and those that undo each other.
#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/schedules/explorer.h"
#include "runtime/emulator/schedules/retry.h"

namespace tartan::TARTAN_ABI::emulator {

// Groups that stand at one place go on as one.
std::uint32_t lanes_at(const Agent& agent) {
  const Warp& warp = *agent.warp;
  const std::uint32_t pc = warp.groups[agent.group].pc;
  std::uint32_t lanes = 0;
  for (const Group& each : warp.groups)
    if (each.state == Group::State::ready && each.pc == pc) lanes |= each.mask;
  return lanes;
}

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 32;
}

// Of all registers of those lanes.
std::uint64_t registers_of(Warp& warp, std::uint32_t mask) {
  std::uint64_t hash = 0;
  std::uint32_t last = ~0u;
  for (const RegisterUse& use : warp.program->registers.uses) {
    if (use.constant || use.slot == last) continue;
    last = use.slot;
    if (use.type == Type::pred) {
      hash = mix(hash, predicate(warp, use.slot) & mask);
      continue;
    }
    for (std::uint32_t m = mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const int size = bits(use.type);
      if (size <= 32) hash = mix(hash, lanes<std::uint32_t>(warp, use.slot)[lane]);
      for (int word = 0; size > 32 && word < size / 64; ++word)
        hash = mix(hash, lanes<std::uint64_t>(warp, use.slot)[lane + 32 * word]);
    }
  }
  return hash;
}

}  // namespace

// Whether an op that others do not see leaves memory and barriers alone.
bool Explorer::changes_nothing(Warp& warp, std::uint32_t pc) const {
  const isa::OpcodeRow& row = isa::row(opcode_at(warp.block->context(), pc));
  return !warp.program->ops[pc].writes && row.convergence == isa::Convergence::None &&
         row.control != isa::Control::Exits && !isa::is_matrix(row.opcode) &&
         !isa::is_asynchronous_copy(row.opcode);
}

// It stands at a place that it may have been to.
void Explorer::arrive(const Agent& agent, Rounds& rounds) {
  rounds.arrived = true;
  rounds.registers = registers_of(*agent.warp, rounds.lanes);
  const std::uint32_t pc = agent.warp->groups[agent.group].pc;
  const Rounds::Visit now{pc, rounds.registers, rounds.found.size()};
  const auto same = std::ranges::find_if(rounds.visits, [&](const Rounds::Visit& each) {
    return each.pc == now.pc && each.registers == now.registers;
  });
  if (same != rounds.visits.end()) rounds.blocked = same->found;
  else rounds.visits.push_back(now);
  rounds.returns += !rounds.before.emplace(now.pc, now.registers).second;
}

bool Explorer::is_blocked(const Agent& agent) {
  Rounds& rounds = rounds_[agent.id];
  const std::uint32_t now = lanes_at(agent);
  if (rounds.lanes != now) {
    forget_rounds(rounds);
    rounds.lanes = now;
  }
  if (!rounds.arrived) arrive(agent, rounds);
  if (!rounds.blocked) return false;
  const bool same =
      std::all_of(rounds.found.begin() + static_cast<std::ptrdiff_t>(*rounds.blocked),
                  rounds.found.end(), [](const Rounds::Found& each) {
                    return std::memcmp(each.at, each.value.data(), each.value.size()) == 0;
                  });
  if (same) return true;
  rounds.blocked.reset();
  rounds.found.clear();
  rounds.visits.clear();
  return false;
}

// Of all that threads know and see.
std::uint64_t Explorer::state(std::span<const Agent> agents) const {
  std::uint64_t hash = mix(changes_, agents.size());
  for (const Agent& agent : agents) {
    hash = mix(hash, agent.id);
    if (!agent.warp) continue;
    const auto rounds = rounds_.find(agent.id);
    hash = mix(hash, agent.warp->groups[agent.group].pc);
    hash = mix(hash, rounds == rounds_.end() ? 0 : rounds->second.registers);
  }
  for (const auto& [at, bytes] : places_)
    for (std::uint64_t i = 0; i < bytes; ++i) hash = mix(hash, static_cast<std::uint64_t>(at[i]));
  return hash;
}

bool Explorer::is_livelock(std::span<const Agent> agents, std::span<const std::size_t> enabled) {
  const std::size_t here = choices_passed_++;
  passed_.resize(std::min(choices_passed_, longest_cycle));
  Passed& now = passed_[here % longest_cycle];
  now.enabled.clear();
  for (const std::size_t i : enabled) now.enabled.push_back(agents[i].id);
  const auto [found, fresh] = states_.try_emplace(state(agents), here);
  const std::size_t before = std::exchange(found->second, here);
  if (fresh || here - before >= longest_cycle) return false;
  std::set<std::uint64_t> able, went;
  for (std::size_t i = before; i < here; ++i) {
    const Passed& each = passed_[i % longest_cycle];
    able.insert(each.enabled.begin(), each.enabled.end());
    went.insert(each.chosen);
  }
  return able == went;
}

void Explorer::forget_rounds(Rounds& rounds) {
  rounds.found.clear();
  rounds.visits.clear();
  rounds.blocked.reset();
  rounds.arrived = false;
}

// What the step found where it changed nothing.
void Explorer::note_rounds() {
  if (!step_.agent.warp) return;
  Rounds& rounds = rounds_[step_.agent.id];
  const bool changed = std::ranges::any_of(step_.before, [](const Rounds::Found& each) {
    return std::memcmp(each.at, each.value.data(), each.value.size()) != 0;
  });
  for (const Rounds::Found& each : step_.before) {
    std::uint64_t& bytes = places_[each.at];
    bytes = std::max<std::uint64_t>(bytes, each.value.size());
  }
  if (changed) return forget_rounds(rounds);
  rounds.arrived = false;
  std::ranges::move(step_.before, std::back_inserter(rounds.found));
}

}  // namespace tartan::TARTAN_ABI::emulator
