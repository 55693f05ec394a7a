// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/vector_clock.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t every_lane = 0xFFFFFFFF;

}  // namespace

LaneTimes::Each LaneTimes::all() const {
  if (each_) return *each_;
  Each each;
  each.fill(least_);
  each[lane_] = std::max(least_, more_);
  return each;
}

void LaneTimes::assign(const Each& each) {
  const auto low = std::ranges::min(each);
  const auto further = std::ranges::max_element(each);
  const auto level = std::ranges::count(each, low);
  *this = {};
  least_ = low;
  if (level == std::ssize(each)) return;
  if (level < std::ssize(each) - 1) {
    each_ = std::make_shared<const Each>(each);
    return;
  }
  lane_ = static_cast<std::uint32_t>(further - each.begin());
  more_ = *further;
}

// False: the lanes would differ in more than one.
bool LaneTimes::raise_simply(std::uint32_t mask, std::uint32_t time) {
  if (each_) return false;
  if (mask == every_lane) {
    least_ = time;
    if (more_ <= least_) more_ = 0;
    return true;
  }
  if (!std::has_single_bit(mask)) return false;
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  if (more_ && lane != lane_) return false;
  lane_ = lane;
  more_ = std::max(more_, time);
  return true;
}

void LaneTimes::raise(std::uint32_t mask, std::uint32_t time) {
  if (time <= least_ || raise_simply(mask, time)) return;
  Each each = all();
  for (std::uint32_t lane = 0; lane < each.size(); ++lane)
    if (mask >> lane & 1) each[lane] = std::max(each[lane], time);
  assign(each);
}

void LaneTimes::join(const LaneTimes& other) {
  if (!other.each_) {
    raise(every_lane, other.least_);
    if (other.more_) raise(1u << other.lane_, other.more_);
    return;
  }
  if (each_ == other.each_) return;
  if (!each_ && std::max(least_, more_) <= other.least_) {
    *this = other;
    return;
  }
  Each each = all();
  const Each& theirs = *other.each_;
  for (std::size_t i = 0; i < each.size(); ++i) each[i] = std::max(each[i], theirs[i]);
  assign(each);
}

const LaneTimes* VectorClock::find(std::uint32_t warp) const {
  const std::uint32_t at = warp - first_;
  if (at < span_) return at < own_.size() ? &own_[at] : nullptr;
  const auto found = std::ranges::lower_bound(others_, warp, {}, &Other::first);
  return found != others_.end() && found->first == warp ? &found->second : nullptr;
}

LaneTimes& VectorClock::at(std::uint32_t warp) {
  if (const std::uint32_t at = warp - first_; at < span_) {
    if (at >= own_.size()) own_.resize(at + 1);
    return own_[at];
  }
  auto found = std::ranges::lower_bound(others_, warp, {}, &Other::first);
  if (found == others_.end() || found->first != warp)
    found = others_.insert(found, {warp, LaneTimes{}});
  return found->second;
}

void VectorClock::join(const VectorClock& other) {
  if (first_ == other.first_ && span_ == other.span_) {
    if (own_.size() < other.own_.size()) own_.resize(other.own_.size());
    for (std::size_t i = 0; i < other.own_.size(); ++i)
      if (!other.own_[i].nothing()) own_[i].join(other.own_[i]);
  } else {
    std::vector<Other> theirs;
    for (std::size_t i = 0; i < other.own_.size(); ++i)
      if (!other.own_[i].nothing())
        theirs.emplace_back(other.first_ + static_cast<std::uint32_t>(i), other.own_[i]);
    merge(theirs);
  }
  merge(other.others_);
}

// Both are sorted.
void VectorClock::merge(const std::vector<Other>& theirs) {
  if (theirs.empty()) return;
  std::vector<Other> merged;
  merged.reserve(others_.size() + theirs.size());
  auto mine = others_.begin();
  for (const Other& each : theirs) {
    if (each.first - first_ < span_) {
      at(each.first).join(each.second);
      continue;
    }
    while (mine != others_.end() && mine->first < each.first) merged.push_back(std::move(*mine++));
    if (mine != others_.end() && mine->first == each.first) {
      merged.push_back(std::move(*mine++));
      merged.back().second.join(each.second);
    } else {
      merged.push_back(each);
    }
  }
  std::move(mine, others_.end(), std::back_inserter(merged));
  others_ = std::move(merged);
}

void VectorClock::copy(std::uint32_t count, std::uint32_t distance) {
  for (std::uint32_t i = 0; i < count && i < own_.size(); ++i)
    if (!own_[i].nothing()) {
      const LaneTimes known = own_[i];
      at(first_ + i + distance).join(known);
    }
  std::vector<Other> more;
  for (const auto& [number, times] : others_)
    if (number % span_ < count) more.emplace_back(number + distance, times);
  merge(more);
}

void VectorClock::clear() {
  std::ranges::fill(own_, LaneTimes{});
  others_.clear();
}

}  // namespace tartan::inline TARTAN_ABI::emulator
