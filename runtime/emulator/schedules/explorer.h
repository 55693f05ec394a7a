// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/explorer.h - goes through the schedules of a launch that differ in
// more than the order of steps which do not see each other.
//
// Stateless model checking by dynamic partial-order reduction with source sets and sleep sets
// (Abdulla, Aronis, Jonsson and Sagonas, 2014). The launch runs again and again from its start;
// each run repeats the choices of the last one up to a place where another agent is to go first.
//
// A choice is made where no agent can go on without something that others see: a strong access to
// memory, an operation on an mbarrier, or the completion of an asynchronous operation. A wait that
// fails in a loop that only tries again leaves its lanes blocked, and so does a strong read in such
// a loop that finds the value of the time before. Lanes of a warp that come to such a place
// together take it together, in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/machine/warp.h"
#include "runtime/emulator/schedules/execution.h"
#include "runtime/emulator/schedules/schedule.h"

namespace tartan::inline TARTAN_ABI::emulator {

class Explorer final : public Schedule {
 public:
  Explorer() = default;
  /// Repeats one run: what name() said of it.
  explicit Explorer(std::vector<std::uint32_t> choices);

  /// Prepares the next run; false: all have been.
  bool again();
  /// The choices of the last run, as DeviceOptions::schedule takes them: "x0*12,2,1".
  std::string name() const;
  /// Whether its last run was cut short: others have had all that could come of it.
  bool is_redundant() const { return redundant_; }

  std::size_t residents(std::size_t most) override { return most; }
  std::size_t starts(std::size_t) override { return 0; }
  bool polls() const override { return false; }
  Turn next(std::span<const Agent> agents) override;

 private:
  /// A place where there was a choice.
  struct Choice {
    std::vector<std::uint64_t> enabled;
    std::uint64_t chosen = 0;
    std::optional<std::size_t> event;  // what came of it; none: nothing that others see
    std::set<std::uint64_t> wanted, done;
    std::map<std::uint64_t, Event> sleeping;
  };
  /// Lanes whose access found what it had found, in a loop that tries again.
  struct Spin {
    const std::byte* at = nullptr;
    std::vector<std::byte> value;
    std::uint32_t pc = 0;
    std::uint64_t steps = 0;
    bool blocks = false;
  };

  bool is_visible(const Warp& warp, std::uint32_t pc);
  bool is_blocked(const Agent& agent);
  Event begin(const Agent& agent);
  void touch_memory(Warp& warp, const Group& group, std::uint32_t pc, Event& event);
  void finish();
  void compare_mbarriers(Event& event);
  void note_spin();
  void branch();
  std::uint64_t pick(Choice& choice);

  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
  std::vector<std::uint32_t> fixed_;  // of one run
  bool repeats_ = false, redundant_ = false, began_ = false;
  std::vector<std::uint32_t> taken_;  // in this run, by place among the enabled
  Execution execution_;

  /// The step that is going on.
  struct Step {
    bool running = false, visible = false;
    Agent agent;
    Event event;
    std::uint32_t pc = 0, lanes = 0, number = 0, time = 0;
  } step_;
  struct Known {
    std::uint32_t number = 0, lanes = 0, time = 0;  // 0 lanes: an operation
  };
  std::vector<Known> known_;                               // of events
  std::unordered_map<std::uint64_t, std::size_t> issued_;  // operations: by which event
  std::unordered_map<std::uint64_t, std::size_t> last_;    // of a warp: its last event
  struct Watched {
    Mbarrier state;
    std::uint32_t phases = 0;
    std::uint64_t space = 0, address = 0;
  };
  std::map<const std::byte*, Watched> mbarriers_;
  std::unordered_map<std::uint64_t, Spin> spins_;
  std::map<std::pair<const Program*, std::uint32_t>, bool> visible_;
};

}  // namespace tartan::inline TARTAN_ABI::emulator
