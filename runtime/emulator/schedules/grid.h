// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/grid.h - a launch under a schedule: as many clusters side by side as
// the hardware has room for, and turn by turn the agent that the schedule picks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/schedules/schedule.h"

namespace tartan::inline TARTAN_ABI::emulator {

class Grid {
 public:
  /// `most`: clusters that may run side by side.
  Grid(LaunchContext& context, Schedule& schedule, std::uint64_t most);
  ~Grid() { schedule_.end_launch(); }
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
    std::uint64_t index = 0;
    std::vector<Agent> agents;
  };

  void admit();
  std::optional<std::uint64_t> take();
  void look(Resident& resident);
  void collect();
  void give_turn(const Schedule::Turn& turn);
  bool poll();
  void wait_for_change();
  void end(std::size_t resident);

  LaunchContext& context_;
  Schedule& schedule_;
  std::uint64_t clusters_ = 0, next_ = 0, done_ = 0;
  std::vector<std::uint64_t> waiting_;  // the next of the grid, any of which may start
  std::vector<Resident> residents_;
  std::vector<std::unique_ptr<Cluster>> idle_;
  std::size_t room_ = 1;
  std::vector<Agent> agents_, blocked_;  // of all residents: those that can go on, those that wait
  std::uint64_t turns_ = 0;
  Report report_;
  std::optional<Finding> finding_;
};

}  // namespace tartan::inline TARTAN_ABI::emulator
