// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/polls.h - lanes that wait by reading the same again and again.
//
// A strong load, or an atomic that changes nothing, is a poll. Lanes whose next poll at the same
// place finds what the last one found spin: their turn is over (Warp::run_group), and a schedule
// may let others go first until one of the words that they read is another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/block.h"

namespace tartan::TARTAN_ABI::emulator {

/// Names lanes of a cluster that run together: the first of them, by its number in the cluster.
std::uint64_t agent_of(std::uint64_t cluster, const Warp& warp, std::uint32_t lanes);

class Polls {
 public:
  explicit Polls(const LaunchContext& context);

  /// A turn of that agent, or of others of its cluster, begins.
  void begin_turn(std::uint64_t agent);
  /// The next turn ends after so many strong accesses; 0: it does not.
  void cut(std::uint32_t accesses) { next_cut_ = accesses; }
  /// Whether the op accesses memory that others access, and says so.
  bool strong(std::uint32_t pc) const { return strong_[pc] != 0; }
  /// Right before and right after an op that does.
  void before(Warp& warp, const Op& op);
  void after(Warp& warp);

  /// Whether lanes of the turn found what they had found before.
  bool spun() const { return spun_; }
  /// Whether the turn was cut.
  bool was_cut() const { return was_cut_; }
  /// Whether a word that the agent spins for is not as it found it.
  bool changed(std::uint64_t agent) const;
  /// Whether its loop leaves everything as it is.
  bool idles(std::uint64_t agent) const;
  /// Nobody asks for the cluster's agents any more.
  void forget(std::uint64_t cluster);

 private:
  struct Poll {
    std::uint32_t pc = 0;
    std::uint64_t value = 0;   // a hash of what was read
    std::uint64_t steps = 0;   // of the warp
    std::uint64_t turn = 0;    // the last one in which it did it
    std::uint64_t length = 0;  // ops of a round, once it came round in one turn
    std::vector<const std::byte*> words;
  };
  using Waits = std::vector<Poll>;  // of an agent, one for each place

  const Waits* waits(std::uint64_t agent) const;
  static std::uint64_t hash(const std::vector<const std::byte*>& words, std::uint32_t bytes);

  const LaunchContext& context_;
  std::vector<std::uint8_t> strong_;  // by op: the bytes that it reads; 0: it is not strong
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Waits>> waits_;  // by cluster
  std::uint64_t cluster_ = 0, turn_ = 0;
  std::uint32_t next_cut_ = 0, cut_ = 0;
  bool spun_ = false, was_cut_ = false;
  std::vector<const std::byte*> words_;  // of the op that is going on; none: it is at a bad address
  std::uint64_t found_ = 0;
};

}  // namespace tartan::TARTAN_ABI::emulator
