// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/detector.h - races between accesses to shared, distributed shared and
// global memory, those of asynchronous copies and of wgmma among them.
//
// A race is two accesses to the same byte by two threads, one of them a write, that no chain of
// happens-before orders and that are not both strong (volatile, relaxed, acquire, release, atomic)
// with scopes that reach each other. Each lane is a thread: that a warp moves as one orders
// nothing.
//
//   Numbers       who there is: lanes, what they do asynchronously, phases of mbarriers
//   VectorClock   what a thread knows of all others: per warp a time, of single lanes where they
//                 went apart
//   ThreadClocks  the threads of a cluster; bar, barrier.cluster, bar.warp.sync, mbarriers, fences,
//                 release and acquire patterns at a location move knowledge between them
//   Shadow        per unit of 1 to 16 bytes the last write and the last reads since
//   Boxes         how TMA laid out what it wrote to shared memory, for the descriptors of wgmma
//   RaceReports   the first race of each pair of instructions in full, the others counted
//
// The emulator does what is asynchronous when it is issued; a GPU does it some time later. So it is
// judged as the act of a thread of its own, which begins with what its issuer knows and ends
//
//   cp.async                         when the issuer has waited for its group, or at the mbarrier
//                                    that cp.async.mbarrier.arrive names
//   copies of a bulk group           when the issuer has waited for the group; what they read, at a
//                                    wait with .read
//   copies that complete_tx, st.async, red.async
//                                    with the phase of the mbarrier that they complete
//   wgmma, which reads its tiles     when one of the four warps has waited for its group, which is
//                                    a group of the warpgroup
//   tcgen05.ld and .st               when its warp has waited for it
//   tcgen05.mma                      with the phase of the mbarrier that a later tcgen05.commit of
//                                    its thread names
//   tcgen05.commit, which arrives    with the same phase
//
// and others know of it after they have learnt that from the issuer or the mbarrier.
//
// Proxies: the async proxy sees ordinary stores only after a fence.proxy.async between the store
// and the copy; one between an ordinary load and an asynchronous write is asked for by a warning,
// and so is a fence between mbarrier.init and a copy that completes there. A CTA sees a
// tensor map that the grid has written after one of its threads executes fence.proxy.tensormap with
// .acquire of the map's 128 bytes.
//
// mbarriers are memory: mbarrier.init and mbarrier.inval write them, what uses them reads.
//
// Collectives (shfl.sync, mma.sync, ldmatrix) wait for each other but order no memory; the manual
// says that of bar.warp.sync alone. But a read of ldmatrix or wmma.load is in the program order of
// each lane, since each of them does it: who is ordered behind one of them is behind the read.
//
// What lanes of a warp exchange through shared memory while they move together is a finding of its
// own, as is what they exchange by volatile accesses (converged.h). Loads that race are taken down
// for a second run, which finds whether anybody uses what they bring (runtime/emulator/trial.h).
//
// Launches with DeviceOptions::checks look at all memory and run on one host thread: global memory
// has one shadow, and the same launch gives the same findings each time. Without, kernels that have
// bulk copies, wgmma or mbarriers are looked at in shared memory alone, cluster by cluster, and the
// first race in which one of these or cp.async takes part stops the launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/races/boxes.h"
#include "runtime/emulator/races/converged.h"
#include "runtime/emulator/races/predecessor.h"
#include "runtime/emulator/races/reports.h"
#include "runtime/emulator/races/shadow.h"
#include "runtime/emulator/races/tensor_issues.h"
#include "runtime/emulator/races/thread_clocks.h"
#include "runtime/emulator/races/watches.h"

namespace tartan::TARTAN_ABI::emulator {

class EqualStores;

/// What a launch shares, or a cluster has for itself.
class LaunchRaces final : public LaunchObserver {
 public:
  /// `whole`: all memory and all races. Of the others null: nothing of before can still run, and
  /// stores of equal values are not compared.
  LaunchRaces(const LaunchContext& context, bool whole, Predecessor* predecessor = nullptr,
              EqualStores* equal_stores = nullptr);
  void attach(Cluster& cluster) override;

  const bool whole;
  bool ordered = false;  // strong operations on global memory may order clusters
  ThreadClocks::Program program;
  Numbers numbers;
  Shadow global{16};
  Locations locations;
  RaceReports reports;
  Predecessor* const predecessor;
  EqualStores* const equal_stores;
};

/// Of a launch that nobody checks: each cluster has its own.
class UncheckedRaces final : public LaunchObserver {
 public:
  explicit UncheckedRaces(const LaunchContext& context) : context_(context) {}
  bool concurrent() const override { return true; }
  void attach(Cluster& cluster) override;

 private:
  const LaunchContext& context_;
};

/// The registers that a store takes: op.count of them from op.list on.
struct StoredValue {
  const Op& op;
  std::uint32_t element_bytes = 4;
  bool wide = false;  // registers of 64 bits
};

/// The rows that stmatrix has stored, by lane, and what was there before.
struct StoredRows {
  static constexpr std::size_t bytes = 16;
  std::byte now[32][bytes], before[32][bytes];
};

/// An access of some lanes of a warp.
struct WatchedAccess {
  Window window = Window::generic;
  std::uint32_t lanes = 0;
  std::uint64_t bytes = 0;            // of each lane, at a multiple of `alignment` of them
  const std::uint64_t* at = nullptr;  // addresses in the window, of 32 lanes
  bool writes = false, strong = false;
  Actor actor = Actor::thread;  // or cp_async, init
  bool collective = false;      // a read by all lanes together
  bool mbarrier = false;        // a use of an mbarrier
  bool invalidates = false;     // mbarrier.inval
  bool noncoherent = false;     // a read that requires that nobody writes during the kernel
  bool is_volatile = false;
  Scope scope = Scope::gpu;
  const StoredValue* value = nullptr;  // of a store, before it is done: for races without effect
  const StoredRows* rows = nullptr;    // the same of stmatrix, done
  std::uint32_t alike = 0;  // of mbarrier.init: lanes for which this op has done the same before
  std::uint32_t time = 0;   // when it is done; 0: now
  std::uint64_t alignment = 0;      // 0: as many as bytes
  std::uint32_t element_bytes = 0;  // of a strong one; 0: elements of several sizes
  bool continues = false;           // a strong write that goes on from what is there
  bool observes = false;            // and gives that
  // Of an mbarrier: it is over for those who know of one of these; none: of the access.
  std::optional<Epoch> over = {}, or_over = {};
};

/// A strong access of some lanes, as it orders threads.
struct StrongAccess {
  Window window = Window::generic;
  std::uint32_t lanes = 0;
  const std::uint64_t* at = nullptr;  // addresses in the window, of 32 lanes
  Ordering ordering;
  StrongUse use;
  bool reads = false;     // in the sense of an acquire pattern: not red
  bool replaces = false;  // it writes, and does not read what was there
};

/// An access of a lane's asynchronous operation, or of a warpgroup's product.
struct AsyncAccess {
  Epoch who;
  Window window = Window::generic;
  std::uint64_t address = 0, bytes = 0;
  bool writes = false;
  std::optional<Scope> strong;  // reductions
  char operand = 0;             // of a product: A or B
  std::uint32_t warps = 0;      // of a product: those of the warpgroup that read there
  bool map = false;             // it is a tensor map
  bool generic = false;         // not of the async proxy: st.async, red.async
  std::uint32_t alike = 0;      // lanes that store the same bytes to the same place
};

/// A tile of wgmma in shared memory.
struct TileOperand {
  char name = 'A';
  const MatrixDescriptor* descriptor = nullptr;
  bool mn_major = false;
  bool long_rows = false;  // 64 bytes, as B of a sparse product has them
  int element_bits = 16, outer = 0, k = 0;

  /// Of the row or column `x` of the outer dimension.
  std::uint64_t address(int x, int index) const;
};

/// The races of a cluster's threads.
class ClusterRaces final : public Events {
 public:
  static constexpr Seat seat = RaceWatches::seat;

  /// `own`: `launch`, if it is the cluster's alone.
  ClusterRaces(Cluster& cluster, LaunchRaces& launch, std::unique_ptr<LaunchRaces> own = nullptr);
  void start(Cluster& cluster, std::uint32_t index) override;
  void finish(Cluster& cluster) override;

  /// Whether global memory is looked at.
  bool whole() const { return launch_.whole; }
  void access(Warp& warp, const WatchedAccess& access);
  /// It orders threads: before it is done, if it writes, and behind it, if it reads.
  void order(const Warp& warp, const StrongAccess& access);

  // The executing lanes.
  void met(Warp& warp) override;
  void sync_warp(Warp& warp) override { clocks_.sync_warp(warp, warp.mask); }
  void access(Warp& warp, const LaneAccess& access) override;
  void fence_proxy(Warp& warp, bool shared, bool global) override {
    clocks_.fence_proxy(warp, warp.mask, shared, global);
  }
  void fence_inits(Warp& warp) override;
  void acquire_map(Warp& warp, const std::uint64_t* at, Window window) override;
  void released_map(Warp& warp) override { clocks_.fence(warp, warp.mask, {.releases = true}); }
  void allocated(Warp& warp, std::uint64_t address, std::uint64_t bytes) override;
  void wait_for_predecessor(Warp& warp) override;

  // Barriers.
  void arrived(Warp& warp, std::uint32_t id, std::uint32_t expected, bool waits) override;
  void leave(Warp& warp, std::uint32_t lanes, std::uint32_t id) override;
  void released(Block& block, std::uint32_t id) override;
  void arrived_at_cluster(Warp& warp, bool relaxed) override;
  void leave_cluster(Warp& warp, std::uint32_t lanes) override;
  void released_cluster(Cluster& cluster) override;

  // mbarriers.
  bool use_mbarrier(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
                    const MbarrierUse& use) override;
  void count_mbarrier(Warp& warp, int lane, std::byte* mbarrier, MbarrierAction action,
                      std::uint32_t count) override;
  void arrived_at_mbarrier(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
                           MbarrierArrival arrival) override;
  void ended_phase(Cluster& cluster, std::byte* mbarrier) override;
  bool test_mbarrier(Warp& warp, int lane, std::byte* mbarrier, bool waits) override;
  void passed(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
              const MbarrierPass& pass) override;

  // What is asynchronous.
  bool issue_copy(Warp& warp, int lane, const AsyncCopy& copy) override;
  void completed(Cluster& cluster, const Completion& completion) override;
  bool access_by_group(Warp& warp, int lane, const GroupAccess& access) override;
  bool issue_product(Warp& warp, std::span<Warp> warps, const WarpgroupOperation& operation,
                     const WgmmaOperands& operands) override;
  bool access_tensor(Warp& warp, int lane, const TensorTouch& touch) override;
  bool read_tile(Warp& warp, int lane, const TensorTile& tile) override;
  bool issue_tensor(Warp& warp, int lane, const TensorIssue& issue) override;
  void fence_tensor(Warp& warp, bool before) override {
    if (before) clocks_.fence_tensor_before(warp, warp.mask);
    else clocks_.fence_tensor_after(warp, warp.mask);
  }
  void wait_for_tensor(Warp& warp, TensorAgent agent) override;
  void takes_columns(Warp& warp, bool allocates) override;
  void gives_columns(Warp& warp) override;
  bool allocates_for_pair(Warp& warp, Block& peer) override;
  void joined(Warp& warp, Warp& peer) override;
  void commit_tensor(Warp& warp, int lane, std::byte* mbarrier) override;
  void commit(Warp& warp, AsyncKind kind) override;
  void wait(Warp& warp, AsyncKind kind, std::optional<std::uint32_t> pending, bool reads) override;

  // For other observers.
  /// Where an address leads: a number for the block that has that shared memory, or 0 for global
  /// memory, and the address there.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> place_of(const Warp& warp, Window window,
                                                                  std::uint64_t address) const;
  ThreadClocks& clocks() { return clocks_; }

 private:
  void initialise(Warp& warp, int lane, const std::byte* mbarrier, std::uint32_t alike);
  void invalidate(Warp& warp, int lane, const std::byte* mbarrier);
  /// Before `lanes` arrive there, or their copies of cp.async do, expect bytes or complete some;
  /// exists(): before they wait. False: after a finding that stops them.
  bool use(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier, Actor actor = Actor::thread,
           std::optional<Epoch> over = {});
  bool exists(Warp& warp, int lane, const std::byte* mbarrier);
  /// A copy, of the async proxy, will complete there.
  void completes_at(const Warp& warp, int lane, const std::byte* mbarrier);
  /// Who does what completes in the current phase of an mbarrier; none: it is not looked at.
  std::optional<Epoch> completing_on(const std::byte* mbarrier) const;
  void asynchronous(Warp& warp, int lane, const AsyncAccess& access);
  /// A copy through a tensor map has filled a box at that place in the host's memory.
  void filled(const Warp& warp, const std::byte* at, std::uint64_t bytes, const BoxShape& shape,
              const Epoch& who);
  /// A product of `warp`'s warpgroup reads a tile. False: after a finding that stops it.
  bool read_tile(Warp& warp, const TileOperand& operand);
  /// An address of the cluster's shared memory; nothing for other memory of the host.
  std::optional<std::uint64_t> address_of(const std::byte* at) const;
  /// Who arrives at an mbarrier: threads, threads that say to do so for their block alone, or the
  /// tensor core.
  enum class Arriver : std::uint8_t { thread, thread_of_cta, tensor_core };
  /// What arrivals of a block brought.
  struct Arrivals {
    std::uint32_t rank = 0;
    Arriver by = Arriver::thread;
    VectorClock pending, known;
  };
  struct Phases {
    std::optional<std::uint32_t> number;  // as an actor
    std::uint32_t phases = 0;             // that have ended
    bool valid = true;
    Epoch made, fenced;         // mbarrier.init, and the last fence.mbarrier_init behind it
    std::uint32_t made_at = 0;  // the instruction
    std::vector<Arrivals> arrivals;
  };
  /// The last access of a lane to another block's shared memory, or of its copies to its own.
  struct Outliving {
    Epoch who;
    std::uint32_t thread = 0, pc = 0;  // who issued it
    std::uint64_t address = 0;
    bool writes = false, own = false;
    std::optional<Epoch> or_who = {};  // who knows of that knows of it, too
  };
  /// Lanes of a warp at a collective, and the warp's time before it.
  struct Meeting {
    std::uint32_t time = 0, lanes = 0;
  };
  /// What a block knows of another one's warp by a wait of scope .cta alone: what that did after
  /// one time and up to another.
  struct Narrow {
    std::uint32_t after = 0, up_to = 0;
    RaceSide wait;
  };
  /// What two warps of a pair of CTAs did as one: who knows of one of them knows of both.
  using Joined = std::array<Epoch, 2>;
  class Judge;
  class AsyncJudge;
  class TensorJudge;

  Phases& phases(const std::byte* mbarrier);
  VectorClock& pending(const Warp& warp, const std::byte* mbarrier, Arriver by);
  VectorClock& barrier(std::uint32_t rank, std::uint32_t id) { return barriers_[rank * 16 + id]; }
  /// Where an address leads: shared memory of the block of that rank, or global memory.
  struct Place {
    bool shared = false;
    std::uint32_t rank = 0;
    std::uint64_t address = 0;
  };
  bool find_place(const Warp& warp, Window window, std::uint64_t address, Place& to) const;
  /// The same, if `bytes` bytes there are looked at.
  bool find_place(const Warp& warp, Window window, std::uint64_t address, std::uint64_t bytes,
                  Place& to) const;
  Shadow& shadow(const Place& place) { return place.shared ? shared_[place.rank] : launch_.global; }
  Location* location(const Place& place, bool make);
  /// Nobody has published anything.
  bool no_locations() const { return locations_.empty() && launch_.locations.empty(); }
  /// Those that access the same memory.
  void access_lanes(Judge& judge, Warp& warp, const WatchedAccess& access, const Place& memory,
                    std::span<const LaneGroup> groups);
  void note_groups(const Warp& warp, const WatchedAccess& access, const Place& memory,
                   const Past& now, std::span<const LaneGroup> groups);
  void watch_equal_stores(const Warp& warp, const WatchedAccess& access, std::uint32_t lane,
                          const Place& place);
  void compare_equal_stores(Judge& judge, Warp& warp, const WatchedAccess& access,
                            const Place& memory, const LaneGroup& group, const Past& now);
  /// Of mbarrier.init and mbarrier.inval: `alike`, `invalidates` as in WatchedAccess.
  void access_mbarrier(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier, Actor actor,
                       std::uint32_t alike = 0, bool invalidates = false,
                       std::optional<Epoch> over = {}, std::optional<Epoch> or_over = {});
  // Of converged.cc.
  std::size_t index(const Warp& warp) const;
  bool together(const Warp& warp, const Past& past) const;
  void judge_volatile(Warp& warp, const WatchedAccess& access, const Place& memory,
                      std::span<const LaneGroup> groups);
  /// A read of the cell races, as do those by the same warp there from that time on.
  void note_read(const Warp& warp, const Place& place, std::uint64_t cell, const Past& read,
                 std::uint32_t from);
  /// What racing ones of these loads bring is undefined.
  void poison(Warp& warp, const WatchedAccess& access, const Place& memory,
              std::span<const LaneGroup> groups);
  /// Whether a lane knows of another one that executed a collective with the thread of the access
  /// after it.
  bool knows_by_meeting(const Warp& warp, std::uint32_t lane, const Epoch& epoch) const;
  /// A wait of scope .cta brings `known`; what is known otherwise.
  void note_narrow(const Warp& warp, std::uint32_t lanes, const VectorClock& known);
  void forget_narrow(std::uint32_t rank, const VectorClock& known);
  const Narrow* narrow(const Warp& warp, const Past& past) const;
  /// The warp uses what `past`, which is ordered before it, wrote.
  void note_use(const Warp& warp, const Past& past, const Place& place);
  /// An access to global memory of one of `lanes`, which may have come before the predecessor's.
  void judge_predecessor(const Warp& warp, std::uint32_t lanes, const Place& place,
                         std::uint64_t bytes, const RaceSide& side, bool wide);
  /// An access that may come when the block whose shared memory it is has exited.
  void note_outliving(const Warp& warp, const Place& place, const Epoch& who, bool writes,
                      std::optional<Epoch> or_who = {});
  void report_exit(std::uint32_t rank, const Outliving& access);
  /// Products that a block's threads have not waited for.
  void report_unwaited(std::uint32_t rank);

  /// What the other warp did as one with what that one did; null if there is nothing.
  const Epoch* joined_with(const Past& past) const;
  /// Behind a barrier of the cluster all of it has begun, whatever memory the barrier orders.
  void note_begun(const Warp& warp, std::uint32_t lanes);
  /// Whether nothing orders what the two do.
  bool strangers(std::uint32_t one, std::uint32_t other) const;
  bool both_strong(const Past& past, const Warp& warp, Scope scope) const;
  /// Whether two past strong accesses are within each other's scope.
  bool reach(const Past& one, const Past& other) const;
  RaceSide side(std::uint32_t number, const Warp& warp, std::uint32_t lane) const;
  Race race_with(const Past& past, bool wrote, const Place& place, std::uint64_t cell) const;
  void report(Warp& warp, const Race& race);

  // Of the tensor core (tensor_issues.cc).
  /// When what a lane has issued to it last was issued; its time now, if nothing was.
  std::uint32_t last_issue(const Warp& warp, std::uint32_t lane) const;
  void note_issue(const Warp& warp, std::uint32_t lane);
  void judge_accumulator(Warp& warp, std::uint32_t lane, const TensorIssue& issue);
  void judge_collector(Warp& warp, std::uint32_t lane, const TensorIssue& issue);

  // Of products.
  bool check_start(Warp& warp, const TileOperand& operand);
  bool check_box(Warp& warp, const TileOperand& operand, std::uint64_t first, std::uint64_t last);
  /// Whether copies wrote the chunks of a CTA's tile with its descriptor's swizzle.
  bool has_swizzle_of_boxes(Warp& warp, int lane, const TensorTile& tile, std::uint32_t rank);
  const Box* box_at(std::uint32_t rank, std::uint64_t address);
  enum class TileRead : std::uint8_t { whole, outside, stopped };
  TileRead gather_chunks(Warp& warp, const TileOperand& operand, int first, int last);
  bool read_chunks(Warp& warp, const AsyncAccess& access);

  Cluster& cluster_;
  const std::unique_ptr<LaunchRaces> own_;
  LaunchRaces& launch_;
  ThreadClocks clocks_;
  std::vector<Shadow> shared_, tensor_;     // of blocks
  std::vector<VectorClock> freed_columns_;  // what they know who have given columns back
  std::vector<Joined> joined_;
  std::vector<std::vector<Epoch>> begun_;  // of blocks: who knows that the whole cluster has begun
  std::vector<TensorIssues> issues_;       // of blocks
  std::vector<Boxes> boxes_;
  std::vector<VectorClock> barriers_;
  VectorClock arriving_, arrived_;  // at the cluster's barrier: in this phase, in the last one
  std::unordered_map<const std::byte*, Phases> mbarriers_;
  std::vector<std::uint64_t> mbarrier_places_;  // by index of their numbers
  Locations locations_;                         // in shared memory: rank << 32 | offset
  // By block and address: what was known when its threads acquired the tensor map.
  std::map<std::pair<std::uint32_t, std::uint64_t>, VectorClock> maps_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Narrow> narrow_;  // by rank, other's number
  std::vector<std::map<std::uint64_t, Outliving>> outliving_;         // of blocks: by who and lane
  std::unordered_map<std::uint32_t, std::vector<Meeting>> meetings_;  // by the number of the warp
  std::vector<std::uint64_t> chunks_;       // of a tile, by page: while it is read
  std::optional<Convergence> convergence_;  // where all races are looked at
  VolatileWords volatiles_;
};

/// Those of the cluster that the warp is of; they must be looked at.
inline ClusterRaces& races_of(const Warp& warp) {
  return *warp.block->cluster().find<ClusterRaces>();
}

}  // namespace tartan::TARTAN_ABI::emulator
