// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/thread_clocks.h - happens-before of the PTX memory model, for the threads
// of a cluster: what each of them knows that others did.
//
// Lanes that know the same share a clock. They part when some of them learn something alone, and
// come together again at a barrier of all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/emulator/races/vector_clock.h"
#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

struct Warp;

/// How a strong access uses a place in memory.
struct StrongUse {
  enum class Kind : std::uint8_t {
    reads,
    writes,   // or changes, and gives what was there
    reduces,  // without a result: those of one operation commute
  } kind = Kind::reads;
  std::uint64_t operation = 0;  // of reductions
};

/// A place in memory: what was made known there, by those who wrote in a release pattern, and which
/// fences .sc came before the accesses to it. Of two accesses one of which sees the other, those
/// behind the second have come after those in front of the first.
class Location {
 public:
  Scoped<Knowledge> published;

  /// An access behind the fences `passed` adds to `forced` those that must have come before it.
  void use(const StrongUse& how, const Scoped<SharedTimes>& passed, Scoped<SharedTimes>& forced);

 private:
  void seal_reductions();

  Scoped<SharedTimes> writes_, reads_, reductions_;  // fences in front of them
  std::uint64_t operation_ = 0;                      // of the reductions
};
using Locations = std::unordered_map<std::uint64_t, Location>;

/// What a strong operation or a fence does.
struct Ordering {
  Scope scope = Scope::gpu;
  bool acquires = false, releases = false, sequential = false;
};

class ThreadClocks {
 public:
  /// What the program has.
  struct Program {
    bool sequential = true;  // fences .sc
    bool narrow = true;      // strong operations or fences of a scope below .gpu
  };
  ThreadClocks(Numbers numbers, Program program);
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
  /// What the warp does from here on is later than what it did.
  void tick(const Warp& warp) { ++state(warp).time; }
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
  /// Whether publish() has something to publish, or use() to leave.
  bool can_publish(const Warp& warp, std::uint32_t lanes, Ordering ordering) const;
  /// What relaxed arrivals tell: what was known at the last fence.
  void release_fenced(const Warp& warp, std::uint32_t lanes, Scope scope, VectorClock& to);
  /// What a relaxed wait learns: known after the next fence of that scope.
  void acquire_relaxed(const Warp& warp, std::uint32_t lanes, const VectorClock& from, Scope scope);
  /// After a strong read.
  void learn(const Warp& warp, std::uint32_t lanes, const Location& at, Ordering ordering);
  /// Between the two, for the order of fences .sc.
  void use(const Warp& warp, std::uint32_t lanes, Location& at, const StrongUse& how);

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
  /// `to` learns that all of cp.async up to now are over, and of nothing else that the lanes did.
  void release_copies(const Warp& warp, std::uint32_t lanes, VectorClock& to);
  /// Whether the thread that issued it has waited for it, if it is one of this cluster.
  bool has_waited(const Epoch& epoch) const;

  /// The instruction at `pc` gives work to the tensor core.
  void issue_to_core(const Warp& warp, std::uint32_t pc);
  /// tcgen05.commit: for those who learn of `to`, what a lane has issued to the tensor core is
  /// over, and with it what that work came behind: all that the lane knew, and did, when it issued
  /// the last of it.
  void release_core(const Warp& warp, std::uint32_t lane, VectorClock& to);

  // tcgen05.fence (tensor_fences.cc).
  /// before_thread_sync: what the lanes did to tensor memory is told by what follows, relaxed
  /// arrivals included.
  void fence_tensor_before(const Warp& warp, std::uint32_t lanes);
  /// after_thread_sync: what they do there from here on comes behind what they were told of it,
  /// relaxed waits included.
  void fence_tensor_after(const Warp& warp, std::uint32_t lanes);
  /// Whether some lane of `lanes` knew of it at its last after_thread_sync.
  bool fenced_after(const Warp& warp, std::uint32_t lanes, const Epoch& epoch) const;

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
  /// What was known at a fence. Each lane has its own: what the others of the group did in front of
  /// theirs is not behind it.
  struct Fence {
    Knowledge known;
    std::uint32_t time = 0;                                   // of the warp; 0: there was none
    std::vector<std::pair<std::uint32_t, LaneTimes>> waited;  // by number: of each lane
    bool operator==(const Fence&) const = default;
  };
  /// Lanes that know the same.
  struct Group {
    std::uint32_t lanes = 0;
    VectorClock now;
    bool fenced = false, read = false;  // whether there is something in what follows
    Fence before[scopes];               // the last fence of that scope or a wider one
    Knowledge seen[scopes];    // told at that scope to relaxed reads: known after the next fence
    Fence sequential[scopes];  // as `before`, fences .sc: not in now.fences() yet
    VectorClock tensor;        // `now` at the last tcgen05.fence::after_thread_sync
  };
  /// What a lane does asynchronously, in groups.
  struct Groups {
    std::uint32_t time = 1, waited = 0;
    std::vector<std::uint32_t> commits;  // times of those that were not waited for
  };
  static constexpr Actor grouped[] = {Actor::cp_async, Actor::bulk_read, Actor::bulk_write,
                                      Actor::tensor_load, Actor::tensor_store};
  using GroupsOfLanes = std::vector<Groups>;  // empty: there are none
  struct WarpState {
    std::uint32_t time = 1, lanes = 0;
    std::vector<Group> groups;
    GroupsOfLanes asynchronous[std::size(grouped)];
    std::uint32_t products = 0, products_waited = 0;  // groups of wgmma
    struct {
      std::uint32_t pc = 0, group = 0;
    } last_product;
    struct {
      std::uint32_t pc = ~0u, time = 0;  // of its accesses: what came before has a lower one
    } to_core;
  };

  std::uint32_t index(const Warp& warp) const;
  ScopedPlace place(const Warp& warp) const;
  WarpState& state(const Warp& warp) { return warps_[index(warp)]; }
  static std::size_t place_of(Actor actor) {
    return static_cast<std::size_t>(std::ranges::find(grouped, actor) - std::begin(grouped));
  }
  static Groups& groups_of(WarpState& state, std::uint32_t lane, Actor actor) {
    GroupsOfLanes& all = state.asynchronous[place_of(actor)];
    if (all.empty()) all.resize(32);
    return all[lane];
  }
  std::uint32_t first_of_warpgroup(const Warp& warp) const;
  /// `to` learns what `from` has of tensor memory alone.
  void join_tensor(const VectorClock& from, VectorClock& to) const;
  bool has_waited(const WarpState& mine, std::uint32_t own, std::uint32_t lane,
                  const Epoch& epoch) const;
  /// Calls body(group) for the groups of exactly those lanes: cut where need be.
  template <typename Body>
  void each_group(WarpState& state, std::uint32_t lanes, Body&& body);
  std::uint32_t own(const WarpState& state) const {
    return first_ + static_cast<std::uint32_t>(&state - warps_.data());
  }
  void tell(const WarpState& state, const Warp& warp, const Group& group, std::uint32_t lanes,
            VectorClock& to) const;
  Fence fence_of(const WarpState& state, const Group& group) const;
  /// What was known in front of the fence by those lanes.
  Knowledge before(const WarpState& state, const Fence& fence, std::uint32_t lanes) const;
  /// The fences .sc that `lanes` of the group have passed, or know of.
  Scoped<SharedTimes> passed(const WarpState& state, const Warp& warp, const Group& group,
                             std::uint32_t lanes) const;

  Numbers numbers_;
  Program program_;
  std::uint32_t cluster_ = 0, first_ = 0;
  std::vector<WarpState> warps_;
};

template <typename Body>
void ThreadClocks::each_group(WarpState& state, std::uint32_t lanes, Body&& body) {
  for (std::size_t i = 0, count = state.groups.size(); i < count; ++i) {
    const std::uint32_t here = state.groups[i].lanes & lanes;
    if (!here) continue;
    if (here != state.groups[i].lanes) {
      Group rest = state.groups[i];
      rest.lanes &= ~lanes;
      state.groups.push_back(std::move(rest));
      state.groups[i].lanes = here;
    }
    body(state.groups[i]);
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
