// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/shared_times.h - what is known of the warps of other clusters, in memory
// that all those share who know the same.
//
// Where many CTAs hand on what they know (a last block, a look-back), each knows what the one
// before it knew, and itself. So the times are a tree of clusters, and a tree that knows more takes
// over the branches of the other: it costs what is new, not what is known.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// Times of a warp's lanes. 0: nothing is known.
class LaneTimes {
 public:
  std::uint32_t operator[](std::uint32_t lane) const {
    if (each_) return (*each_)[lane];
    return lane == lane_ ? std::max(least_, more_) : least_;
  }
  std::uint32_t least() const { return least_; }
  bool operator==(const LaneTimes&) const = default;
  bool nothing() const { return !least_ && !more_ && !each_; }
  /// Whether join() of the other would change nothing.
  bool covers(const LaneTimes& other) const;
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

/// Of a cluster's numbers, from its first one on, as far as they are in use.
using ClusterTimes = std::vector<LaneTimes>;

class SharedTimes {
 public:
  using Leaf = std::shared_ptr<const ClusterTimes>;

  bool empty() const { return !root_; }
  bool operator==(const SharedTimes& other) const = default;
  /// Of that cluster; null: nothing.
  const ClusterTimes* find(std::uint32_t cluster) const;
  void join(const SharedTimes& other);
  void join(std::uint32_t cluster, Leaf times);
  /// Calls change(times) for a copy of each cluster's, which it may add to; false: it did not.
  template <typename Change>
  void change_each(Change&& change) {
    root_ = changed(root_, levels_, change);
  }

 private:
  static constexpr int bits = 4;
  static constexpr std::size_t fanout = std::size_t{1} << bits;
  struct Node {
    std::array<std::shared_ptr<const Node>, fanout> below;  // of branches
    Leaf leaf;
  };
  using NodePointer = std::shared_ptr<const Node>;

  static NodePointer joined(const NodePointer& one, const NodePointer& other);
  void grow(int levels);
  template <typename Change>
  static NodePointer changed(const NodePointer& node, int levels, Change& change) {
    if (!node) return node;
    auto made = std::make_shared<Node>(*node);
    if (levels > 0) {
      for (NodePointer& each : made->below) each = changed(each, levels - 1, change);
      return made->below == node->below ? node : made;
    }
    auto times = std::make_shared<ClusterTimes>(*node->leaf);
    if (!change(*times)) return node;
    made->leaf = std::move(times);
    return made;
  }

  NodePointer root_;
  int levels_ = 0;  // above the leaves: clusters below fanout^levels
};

}  // namespace tartan::TARTAN_ABI::emulator
