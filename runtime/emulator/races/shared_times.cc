// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/shared_times.h"

#include <bit>
#include <utility>

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint32_t every_lane = 0xFFFFFFFF;

}  // namespace

// ---- Of a warp.

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

bool LaneTimes::covers(const LaneTimes& other) const {
  if (other.each_ && each_ != other.each_) {
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      if ((*this)[lane] < (*other.each_)[lane]) return false;
    return true;
  }
  return other.each_ || (least_ >= other.least_ && (*this)[other.lane_] >= other.more_);
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

// ---- Of clusters.

namespace {

bool covers(const ClusterTimes& one, const ClusterTimes& other) {
  for (std::size_t i = 0; i < other.size(); ++i)
    if (i < one.size() ? !one[i].covers(other[i]) : !other[i].nothing()) return false;
  return true;
}

SharedTimes::Leaf joined(const SharedTimes::Leaf& one, const SharedTimes::Leaf& other) {
  if (one == other || covers(*one, *other)) return one;
  if (covers(*other, *one)) return other;
  auto made = std::make_shared<ClusterTimes>(*one);
  if (made->size() < other->size()) made->resize(other->size());
  for (std::size_t i = 0; i < other->size(); ++i) (*made)[i].join((*other)[i]);
  return made;
}

}  // namespace

const ClusterTimes* SharedTimes::find(std::uint32_t cluster) const {
  if (!root_ || std::uint64_t{cluster} >> bits * levels_) return nullptr;
  const Node* node = root_.get();
  for (int level = levels_; level > 0 && node; --level)
    node = node->below[cluster >> bits * (level - 1) & (fanout - 1)].get();
  return node ? node->leaf.get() : nullptr;
}

// Whatever one of them adds nothing to, is shared.
SharedTimes::NodePointer SharedTimes::joined(const NodePointer& one, const NodePointer& other) {
  if (!other || one == other) return one;
  if (!one) return other;
  Node made;
  bool is_one = true, is_other = true;
  if (one->leaf) {
    made.leaf = emulator::joined(one->leaf, other->leaf);
    is_one = made.leaf == one->leaf;
    is_other = made.leaf == other->leaf;
  } else {
    for (std::size_t i = 0; i < fanout; ++i) {
      made.below[i] = joined(one->below[i], other->below[i]);
      is_one &= made.below[i] == one->below[i];
      is_other &= made.below[i] == other->below[i];
    }
  }
  if (is_one) return one;
  return is_other ? other : std::make_shared<const Node>(std::move(made));
}

void SharedTimes::grow(int levels) {
  for (; levels_ < levels; ++levels_) {
    if (!root_) continue;
    Node above;
    above.below[0] = std::move(root_);
    root_ = std::make_shared<const Node>(std::move(above));
  }
}

void SharedTimes::join(const SharedTimes& other) {
  if (!other.root_ || root_ == other.root_) return;
  if (!root_) {
    *this = other;
    return;
  }
  SharedTimes theirs = other;
  grow(theirs.levels_);
  theirs.grow(levels_);
  root_ = joined(root_, theirs.root_);
}

void SharedTimes::join(std::uint32_t cluster, Leaf times) {
  SharedTimes path;
  Node leaf;
  leaf.leaf = std::move(times);
  path.root_ = std::make_shared<const Node>(std::move(leaf));
  for (std::uint32_t left = cluster; left || path.levels_ < levels_; ++path.levels_) {
    Node above;
    above.below[left & (fanout - 1)] = std::move(path.root_);
    path.root_ = std::make_shared<const Node>(std::move(above));
    left >>= bits;
  }
  join(path);
}

}  // namespace tartan::TARTAN_ABI::emulator
