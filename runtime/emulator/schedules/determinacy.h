// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/schedules/determinacy.h - whether one run of a launch decides all its schedules.
//
// It does, for these inputs and this grid, where no order of events that are not ordered by
// happens-before makes a difference to what comes after. One run without a race then shows that
// every schedule is race-free and comes to its end: all of them are that run, with steps exchanged
// that do not see each other. What is asked for:
//
//   waits block          a test of an mbarrier that fails leads to nothing but the next test
//   phases are fixed     arrivals, expect_tx and copies that complete at an mbarrier know that the
//                        phase before theirs is over; waits know that too, and the phase behind
//                        theirs cannot end before they have seen the end of theirs (else the
//                        parity comes round). Arrivals at bar know of the barrier's last use
//   arrivals commute     within a phase, they do
//   memory is quiet      atomic, volatile, relaxed and acquiring accesses by which threads could
//                        communicate are reductions without a result, or by one thread alone
//   nothing else speaks  no clock, no %smid, no activemask, no malloc, no query of launch control,
//                        no pending count of an mbarrier
//
// Happens-before is here the order of steps, not of memory: an asynchronous copy is behind what its
// issuer did, and who waits for it knows that. Lanes of a warp are threads; that they move together
// orders nothing. A collective does: who is behind it knows that the others have come to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/schedules/exploration.h"

namespace tartan::TARTAN_ABI::emulator {

using detail::Obstacle;

class Determinacy {
 public:
  explicit Determinacy(const LaunchContext& context);

  /// The cluster of that index begins.
  void starts(Cluster& cluster, std::uint32_t index);

  // What the launch does; of an mbarrier by its place in the host's memory.
  enum class Change : std::uint8_t {
    arrival,    // the phase is not over without it
    bytes,      // it expects them
    completes,  // of bytes that somebody expects, or nobody
    counts      // an arrival that raises the pending count by its own
  };
  /// Before `lanes` do that, or issue what does.
  void changes(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier, Change change);
  /// Before its phase ends.
  void phase_ends(Cluster& cluster, const std::byte* mbarrier);
  /// The executing lanes test it.
  void tests(const Warp& warp);
  /// `lanes` find the phase over.
  void passes(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier);
  /// It is made anew.
  void initialised(Cluster& cluster, const std::byte* mbarrier);
  /// The executing lanes are in one collective.
  void meets(Warp& warp);
  /// They arrive at a barrier of their block. It lets lanes of each warp go, then it has let all
  /// go.
  void arrives(Warp& warp, std::uint32_t barrier, std::uint32_t expected);
  void leaves(Warp& warp, std::uint32_t lanes, std::uint32_t barrier);
  void all_gone(Block& block, std::uint32_t barrier);
  /// The same at the barrier of the cluster.
  void arrives_at_cluster(Warp& warp);
  void cluster_phase_over(Cluster& cluster);
  void leaves_cluster(Warp& warp, std::uint32_t lanes);
  /// Before a strong access of theirs.
  void communicates(Warp& warp, Window window, const std::uint64_t* at, std::uint32_t bytes);

  /// What stands in the way; empty: one run decides.
  std::vector<Obstacle> obstacles() const;

 private:
  /// What some lanes did, and when.
  struct Deed {
    std::uint32_t number = 0, lanes = 0, time = 0, pc = 0;
  };
  struct Phases {
    std::uint32_t number = 0, over = 0;  // as an actor; phases that have ended
    bool counted = false;                // it has a number
    VectorClock arriving, arrived;       // what arrivals know: of this phase, of those before
    VectorClock due;                     // of this phase, those without which it is not over
    std::vector<Deed> waits, expects;    // that saw the last phase end; of this one
  };
  struct Barrier {
    std::vector<Deed> last, now;
    VectorClock arriving;
    std::uint32_t expected = 0;
  };
  /// Who has come where, of a cluster: order of steps, not of memory.
  struct Control {
    explicit Control(Numbers numbers) : clocks(numbers, {.sequential = false, .narrow = false}) {}
    ThreadClocks clocks;
    std::uint32_t mbarriers_made = 0;
    std::unordered_map<const std::byte*, Phases> mbarriers;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Barrier> barriers;  // by rank and number
    VectorClock arriving, arrived;                                        // at the cluster's
    std::set<const Warp*> uneven;  // whose lanes know different things
  };
  /// What happened at four bytes of memory.
  struct Word {
    std::uint64_t thread = 0;
    bool shared = false, written = false;  // by several threads; at all
    std::uint64_t reduction = 0;           // all of it: Watch::operation
  };
  /// Of an op: whether it changes memory, and with which reduction without a result.
  struct Strong {
    bool writes = false;
    std::uint64_t reduction = 0;
  };

  using Uses = std::unordered_map<std::string_view, int>;
  void read_program();
  Uses count_uses() const;
  void note(std::uint32_t pc, std::string why, bool explorable = false);
  Control& control(const Warp& warp) { return *controls_.at(&warp.block->cluster()); }
  Deed deed(Control& control, const Warp& warp, std::uint32_t lanes) const;

  const LaunchContext& context_;
  Numbers numbers_;
  std::map<std::uint32_t, Obstacle> obstacles_;  // by op
  std::set<std::uint32_t> tests_;                // ops that were looked at
  std::unordered_map<std::uint32_t, Strong> strong_;
  std::unordered_map<const Cluster*, std::unique_ptr<Control>> controls_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Word> words_;  // by block or global, address
};

}  // namespace tartan::TARTAN_ABI::emulator
