// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/vector_clock.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::emulator {

void SharedFences::join(const SharedFences& other) {
  if (!other.fences_ || fences_ == other.fences_) return;
  if (!fences_) {
    fences_ = other.fences_;
    return;
  }
  Fences made = *fences_;
  made.passed.join(other.fences_->passed);
  made.forced.join(other.fences_->forced);
  if (made == *fences_) return;
  if (made == *other.fences_) fences_ = other.fences_;
  else fences_ = std::make_shared<const Fences>(std::move(made));
}

const LaneTimes* VectorClock::find(std::uint32_t warp) const {
  const std::uint32_t at = warp - first_;
  if (at < span_) return at < own_.size() ? &own_[at] : nullptr;
  if (others_.empty()) return nullptr;
  const ClusterTimes* const times = others_.find(warp / span_);
  const std::uint32_t there = warp % span_;
  return times && there < times->size() ? &(*times)[there] : nullptr;
}

void VectorClock::raise(std::uint32_t warp, std::uint32_t lanes, std::uint32_t time) {
  if (const std::uint32_t at = warp - first_; at < span_) return own(at).raise(lanes, time);
  auto times = std::make_shared<ClusterTimes>(warp % span_ + 1);
  times->back().raise(lanes, time);
  others_.join(warp / span_, std::move(times));
}

void VectorClock::join_own(const ClusterTimes& theirs) {
  if (own_.size() < theirs.size()) own_.resize(theirs.size());
  for (std::size_t i = 0; i < theirs.size(); ++i)
    if (!theirs[i].nothing()) own_[i].join(theirs[i]);
}

void VectorClock::join(const VectorClock& other) {
  if (!span_) first_ = other.first_, span_ = other.span_;
  if (first_ != other.first_) return join(other.knowledge());
  join_own(other.own_);
  others_.join(other.others_);
  fences_.join(other.fences_);
}

void VectorClock::join(const Knowledge& other) {
  join(other.times);
  fences_.join(other.fences);
}

void VectorClock::join(const SharedTimes& other) {
  if (others_ == other) return;
  if (const ClusterTimes* const mine = span_ ? other.find(first_ / span_) : nullptr)
    join_own(*mine);
  others_.join(other);
}

SharedTimes VectorClock::times() const {
  SharedTimes out = others_;
  const bool any = std::ranges::any_of(own_, [](const LaneTimes& each) { return !each.nothing(); });
  if (any) out.join(first_ / span_, std::make_shared<const ClusterTimes>(own_));
  return out;
}

void VectorClock::copy(std::uint32_t count, std::uint32_t distance) {
  const auto change = [&](ClusterTimes& times) {
    bool any = false;
    const std::size_t known = std::min<std::size_t>(count, times.size());
    for (std::size_t i = 0; i < known; ++i) {
      if (times[i].nothing()) continue;
      if (times.size() <= i + distance) times.resize(i + distance + 1);
      if (times[i + distance].covers(times[i])) continue;
      const LaneTimes time = times[i];
      times[i + distance].join(time);
      any = true;
    }
    return any;
  };
  change(own_);
  others_.change_each(change);
}

void VectorClock::clear() {
  std::ranges::fill(own_, LaneTimes{});
  others_ = {};
  fences_ = {};
}

}  // namespace tartan::TARTAN_ABI::emulator
