// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/schedule.h - who goes on next, of all that can.
//
// A launch under a schedule runs on one host thread. Its grid (grid.h) asks after each turn which
// agent has the next one: lanes of a warp, or an asynchronous operation that is issued and not done
// (late.h). The same answers make the same launch, to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI::emulator {

struct Warp;

/// What can go on.
struct Agent {
  std::uint64_t id = 0;   // the same in every run of a launch
  Warp* warp = nullptr;   // null: an operation
  std::size_t group = 0;  // of warp->groups; of operations: which one of Late
  bool waiting = false;   // an mbarrier that these lanes found in the phase whose end they wait for
  std::size_t cluster = 0;  // of the resident ones
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  /// A launch begins: what the one before it did is over.
  virtual void begin_launch() {}
  /// It is over; its warps are still there.
  virtual void end_launch() {}
  /// How many of the `most` clusters that the hardware has room for run side by side.
  virtual std::size_t residents(std::size_t most) = 0;
  /// Which of so many clusters, the next of the grid, starts now.
  virtual std::size_t starts(std::size_t waiting) = 0;

  /// Whether lanes that wait look again once in a while, for what else they may do.
  virtual bool polls() const { return true; }

  struct Turn {
    std::size_t agent = 0;
    std::uint32_t instructions = 1;  // of lanes: at most
  };
  /// Whose turn it is. No agent is waiting.
  virtual Turn next(std::span<const Agent> agents) = 0;
};

/// The schedule that DeviceOptions::schedule names; null for an empty text, or one that names none.
std::unique_ptr<Schedule> make_schedule(std::string_view text);

}  // namespace tartan::inline TARTAN_ABI::emulator
