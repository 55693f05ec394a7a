// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/vector_clock.h - what a thread knows of the others: for each warp, up to
// which time it knows what each of the 32 lanes did.
//
// A warp's time counts what its lanes tell others, so one number serves all 32 of them as long as
// they tell it together; lanes that go their own ways get a number each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/emulator/races/numbers.h"
#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI::emulator {

/// Times of a warp's lanes. 0: nothing is known.
class LaneTimes {
 public:
  std::uint32_t operator[](std::uint32_t lane) const {
    if (each_) return (*each_)[lane];
    return lane == lane_ ? std::max(least_, more_) : least_;
  }
  std::uint32_t least() const { return least_; }
  bool nothing() const { return !least_ && !more_ && !each_; }
  /// At least `time` for the lanes of `mask`.
  void raise(std::uint32_t mask, std::uint32_t time);
  void join(const LaneTimes& other);

 private:
  using Each = std::array<std::uint32_t, 32>;
  bool raise_simply(std::uint32_t mask, std::uint32_t time);
  Each all() const;
  void assign(const Each& each);

  std::uint32_t least_ = 0;
  std::uint32_t lane_ = 0, more_ = 0;  // a lane that may be further: it alone does what one may do
  std::shared_ptr<const Each> each_;   // of all lanes; null: all others are at least_
};

/// Entries of the cluster's own numbers lie side by side, as far as they are in use; those of
/// others are looked up.
class VectorClock {
 public:
  VectorClock() = default;
  VectorClock(std::uint32_t first, std::uint32_t span) : first_(first), span_(span) {}

  const LaneTimes* find(std::uint32_t warp) const;
  bool knows(const Epoch& epoch) const {
    const LaneTimes* times = find(epoch.warp);
    return times && (times->least() >= epoch.time || (*times)[epoch.lane] >= epoch.time);
  }
  void raise(std::uint32_t warp, std::uint32_t lanes, std::uint32_t time) {
    at(warp).raise(lanes, time);
  }
  void join(const VectorClock& other);
  /// What is known of the first `count` numbers of each cluster is also known of those `distance`
  /// further; clusters are spans of this one's length.
  void copy(std::uint32_t count, std::uint32_t distance);
  /// Knows nothing.
  void clear();

 private:
  using Other = std::pair<std::uint32_t, LaneTimes>;
  LaneTimes& at(std::uint32_t warp);
  void merge(const std::vector<Other>& theirs);

  std::uint32_t first_ = 0, span_ = 0;
  std::vector<LaneTimes> own_;
  std::vector<Other> others_;  // by warp
};

}  // namespace tartan::inline TARTAN_ABI::emulator
