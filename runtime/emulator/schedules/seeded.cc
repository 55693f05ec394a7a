// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/seeded.h"

#include <algorithm>

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t longest_turn = 4096;
constexpr int patience = 16;  // turns in a row of one agent, which others may be waited for by

// The finisher of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

}  // namespace

Seeded::Seeded(std::uint64_t seed) : seed_(seed), state_(mix(seed)) {
  by_priority_ = draw(2) != 0;
  constexpr std::uint64_t latenesses[] = {0, 2, 4};
  lateness_ = latenesses[draw(3)];
}

std::uint64_t Seeded::draw() { return mix(state_++); }

std::size_t Seeded::residents(std::size_t most) { return most; }

std::size_t Seeded::starts(std::size_t waiting) { return draw(waiting); }

bool Seeded::put_off(const Agent& agent) const {
  return !agent.warp && mix(seed_ ^ agent.id) % 4 < lateness_;
}

std::uint64_t& Seeded::priority(const Agent& agent) {
  return priorities_.try_emplace(agent.id, mix(seed_ + mix(agent.id))).first->second;
}

// The first by priority of those that are not put off; none: agents.size().
std::size_t Seeded::first(std::span<const Agent> agents, bool all) {
  std::size_t best = agents.size(), count = 0;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    if (!all && put_off(agents[i])) continue;
    ++count;
    const bool better =
        best == agents.size() ||
        (by_priority_ ? priority(agents[i]) > priority(agents[best]) : draw(count) == 0);
    if (better) best = i;
  }
  return best;
}

Schedule::Turn Seeded::next(std::span<const Agent> agents) {
  std::size_t chosen = first(agents, false);
  if (chosen == agents.size()) chosen = first(agents, true);
  const Agent& agent = agents[chosen];
  turns_in_a_row_ = agent.id == last_ ? turns_in_a_row_ + 1 : 0;
  last_ = agent.id;
  if (!by_priority_) return {chosen, std::uint32_t{1} << draw(11)};
  if (turns_in_a_row_ >= patience || draw(8) == 0) priority(agent) = draw() >> 1;
  return {chosen, draw(4) == 0 ? std::uint32_t{1} << draw(11) : longest_turn};
}

}  // namespace tartan::inline TARTAN_ABI::emulator
