// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/vector_clock.h"

#include <algorithm>
#include <iterator>

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t all = 0xFFFFFFFF;

}  // namespace

void LaneTimes::assign(const Each& each) {
  const auto [low, high] = std::ranges::minmax(each);
  least_ = low;
  if (low == high) each_.reset();
  else each_ = std::make_shared<const Each>(each);
}

void LaneTimes::raise(std::uint32_t mask, std::uint32_t time) {
  if (time <= least_) return;
  if (mask == all && !each_) {
    least_ = time;
    return;
  }
  Each each;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t now = (*this)[lane];
    each[lane] = mask >> lane & 1 ? std::max(now, time) : now;
  }
  assign(each);
}

void LaneTimes::join(const LaneTimes& other) {
  if (each_ == other.each_) {
    least_ = std::max(least_, other.least_);  // the same where they have lanes of their own
    return;
  }
  if (!other.each_) return raise(all, other.least_);
  if (!each_ && least_ <= other.least_) {
    *this = other;
    return;
  }
  Each each;
  for (std::uint32_t lane = 0; lane < 32; ++lane) each[lane] = std::max((*this)[lane], other[lane]);
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
    for (std::size_t i = 0; i < other.own_.size(); ++i) own_[i].join(other.own_[i]);
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
