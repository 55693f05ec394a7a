// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/grid.h - a launch under a schedule: as many clusters side by side as
// the hardware has room for, and turn by turn the agent that the schedule picks.
//
// A turn looks at its own cluster alone, so that it costs the same however many there are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "runtime/emulator/interruption.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/schedules/schedule.h"

namespace tartan::TARTAN_ABI::emulator {

class Grid {
 public:
  /// `most`: clusters that may run side by side.
  Grid(LaunchContext& context, Schedule& schedule, std::uint64_t most);
  ~Grid() { schedule_.over(); }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  /// Runs all clusters, or until one is stopped by a finding. Calls `progress` after each with the
  /// number of those that are done.
  void run(const std::function<void(std::uint64_t)>& progress);
  const Report& report() const { return report_; }
  const std::optional<Finding>& finding() const { return finding_; }

 private:
  struct Resident {
    std::unique_ptr<Cluster> cluster;
    std::vector<Agent> agents, blocked;  // those that can go on, those that wait
  };
  using Place = std::map<std::uint64_t, Resident>::iterator;

  void admit();
  std::optional<std::uint64_t> take(std::size_t most);
  void look(Place place);
  void settle(Place place, std::uint64_t instructions);
  std::uint64_t run_group(const Agent& agent, std::uint32_t instructions);
  void give_turn(const Schedule::Choice& choice);
  bool poll(Place place);
  void poll_next();
  void wait_for_change();
  bool report_deadlocks();
  bool all_wait() const;
  void report_stuck(const Agent& agent);

  LaunchContext& context_;
  Schedule& schedule_;
  std::uint64_t clusters_ = 0, next_ = 0, done_ = 0;
  std::vector<std::uint64_t> waiting_;           // the next of the grid, any of which may start
  std::map<std::uint64_t, Resident> residents_;  // by number
  std::set<std::uint64_t> blocked_;              // those with lanes that wait
  std::vector<std::unique_ptr<Cluster>> idle_;
  std::size_t room_ = 1;
  std::uint64_t turns_ = 0, polled_ = 0;
  Report report_;
  std::optional<Finding> finding_;
  Interruption interruption_;
};

}  // namespace tartan::TARTAN_ABI::emulator
