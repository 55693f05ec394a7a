// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/exploration.h - what `tartan run --schedules all` asks of a launch,
// and is told.
#pragma once

#include <string>
#include <vector>

#include "runtime/emulator/races/equal_stores.h"
#include "runtime/emulator/schedules/schedule.h"

namespace tartan::inline TARTAN_ABI::detail {

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
  emulator::EqualStores equal_stores;
};

}  // namespace tartan::inline TARTAN_ABI::detail
