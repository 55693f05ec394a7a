// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/detector.h - races between ordinary accesses to shared, distributed shared
// and global memory.
//
// A race is two accesses to the same byte by two threads, one of them a write, that no chain of
// happens-before orders and that are not both strong (volatile, relaxed, acquire, release, atomic)
// with scopes that reach each other. Each lane is a thread: that a warp moves as one orders
// nothing.
//
//   VectorClock   what a thread knows of all others: per warp a time, of single lanes where they
//                 went apart
//   ThreadClocks  the threads of a cluster; bar, barrier.cluster, bar.warp.sync, mbarriers, fences,
//                 release and acquire patterns at a location move knowledge between them
//   Shadow        per cell of 1 to 16 bytes the last write and the last reads since
//   RaceReports   the first race of each pair of instructions in full, the others counted
//
// cp.async writes as a thread of its own: its issuer knows that it is over after a wait for its
// group, and others after they have learnt that from the issuer, or from the mbarrier that it
// arrives at. What bulk copies, TMA and wgmma do is order.h's; a bulk copy that fills memory makes
// the detector forget what was there.
//
// Collectives (shfl.sync, mma.sync, ldmatrix) wait for each other but order no memory; the manual
// says that of bar.warp.sync alone. But a read of ldmatrix or wmma.load is in the program order of
// each lane, since each of them does it: who is ordered behind one of them is behind the read.
//
// Launches that are watched run on one host thread: global memory has one shadow, and the same
// launch gives the same findings each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/races/reports.h"
#include "runtime/emulator/races/shadow.h"
#include "runtime/emulator/races/thread_clocks.h"

namespace tartan::inline TARTAN_ABI::emulator {

class Cluster;

/// What a launch shares.
class LaunchRaces {
 public:
  explicit LaunchRaces(const LaunchContext& context);

  bool ordered = false;  // strong operations on global memory may order clusters
  Shadow global{16};
  Locations locations;
  Location sequential;
  RaceReports reports;
};

/// The registers that a store takes: op.count of them from op.list on.
struct StoredValue {
  const Op& op;
  std::uint32_t element_bytes = 4;
  bool wide = false;  // registers of 64 bits
};

/// An access of some lanes of a warp.
struct WatchedAccess {
  Window window = Window::generic;
  std::uint32_t lanes = 0;
  std::uint32_t bytes = 0;            // of each lane: a power of 2, at most 32
  const std::uint64_t* at = nullptr;  // addresses in the window, of 32 lanes
  bool writes = false, strong = false;
  bool copies = false;      // by cp.async
  bool collective = false;  // a read by all lanes together
  Scope scope = Scope::gpu;
  const StoredValue* value = nullptr;  // of a store, before it is done: for races without effect
};

/// The races of a cluster's threads.
class ClusterRaces {
 public:
  ClusterRaces(Cluster& cluster, LaunchRaces& launch);
  /// The cluster of that index begins.
  void start(std::uint32_t cluster);

  void access(Warp& warp, const WatchedAccess& access);
  /// An asynchronous copy or a reduction writes there, in host memory: order.h looks after it.
  void filled(const std::byte* at, std::uint64_t bytes);
  /// Strong accesses of warp.mask at those addresses order threads.
  void publish(Warp& warp, Window window, const std::uint64_t* at, Ordering ordering,
               bool replaces);
  void learn(Warp& warp, Window window, const std::uint64_t* at, Ordering ordering);

  // Barriers.
  void arrive(const Warp& warp, std::uint32_t barrier);
  /// The barrier of that block lets the lanes of the warp go; all_gone(): it has let all go.
  void leave(const Warp& warp, std::uint32_t lanes, std::uint32_t barrier);
  void all_gone(std::uint32_t rank, std::uint32_t barrier);
  void arrive_at_cluster(const Warp& warp, bool relaxed);
  void leave_cluster(const Warp& warp, std::uint32_t lanes);
  void cluster_phase_over();
  void arrive_at(const Warp& warp, std::uint32_t lanes, const std::byte* mbarrier, bool relaxed);
  void end_phase(const std::byte* mbarrier);
  void waited(const Warp& warp, std::uint32_t lanes, const std::byte* mbarrier, bool relaxed);
  void copies_arrive(const Warp& warp, std::uint32_t lane, const std::byte* mbarrier);

  ThreadClocks& clocks() { return clocks_; }

 private:
  struct Phases {
    VectorClock pending, known;
  };
  class Judge;

  Phases& phases(const std::byte* mbarrier);
  VectorClock& barrier(std::uint32_t rank, std::uint32_t id) { return barriers_[rank * 16 + id]; }
  /// Where an address leads: shared memory of the block of that rank, or global memory.
  struct Place {
    bool shared = false;
    std::uint32_t rank = 0;
    std::uint64_t address = 0;
  };
  std::optional<Place> place(const Warp& warp, Window window, std::uint64_t address) const;
  Location* location(const Place& place, bool make);
  void access_lane(Judge& judge, const WatchedAccess& access, std::uint32_t lane, Past now);

  Cluster& cluster_;
  LaunchRaces& launch_;
  ThreadClocks clocks_;
  std::vector<Shadow> shared_;  // of blocks
  std::vector<VectorClock> barriers_;
  VectorClock arriving_, arrived_;  // at the cluster's barrier: in this phase, in the last one
  std::unordered_map<const std::byte*, Phases> mbarriers_;
  Locations locations_;  // in shared memory: rank << 32 | offset
};

}  // namespace tartan::inline TARTAN_ABI::emulator
