// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/thread_clocks.h - happens-before of the PTX memory model, for the threads
// of a cluster: what each of them knows that others did.
//
// Lanes that know the same share a clock. They part when some of them learn something alone, and
// come together again at a barrier of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/races/vector_clock.h"
#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI::emulator {

struct Warp;

/// How far a strong operation or a fence reaches.
enum class Scope : std::uint8_t { cta, cluster, gpu };
inline constexpr std::size_t scopes = 3;

/// What was made known at a place in memory, by those who wrote there in a release pattern.
class Location {
 public:
  void publish(const VectorClock& what, Scope scope, std::uint32_t cta, std::uint32_t cluster);
  /// Adds what somebody of that CTA learns by an acquire pattern of `scope`.
  void learn(VectorClock& to, Scope scope, std::uint32_t cta, std::uint32_t cluster) const;

 private:
  struct Part {
    Scope scope;
    std::uint32_t owner;
    VectorClock known;
  };
  Part& part(Scope scope, std::uint32_t owner);
  std::vector<Part> parts_;
};
using Locations = std::unordered_map<std::uint64_t, Location>;

/// What a strong operation or a fence does.
struct Ordering {
  Scope scope = Scope::gpu;
  bool acquires = false, releases = false, sequential = false;
};

class ThreadClocks {
 public:
  /// `sequential`: of all fences .sc of the launch.
  ThreadClocks(std::uint32_t blocks, std::uint32_t warps_per_block, Location& sequential);
  /// The cluster of that index begins: its threads know nothing.
  void start(std::uint32_t cluster, const std::vector<std::uint32_t>& lanes_of_warps);

  /// The number of a warp in the grid; cp.async writes as a thread of its own, whose warp has the
  /// next number.
  std::uint32_t number(const Warp& warp) const { return first_ + 2 * index(warp); }
  std::uint32_t warps_of_cluster() const { return static_cast<std::uint32_t>(warps_.size()); }
  /// Whether the thread of such a number reaches `warp` at `scope`.
  bool within(std::uint32_t number, const Warp& warp, Scope scope) const;
  std::uint32_t time(const Warp& warp) const { return warps_[index(warp)].time; }
  /// Whether `lane` of `warp` knows that the access was done.
  bool knows(const Warp& warp, std::uint32_t lane, const Epoch& epoch) const;
  /// The same for all lanes of `mask` and whatever the lane of the access; false: ask for each.
  bool all_know(const Warp& warp, std::uint32_t mask, std::uint32_t of, std::uint32_t time) const;

  VectorClock fresh() const { return {first_, 2 * warps_of_cluster()}; }
  /// Lanes tell what they know, and what they did: arrive at a barrier.
  void release(const Warp& warp, std::uint32_t lanes, VectorClock& to);
  void acquire(const Warp& warp, std::uint32_t lanes, const VectorClock& from);
  /// The same for lanes that had told all they know to `from`: they are one again.
  void meet(const Warp& warp, std::uint32_t lanes, const VectorClock& from);
  /// bar.warp.sync
  void sync_warp(const Warp& warp, std::uint32_t lanes);

  void fence(const Warp& warp, std::uint32_t lanes, Ordering ordering);
  /// Before a strong write of `lanes` to the place; `replaces`: it is no read-modify-write.
  void publish(const Warp& warp, std::uint32_t lanes, Location& at, Ordering ordering,
               bool replaces);
  /// Whether publish() has something to publish.
  bool can_publish(const Warp& warp, std::uint32_t lanes, Ordering ordering) const;
  /// What relaxed arrivals tell: what was known at the last fence.
  void release_fenced(const Warp& warp, std::uint32_t lanes, Scope scope, VectorClock& to);
  /// What a relaxed wait learns: known after the next fence.
  void acquire_relaxed(const Warp& warp, std::uint32_t lanes, const VectorClock& from);
  /// After a strong read.
  void learn(const Warp& warp, std::uint32_t lanes, const Location& at, Ordering ordering);

  // cp.async
  /// When what `lane` copies now will be over.
  Epoch copy_epoch(const Warp& warp, std::uint32_t lane) const;
  void commit_copies(const Warp& warp, std::uint32_t lanes);
  /// All but the last `pending` groups are over; none: also what is in no group yet.
  void wait_for_copies(const Warp& warp, std::uint32_t lanes, std::optional<std::uint32_t> pending);
  /// `to` learns it once all copies up to now are over.
  void release_copies(const Warp& warp, std::uint32_t lanes, VectorClock& to);
  /// Whether the thread that issued a copy has waited for it, if it is one of this cluster.
  bool has_waited(const Epoch& copy) const;

 private:
  /// Lanes that know the same.
  struct Group {
    std::uint32_t lanes = 0;
    VectorClock now;
    bool fenced = false, read = false;  // whether there is something in what follows
    VectorClock before_fence[scopes];   // what was known at the last fence of that scope
    VectorClock seen;                   // by relaxed reads: known after the next fence
  };
  struct Copies {
    std::uint32_t time = 1, waited = 0;
    std::vector<std::uint32_t> commits;  // times of those that were not waited for
  };
  struct WarpState {
    std::uint32_t time = 1, lanes = 0;
    std::vector<Group> groups;
    std::vector<Copies> copies;  // of lanes; none: it has no copies
  };

  std::uint32_t index(const Warp& warp) const;
  std::uint32_t cta(const Warp& warp) const;
  WarpState& state(const Warp& warp) { return warps_[index(warp)]; }
  Copies& copies(WarpState& state, std::uint32_t lane) {
    if (state.copies.empty()) state.copies.resize(32);
    return state.copies[lane];
  }
  /// Calls body(group) for the groups of exactly those lanes: cut where need be.
  template <typename Body>
  void each_group(WarpState& state, std::uint32_t lanes, Body&& body);
  void tell(WarpState& state, const Group& group, std::uint32_t lanes, VectorClock& to);

  std::uint32_t blocks_, warps_per_block_;
  std::uint32_t cluster_ = 0, first_ = 0;
  std::vector<WarpState> warps_;
  Location& sequential_;
};

}  // namespace tartan::inline TARTAN_ABI::emulator
