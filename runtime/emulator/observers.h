// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/observers.h - who observes a launch, as its options say: the only place that
// knows all observers.
#pragma once

#include <optional>
#include <vector>

#include "runtime/emulator/algebra/observer.h"
#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/definedness/definedness.h"
#include "runtime/emulator/profile/profile.h"
#include "runtime/emulator/races/detector.h"
#include "runtime/emulator/schedules/determinacy.h"
#include "runtime/emulator/timeline/recorder.h"

namespace tartan::TARTAN_ABI::emulator {

/// Has a kernel decoded for launches with those options.
void observe(Decoder& decoder, const DeviceOptions& options, bool algebra);

class Observers {
 public:
  /// They join `context`, whose program is decoded for them. Null: no algebra; no launch before
  /// that may still run.
  Observers(LaunchContext& context, const DeviceOptions& options, Algebra* algebra,
            Predecessor* predecessor);

  /// The launch is over: the timeline gets its events and the exploration its obstacles, the report
  /// what was counted.
  void finish(Report& report);
  std::vector<Finding> findings() const;
  /// Who accessed global memory last; null without checks.
  Shadow* global() { return races_ ? &races_->global : nullptr; }

 private:
  const DeviceOptions& options_;
  std::optional<LaunchRaces> races_;
  std::optional<UncheckedRaces> unchecked_races_;
  std::optional<LaunchDefinedness> definedness_;
  std::optional<LaunchAlgebra> algebra_;
  std::optional<LaunchProfile> profile_;
  std::optional<LaunchTimeline> timeline_;
  std::optional<Determinacy> determinacy_;
};

}  // namespace tartan::TARTAN_ABI::emulator
