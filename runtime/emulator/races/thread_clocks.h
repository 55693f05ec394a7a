// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/thread_clocks.h - happens-before of the PTX memory model, for the threads
// of a cluster: what each of them knows that others did.
//
// Lanes that know the same share a clock. They part when some of them learn something alone, and
// come together again at a barrier of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
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
  ThreadClocks(Numbers numbers, Location& sequential);
  /// The cluster of that index begins: its threads know nothing.
  void start(std::uint32_t cluster, const std::vector<std::uint32_t>& lanes_of_warps);

  const Numbers& numbers() const { return numbers_; }
  std::uint32_t number(const Warp& warp, Actor actor = Actor::thread) const {
    return first_ + numbers_.distance(actor) + index(warp);
  }
  /// Whether it is the number of a lane's warp, of this cluster, and of nothing asynchronous.
  bool is_thread(std::uint32_t number) const { return number - first_ < numbers_.warps(); }
  /// Of the cluster's mbarrier with that index.
  std::uint32_t number_of_mbarrier(std::uint32_t mbarrier) const {
    return first_ + numbers_.distance(Actor::mbarrier) + mbarrier;
  }
  /// Whether the thread of such a number reaches `warp` at `scope`.
  bool within(std::uint32_t number, const Warp& warp, Scope scope) const;
  std::uint32_t time(const Warp& warp) const { return warps_[index(warp)].time; }
  /// Whether `lane` of `warp` knows that the access was done.
  bool knows(const Warp& warp, std::uint32_t lane, const Epoch& epoch) const;
  /// Whether some lane of the warp does.
  bool some_know(const Warp& warp, const Epoch& epoch) const;
  /// The same for all lanes of `mask` and whatever the lane of the access; false: ask for each.
  bool all_know(const Warp& warp, std::uint32_t mask, std::uint32_t of, std::uint32_t time) const;

  VectorClock fresh() const { return {first_, numbers_.span()}; }
  /// Lanes tell what they know, and what they did: arrive at a barrier.
  void release(const Warp& warp, std::uint32_t lanes, VectorClock& to);
  void acquire(const Warp& warp, std::uint32_t lanes, const VectorClock& from);
  /// They learn that one actor is over up to `time`.
  void learn_end(const Warp& warp, std::uint32_t lanes, std::uint32_t number, std::uint32_t time);
  /// The same for lanes that had told all they know to `from`: they are one again.
  void meet(const Warp& warp, std::uint32_t lanes, const VectorClock& from);
  /// griddepcontrol.wait, and whether the lane knows of one that has returned.
  void wait_for_predecessor(const Warp& warp, std::uint32_t lanes) {
    learn_end(warp, lanes, numbers_.predecessor(), 1);
  }
  bool knows_predecessor(const Warp& warp, std::uint32_t lane) const {
    return knows(warp, lane, {numbers_.predecessor(), 1, 0});
  }
  /// bar.warp.sync
  void sync_warp(const Warp& warp, std::uint32_t lanes);

  void fence(const Warp& warp, std::uint32_t lanes, Ordering ordering);
  /// fence.mbarrier_init: of what its lanes did, relaxed arrivals then tell mbarrier.init alone.
  void fence_inits(const Warp& warp, std::uint32_t lanes);
  /// fence.proxy.async: the async proxy sees what ordinary stores that its lanes know of wrote to
  /// shared or global memory.
  void fence_proxy(const Warp& warp, std::uint32_t lanes, bool shared, bool global);
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

  // What lanes do in groups: `actor` is cp_async, bulk_read or bulk_write.
  /// When what `lane` starts now will be over.
  std::uint32_t group_time(const Warp& warp, std::uint32_t lane, Actor actor) const {
    const GroupsOfLanes& all = warps_[index(warp)].asynchronous[place_of(actor)];
    return all.empty() ? 1 : all[lane].time;
  }
  Epoch group_epoch(const Warp& warp, std::uint32_t lane, Actor actor) const;
  void commit(const Warp& warp, std::uint32_t lanes, Actor actor);
  /// All but the last `pending` groups are over; none: also what is in no group yet.
  void wait(const Warp& warp, std::uint32_t lanes, Actor actor,
            std::optional<std::uint32_t> pending);
  /// `to` learns it once all of cp.async up to now are over.
  void release_copies(const Warp& warp, std::uint32_t lanes, VectorClock& to);
  /// Whether the thread that issued it has waited for it, if it is one of this cluster.
  bool has_waited(const Epoch& epoch) const;

  // wgmma: groups of a warpgroup, each of whose warps commits them and waits for them.
  Epoch product_epoch(const Warp& warp) const;
  /// A product is issued, in the group that is committed next.
  void issue_product(const Warp& warp, std::uint32_t pc) {
    state(warp).last_product = {pc, state(warp).products + 1};
  }
  void commit_products(const Warp& warp) { ++state(warp).products; }
  void wait_for_products(const Warp& warp, std::uint32_t pending);
  /// The pc of the last product, if the warp has not waited for its group.
  std::optional<std::uint32_t> unwaited_product(const Warp& warp) const;

 private:
  /// Lanes that know the same.
  struct Group {
    std::uint32_t lanes = 0;
    VectorClock now;
    bool fenced = false, read = false;  // whether there is something in what follows
    VectorClock before_fence[scopes];   // what was known at the last fence of that scope
    VectorClock seen;                   // by relaxed reads: known after the next fence
  };
  /// What a lane does asynchronously, in groups.
  struct Groups {
    std::uint32_t time = 1, waited = 0;
    std::vector<std::uint32_t> commits;  // times of those that were not waited for
  };
  static constexpr Actor grouped[] = {Actor::cp_async, Actor::bulk_read, Actor::bulk_write};
  using GroupsOfLanes = std::vector<Groups>;  // empty: there are none
  struct WarpState {
    std::uint32_t time = 1, lanes = 0;
    std::vector<Group> groups;
    GroupsOfLanes asynchronous[std::size(grouped)];
    std::uint32_t products = 0, products_waited = 0;  // groups of wgmma
    struct {
      std::uint32_t pc = 0, group = 0;
    } last_product;
  };

  std::uint32_t index(const Warp& warp) const;
  std::uint32_t cta(const Warp& warp) const;
  WarpState& state(const Warp& warp) { return warps_[index(warp)]; }
  static std::size_t place_of(Actor actor) {
    return static_cast<std::size_t>(actor) - static_cast<std::size_t>(Actor::cp_async);
  }
  static Groups& groups_of(WarpState& state, std::uint32_t lane, Actor actor) {
    GroupsOfLanes& all = state.asynchronous[place_of(actor)];
    if (all.empty()) all.resize(32);
    return all[lane];
  }
  std::uint32_t first_of_warpgroup(const Warp& warp) const;
  bool has_waited(const WarpState& mine, std::uint32_t own, std::uint32_t lane,
                  const Epoch& epoch) const;
  /// Calls body(group) for the groups of exactly those lanes: cut where need be.
  template <typename Body>
  void each_group(WarpState& state, std::uint32_t lanes, Body&& body);
  void tell(WarpState& state, const Group& group, std::uint32_t lanes, VectorClock& to);

  Numbers numbers_;
  std::uint32_t cluster_ = 0, first_ = 0;
  std::vector<WarpState> warps_;
  Location& sequential_;
};

}  // namespace tartan::inline TARTAN_ABI::emulator
