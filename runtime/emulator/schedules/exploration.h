// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/exploration.h - what `tartan run` asks of a launch beside its options,
// and is told.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/emulator/profile/requests.h"
#include "runtime/emulator/races/equal_stores.h"
#include "runtime/emulator/schedules/schedule.h"
#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI::detail {

using Clock = std::chrono::steady_clock;

/// So many seconds after `begin`; none for 0, and for what is no time point of the clock.
inline std::optional<Clock::time_point> deadline_after(double seconds, Clock::time_point begin) {
  constexpr double longest = 1e9;
  if (!(seconds > 0 && seconds < longest)) return std::nullopt;
  return begin +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Something in a launch that another schedule may have otherwise.
struct Obstacle {
  std::string text;
  bool explorable = false;  // the explorer has it in every order that matters
};

class Exploration {
 public:
  /// A launch in the usual order says what could come out otherwise in another one; nothing: it
  /// decides all of them (determinacy.h).
  bool proves = false;
  std::vector<Obstacle> obstacles;
  /// Or launches are under it.
  emulator::Schedule* schedule = nullptr;
  /// Where threads store the same value in no order: their stores are compared. Null: they are not.
  emulator::EqualStores* equal_stores = nullptr;
  /// Those of shared memory, in launches with a profile. Null: nobody looks.
  emulator::RequestRecorder* requests = nullptr;
  /// When all launches have to be over: DeviceOptions::timeout bounds each one alone.
  std::optional<Clock::time_point> deadline = {};
  /// The text is known to be legal, from an earlier run.
  bool checked = false;
};

/// When what begins now, a launch or the loading of a kernel, is stopped.
inline std::optional<Clock::time_point> deadline_of(const DeviceOptions& options,
                                                    Clock::time_point now) {
  if (options.exploration && options.exploration->deadline) return options.exploration->deadline;
  return deadline_after(options.timeout, now);
}

}  // namespace tartan::TARTAN_ABI::detail
