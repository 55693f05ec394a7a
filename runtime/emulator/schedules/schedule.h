// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/schedule.h - who goes on next, of all that can.
//
// A launch under a schedule runs on one host thread. Its grid (grid.h) asks after each turn which
// agent has the next one: lanes of a warp, or an asynchronous operation that is issued and not done
// (late.h). The same answers make the same launch, to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

struct LaunchContext;
struct Warp;
class Polls;

/// What can go on.
struct Agent {
  std::uint64_t id = 0;   // the same in every run of a launch; from bit 32 on the cluster's number
  Warp* warp = nullptr;   // null: an operation
  std::size_t group = 0;  // of warp->groups; of operations: which one of Late
  bool waiting = false;   // an mbarrier that these lanes found in the phase whose end they wait for
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  /// A launch begins: what the one before it did is over.
  virtual void begin(const LaunchContext& context) = 0;
  /// It is over; its warps are still there.
  virtual void over() {}
  /// How many of the `most` clusters that the hardware has room for run side by side.
  virtual std::size_t residents(std::size_t most) = 0;
  /// Which of so many clusters, the next of the grid, starts now.
  virtual std::size_t starts(std::size_t waiting) = 0;

  /// Whether lanes that wait look again once in a while, for what else they may do.
  virtual bool polls() const { return true; }
  /// What hears of strong accesses; null: nobody.
  virtual Polls* heard() { return nullptr; }

  /// What can go on in a cluster from now on: none of them waits. Its last turn, if there was one,
  /// took so many instructions.
  virtual void offer(std::uint64_t cluster, std::span<const Agent> agents,
                     std::uint64_t instructions) = 0;
  /// The cluster is done.
  virtual void end(std::uint64_t cluster) = 0;

  struct Choice {
    std::uint64_t agent = 0;
    std::uint32_t instructions = 1;  // of lanes: at most
    bool stuck = false;  // it and all others try again and again for what none of them will do
  };
  /// Whose turn it is; nothing: nobody can go on.
  virtual std::optional<Choice> choose() = 0;
  /// What repeats the launch that is over, as DeviceOptions::schedule; empty: nothing.
  virtual std::string name() const { return {}; }
};

/// One that looks at all agents before each turn.
class ListedSchedule : public Schedule {
 public:
  struct Turn {
    std::size_t agent = 0;
    std::uint32_t instructions = 1;
  };
  /// Whose turn it is. They are in the order of their clusters.
  virtual Turn next(std::span<const Agent> agents) = 0;

  void begin(const LaunchContext&) override { agents_.clear(); }
  void offer(std::uint64_t cluster, std::span<const Agent> agents, std::uint64_t) override {
    agents_[cluster].assign(agents.begin(), agents.end());
  }
  void end(std::uint64_t cluster) override { agents_.erase(cluster); }
  std::optional<Choice> choose() override;

 private:
  std::map<std::uint64_t, std::vector<Agent>> agents_;
  std::vector<Agent> all_;
};

/// The schedule that DeviceOptions::schedule names; null for an empty text, or one that names none.
std::unique_ptr<Schedule> make_schedule(std::string_view text);

}  // namespace tartan::TARTAN_ABI::emulator
