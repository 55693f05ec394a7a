// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/execution.h - what one run of a launch did that others could see, and
// which of it could have come in another order.
//
// An event is a step of an agent at a place where threads meet: a strong access to memory, a change
// of an mbarrier or a wait for it. Two events depend on each other where their order makes a
// difference. What happens before what is the program order, what synchronization orders, and the
// order of dependent events as it was. Two dependent events that nothing else orders are a race in
// the sense of partial-order reduction: another schedule has them the other way round.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// What an event did at one place.
struct Touch {
  enum class Kind : std::uint8_t {
    read,
    write,
    reduce,  // a reduction without a result
    change,  // of an mbarrier: arrivals, bytes
    expect,  // of an mbarrier: bytes alone
    wait     // for an mbarrier's last phase, which was over
  };
  Kind kind = Kind::read;
  std::uint64_t space = 0, first = 0, bytes = 0;  // of memory; of mbarriers the first byte
  std::uint64_t reduction = 0;                    // equal ones commute
  std::uint32_t phase = 0;                        // of an mbarrier: how many were over before
  bool ends = false;                              // and it ends another one
};

struct Event {
  std::uint64_t agent = 0;
  std::vector<Touch> touches;
  std::vector<std::size_t>
      after;  // earlier events of the same threads, and those that it waited for
};

/// Whether the order of the two makes a difference; `one` came first.
bool depend(const Event& one, const Event& other);
/// The same where they may come in another state: whatever phases are then.
bool may_depend(const Event& one, const Event& other);

class Execution {
 public:
  void clear();
  /// `knows(i)`: synchronization orders event i before this one.
  void add(Event event, const std::function<bool(std::size_t)>& knows);
  std::size_t size() const { return events_.size(); }
  const Event& operator[](std::size_t i) const { return events_[i]; }

  /// For each race of events (i, j): the agents that may go on in place of event i, so that j can
  /// come before it. j's own agent is the first, if it is one of them.
  struct Reversal {
    std::size_t at = 0;
    std::vector<std::uint64_t> agents;
  };
  /// Behind the deadline those that it has found.
  std::vector<Reversal> reversals(
      std::optional<std::chrono::steady_clock::time_point> deadline) const;

 private:
  bool before(std::size_t i, std::size_t j) const { return before_[j][i]; }
  bool is_race(std::size_t i, std::size_t j) const;
  // The agents that could go on in place of event i.
  std::vector<std::uint64_t> initials(std::size_t i, std::size_t j) const;

  std::vector<Event> events_;
  std::vector<std::vector<bool>> before_;  // before_[j][i]: i happens before j
};

}  // namespace tartan::TARTAN_ABI::emulator
