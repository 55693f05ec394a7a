// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/seeded.h - a schedule drawn from a number.
//
// Agents have their turns on a clock that counts instructions: a turn sets when the agent's next
// one is due, and the earliest has it. Half of the seeds let every agent have its turns alike, for
// 1 to 1024 instructions each. Under the others some agents are slow, up to 64 times, and each may
// become fast, slow or pause after any turn, so that some run far ahead (after the probabilistic
// concurrency testing of Burckhardt and others, 2010). Some seeds also end turns right after strong
// accesses. Of the asynchronous operations none, some or all are put off until no lane can go on
// without them.
//
// So no agent waits for ever: while it does, the others run a bounded number of instructions. Lanes
// that spin (polls.h) have their turns ever later, and are passed over as long as what they read
// stays as it is.
#pragma once

#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/emulator/schedules/polls.h"
#include "runtime/emulator/schedules/schedule.h"

namespace tartan::TARTAN_ABI::emulator {

class Seeded final : public Schedule {
 public:
  explicit Seeded(std::uint64_t seed);

  void begin(const LaunchContext& context) override;
  std::size_t residents(std::size_t most) override { return most; }
  std::size_t starts(std::size_t waiting) override { return draw(waiting); }
  Polls* heard() override { return polls_.get(); }
  void offer(std::uint64_t cluster, std::span<const Agent> agents,
             std::uint64_t instructions) override;
  void end(std::uint64_t cluster) override;
  std::optional<Choice> choose() override;

 private:
  /// By the time of the next turn.
  using Queue = std::set<std::pair<std::uint64_t, std::uint64_t>>;
  struct State {
    Queue* queue = nullptr;  // where it stands; null: it cannot go on, or it is its turn
    std::uint64_t time = 0;
    int slowness = 0;          // the exponent of a power of four
    std::uint32_t spins = 0;   // turns in a row in which it spun
    std::uint32_t passed = 0;  // since its last turn, as nothing had changed
    std::uint64_t offered = 0;
  };
  struct Offered {
    std::vector<std::uint64_t> agents;
    std::unordered_map<std::uint64_t, State> states;
  };

  std::uint64_t draw();
  std::uint64_t draw(std::uint64_t below) { return draw() % below; }
  State& state(std::uint64_t agent) { return state(clusters_[agent >> 32], agent); }
  State& state(Offered& cluster, std::uint64_t agent);
  void put(Queue& queue, std::uint64_t agent, State& state, std::uint64_t delay);
  void remove(std::uint64_t agent, State& state);
  void arrive(std::uint64_t agent, State& state);
  void take_up(std::uint64_t agent, State& state, std::uint64_t instructions);
  void note_turn(State& state);
  std::uint64_t rest(const State& state);
  std::optional<Choice> choose_spinning();
  bool all_stuck();
  Choice turn(std::uint64_t agent, State& state, std::uint32_t instructions);
  std::uint32_t any_length();

  const std::uint64_t seed_;
  std::uint64_t state_;
  bool alike_ = false;
  std::uint32_t longest_run_ = 0;  // of strong accesses in a turn; 0: any number
  std::uint64_t lateness_ = 0;     // of 4 operations so many are put off
  std::uint32_t longest_rest_ = 0;
  std::unique_ptr<Polls> polls_;
  std::unordered_map<std::uint64_t, Offered> clusters_;
  Queue active_, spinning_, late_;
  std::uint64_t now_ = 0;
  std::uint64_t last_ = 0;  // whose turn it was
  bool running_ = false;    // and it is not taken up yet
  std::uint64_t offers_ = 0;
  std::uint64_t vain_ = 0;  // lanes in a row that spun, or were passed over
  std::uint64_t patience_ = 0;
};

}  // namespace tartan::TARTAN_ABI::emulator
