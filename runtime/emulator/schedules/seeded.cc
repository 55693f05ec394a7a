// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/schedules/seeded.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t longest_turn = 4096, shortest_turns = 11;  // exponents below that
constexpr int slownesses = 4;
constexpr std::uint64_t pause = 1 << 16;
// Lanes that spin are passed over so many times at most, and so many in a row before others that
// are not due yet have their turn.
constexpr std::uint32_t most_passed = 15, most_vain = 16;
// What is put off is put off no longer than so, whatever lanes do meanwhile.
constexpr std::uint64_t latest = 1 << 22;

// The finisher of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

bool is_operation(std::uint64_t agent) { return agent & 1; }

}  // namespace

Seeded::Seeded(std::uint64_t seed) : seed_(seed), state_(mix(seed)) {
  alike_ = draw(2) == 0;
  constexpr std::uint64_t latenesses[] = {0, 2, 4};
  lateness_ = latenesses[draw(3)];
  constexpr std::uint32_t rests[] = {0, 4, 10};
  longest_rest_ = rests[draw(3)];
  constexpr std::uint32_t runs[] = {0, 2, 8};
  longest_run_ = runs[draw(3)];
}

void Seeded::begin(const LaunchContext& context) {
  polls_ = std::make_unique<Polls>(context);
  clusters_.clear();
  for (Queue* each : {&active_, &spinning_, &late_}) each->clear();
  running_ = false;
  vain_ = 0;
}

std::uint64_t Seeded::draw() { return mix(state_++); }

Seeded::State& Seeded::state(Offered& cluster, std::uint64_t agent) {
  const auto [at, made] = cluster.states.try_emplace(agent);
  if (made && !alike_) at->second.slowness = static_cast<int>(mix(seed_ + mix(agent)) % slownesses);
  return at->second;
}

void Seeded::put(Queue& queue, std::uint64_t agent, State& state, std::uint64_t delay) {
  state.queue = &queue;
  state.time = now_ + delay;
  queue.emplace(state.time, agent);
}

void Seeded::remove(std::uint64_t agent, State& state) {
  if (state.queue) state.queue->erase({state.time, agent});
  state.queue = nullptr;
}

// How long lanes that spin stay away: with many of them, longer.
std::uint64_t Seeded::rest(const State& state) {
  return 1 + draw(std::uint64_t{64} << std::min(state.spins, longest_rest_)) +
         draw(32 * (spinning_.size() + 1));
}

// It can go on, and could not before.
void Seeded::arrive(std::uint64_t agent, State& state) {
  if (is_operation(agent) && mix(seed_ ^ agent) % 4 < lateness_)
    return put(late_, agent, state, draw(longest_turn));
  if (state.spins) return put(spinning_, agent, state, rest(state));
  const std::uint64_t usual = alike_ ? std::uint64_t{1} << (shortest_turns - 1) : longest_turn;
  put(active_, agent, state, draw(usual << 2 * state.slowness));
}

// It could go on with what its turn has left.
void Seeded::take_up(std::uint64_t agent, State& state, std::uint64_t instructions) {
  if (state.spins || is_operation(agent)) return arrive(agent, state);
  if (polls_->was_cut() && draw(2) == 0) return put(active_, agent, state, 1 + draw(pause));
  if (alike_) return put(active_, agent, state, 1 + draw(std::uint64_t{1} << shortest_turns));
  std::uint64_t delay = instructions << 2 * state.slowness;
  if (draw(8) == 0) {
    state.slowness = static_cast<int>(draw(slownesses));
    delay += draw(pause);
  }
  put(active_, agent, state, 1 + delay);
}

// The agent's turn is over.
void Seeded::note_turn(State& state) {
  running_ = false;
  const bool spun = !is_operation(last_) && polls_->spun();
  state.spins = spun ? state.spins + 1 : 0;
  state.passed = 0;
  vain_ = spun ? vain_ + 1 : 0;
}

void Seeded::offer(std::uint64_t cluster, std::span<const Agent> agents,
                   std::uint64_t instructions) {
  Offered& known = clusters_[cluster];
  const bool turn = running_ && last_ >> 32 == cluster;
  if (turn) note_turn(state(known, last_));
  const auto place = [&](std::uint64_t agent) {
    State& each = state(known, agent);
    each.offered = offers_;
    if (each.queue) return;
    if (turn && agent == last_) take_up(agent, each, instructions);
    else arrive(agent, each);
  };
  ++offers_;
  if (std::ranges::equal(known.agents, agents, {}, {}, &Agent::id)) {
    if (turn && std::ranges::find(known.agents, last_) != known.agents.end()) place(last_);
    return;
  }
  for (const Agent& agent : agents) place(agent.id);
  for (const std::uint64_t agent : known.agents)
    if (State& each = state(known, agent); each.offered != offers_) remove(agent, each);
  known.agents.clear();
  for (const Agent& agent : agents) known.agents.push_back(agent.id);
}

void Seeded::end(std::uint64_t cluster) {
  if (last_ >> 32 == cluster) running_ = false;
  for (auto& [agent, each] : clusters_[cluster].states) remove(agent, each);
  clusters_.erase(cluster);
  polls_->forget(cluster);
  vain_ = 0;
}

std::uint32_t Seeded::any_length() {
  return !alike_ && draw(4) != 0 ? longest_turn : std::uint32_t{1} << draw(shortest_turns);
}

Schedule::Choice Seeded::turn(std::uint64_t agent, State& state, std::uint32_t instructions) {
  now_ = std::max(now_, state.time);
  remove(agent, state);
  last_ = agent;
  running_ = true;
  if (longest_run_ && !state.passed)
    polls_->cut(1 + static_cast<std::uint32_t>(draw(longest_run_)));
  return {.agent = agent, .instructions = instructions};
}

std::optional<Schedule::Choice> Seeded::choose() {
  if (vain_ == 0) patience_ = 4 * spinning_.size() + 64;
  const bool overdue = !late_.empty() && late_.begin()->first + latest < now_;
  while (!spinning_.empty() && !overdue) {
    const bool hurry = vain_ > most_vain;
    if (!active_.empty() && (hurry || *active_.begin() < *spinning_.begin())) break;
    if (active_.empty() && !late_.empty() && vain_ > 2 * spinning_.size() + most_vain) break;
    if (auto choice = choose_spinning()) return choice;
  }
  Queue& queue = overdue || active_.empty() ? late_ : active_;
  if (queue.empty()) return std::nullopt;
  const std::uint64_t agent = queue.begin()->second;
  vain_ = 0;
  return turn(agent, state(agent), any_length());
}

// The next of those, unless it is passed over.
std::optional<Schedule::Choice> Seeded::choose_spinning() {
  const std::uint64_t agent = spinning_.begin()->second;
  State& mine = state(agent);
  ++vain_;
  if (active_.empty() && late_.empty() && vain_ > patience_) {
    patience_ *= 2;
    if (all_stuck()) {
      Choice choice = turn(agent, mine, longest_turn);
      choice.stuck = true;
      return choice;
    }
  }
  if (polls_->changed(agent)) return turn(agent, mine, any_length());
  // Whether lanes still spin shows when they have come round.
  if (++mine.passed > most_passed) return turn(agent, mine, longest_turn);
  now_ = std::max(now_, mine.time);
  remove(agent, mine);
  put(spinning_, agent, mine, rest(mine));
  return std::nullopt;
}

// Whether all of them are in loops that do nothing, and what they read is as they found it.
bool Seeded::all_stuck() {
  return std::ranges::all_of(spinning_, [&](const auto& each) {
    return !polls_->changed(each.second) && polls_->idles(each.second);
  });
}

}  // namespace tartan::TARTAN_ABI::emulator
