// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/explorer.h - goes through the schedules of a launch that differ in
// more than the order of steps which do not see each other.
//
// Stateless model checking by dynamic partial-order reduction with source sets and sleep sets
// (Abdulla, Aronis, Jonsson and Sagonas, 2014). The launch runs again and again from its start;
// each run repeats the choices of the last one up to a place where another agent is to go first.
//
// A choice is made where no agent can go on without something that others see: a strong access to
// memory, an operation on an mbarrier, or the completion of an asynchronous operation. Lanes of a
// warp that are on one path take such a step together, in their order; those on different paths are
// agents of their own.
//
// Lanes that come back to a place with the registers they had there, and have changed nothing
// since, go round in vain: they are blocked until a place that they read on the way holds something
// else. Those that have changed something and come back all the same let others go first. Where all
// come back to what was, and each that could go on has gone on, they do so for ever: a livelock.
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
#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/schedules/schedule.h"

namespace tartan::TARTAN_ABI::emulator {

/// The lanes that go on with an agent: groups that stand at one place do so as one.
std::uint32_t lanes_at(const Agent& agent);

class Explorer final : public ListedSchedule {
 public:
  Explorer() = default;
  /// Repeats one run: what name() said of it.
  explicit Explorer(std::vector<std::uint32_t> choices);
  /// When its own work has to be over, too. What it says behind that decides nothing.
  void set_deadline(std::optional<detail::Clock::time_point> deadline) { deadline_ = deadline; }

  /// Prepares the next run; false: all have been.
  bool again();
  /// The choices of the last run, as DeviceOptions::schedule takes them: "x0*12,2,1".
  std::string name() const override;
  const std::vector<std::uint32_t>& taken() const { return taken_; }
  /// Whether its last run was cut short: others have had all that could come of it.
  bool is_redundant() const { return redundant_; }

  void begin(const LaunchContext& context) override;
  void over() override { finish(); }
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
  /// What lanes found since they last changed something that others see, and where they were.
  struct Rounds {
    struct Found {
      const std::byte* at = nullptr;
      std::vector<std::byte> value;
    };
    struct Visit {
      std::uint32_t pc = 0;
      std::uint64_t registers = 0;
      std::size_t found = 0;  // before it
      bool operator==(const Visit&) const = default;
    };
    std::uint32_t lanes = 0;
    std::vector<Found> found;
    std::vector<Visit> visits;
    std::optional<std::size_t> blocked;  // what it found from there on lets it go on
    bool arrived = false;                // at its next step, and was looked at there
    std::uint64_t registers = 0;         // then
    std::set<std::pair<std::uint32_t, std::uint64_t>> before;  // visits of the whole run
    std::uint32_t returns = 0;                                 // to one of those
  };

  bool is_visible(const Warp& warp, std::uint32_t pc);
  bool is_blocked(const Agent& agent);
  void arrive(const Agent& agent, Rounds& rounds);
  bool changes_nothing(Warp& warp, std::uint32_t pc) const;
  std::uint64_t state(std::span<const Agent> agents) const;
  bool is_livelock(std::span<const Agent> agents, std::span<const std::size_t> enabled);
  std::size_t choose(std::span<const Agent> agents, std::span<const std::size_t> enabled);
  template <typename Allowed>
  std::optional<std::size_t> fairest(std::span<const Agent> agents,
                                     std::span<const std::size_t> enabled, Allowed&& allowed);
  void begin_choice(std::span<const Agent> agents, std::span<const std::size_t> enabled);
  Event event_of(const Agent& agent);
  void touch_memory(Warp& warp, std::uint32_t lanes, std::uint32_t pc, Event& event);
  void finish();
  void compare_mbarriers(Event& event);
  void note_rounds();
  static void forget_rounds(Rounds& rounds);
  void branch();

  std::vector<Choice> choices_;
  std::optional<detail::Clock::time_point> deadline_;
  std::size_t depth_ = 0;
  std::vector<std::uint32_t> fixed_;  // of one run
  bool repeats_ = false, redundant_ = false, began_ = false;
  std::vector<std::uint32_t> taken_;  // in this run, by place among the enabled
  Execution execution_;
  std::size_t earlier_ = 0;  // events of the launches before

  /// The step that is going on.
  struct Step {
    bool running = false, visible = false;
    Agent agent;
    Event event;
    std::uint32_t pc = 0, lanes = 0, number = 0, time = 0;
    std::vector<Rounds::Found> before;  // at the places that it touches
  } step_;
  struct Known {
    std::uint32_t number = 0, lanes = 0, time = 0;  // 0 lanes: an operation
  };
  std::vector<Known> known_;                               // of events
  std::unordered_map<std::uint64_t, std::size_t> issued_;  // operations: by which event
  std::unordered_map<std::uint64_t, std::size_t> last_;    // of a thread: its last event
  struct Watched {
    Mbarrier state;
    std::uint32_t phases = 0;
    std::uint64_t space = 0, address = 0;
  };
  std::map<const std::byte*, Watched> mbarriers_;
  std::unordered_map<std::uint64_t, Rounds> rounds_;  // of agents
  std::map<const std::byte*, std::uint64_t> places_;  // that were touched, and their bytes
  std::uint64_t changes_ = 0;                         // of what places_ does not show
  /// Who could go on at a choice, and who did.
  struct Passed {
    std::vector<std::uint64_t> enabled;
    std::uint64_t chosen = 0;
  };
  static constexpr std::size_t longest_cycle = 4096;  // of a livelock, in choices
  std::vector<Passed> passed_;                        // the last so many: by number modulo that
  std::size_t choices_passed_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> states_;  // by when
  std::map<std::pair<const Program*, std::uint32_t>, bool> visible_;
};

}  // namespace tartan::TARTAN_ABI::emulator
