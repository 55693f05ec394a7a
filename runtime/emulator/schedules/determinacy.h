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
#include "runtime/emulator/races/detector.h"
#include "runtime/emulator/schedules/exploration.h"

namespace tartan::TARTAN_ABI::emulator {

using detail::Obstacle;

class Determinacy final : public LaunchObserver, public Events {
 public:
  /// `races`: those of the launch.
  Determinacy(const LaunchContext& context, const LaunchRaces& races);

  void attach(Cluster& cluster) override { cluster.listen(*this); }
  void start(Cluster& cluster, std::uint32_t index) override;
  void met(Warp& warp) override;
  void communicate(Warp& warp, Window window, const std::uint64_t* at,
                   std::uint32_t bytes) override;
  void arrived(Warp& warp, std::uint32_t id, std::uint32_t expected, bool waits) override;
  void leave(Warp& warp, std::uint32_t lanes, std::uint32_t id) override;
  void released(Block& block, std::uint32_t id) override;
  void arrived_at_cluster(Warp& warp, bool relaxed) override;
  void leave_cluster(Warp& warp, std::uint32_t lanes) override;
  void released_cluster(Cluster& cluster) override;
  bool use_mbarrier(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
                    const MbarrierUse& use) override;
  void ended_phase(Cluster& cluster, std::byte* mbarrier) override;
  bool test_mbarrier(Warp& warp, int lane, std::byte* mbarrier, bool waits) override;
  void passed(Warp& warp, std::uint32_t lanes, std::byte* mbarrier,
              const MbarrierPass& pass) override;
  bool issue_copy(Warp& warp, int lane, const AsyncCopy& copy) override;
  void completed(Cluster& cluster, const Completion& completion) override;
  void takes_columns(Warp& warp, bool allocates) override;

  /// What stands in the way; empty: one run decides.
  std::vector<Obstacle> obstacles() const;

 private:
  /// What lanes do to an mbarrier.
  enum class Change : std::uint8_t {
    arrival,    // the phase is not over without it
    bytes,      // it expects them
    completes,  // of bytes that somebody expects, or nobody
    counts      // an arrival that raises the pending count by its own
  };
  /// What some lanes did, and when.
  struct Deed {
    std::uint32_t number = 0, lanes = 0, time = 0, pc = 0;
  };
  struct Phases {
    std::uint32_t number = 0, over = 0;          // as an actor; phases that have ended
    bool counted = false;                        // it has a number
    bool committed = false, due_commit = false;  // tcgen05.commit arrives; in this phase
    VectorClock arriving, arrived;     // what arrivals know: of this phase, of those before
    VectorClock due;                   // of this phase, those without which it is not over
    std::vector<Deed> waits, expects;  // that saw the last phase end; of this one
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
    std::set<const Warp*> uneven;                    // whose lanes know different things
    std::map<const Block*, const Warp*> allocating;  // the first warp of each
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
  /// `lanes` do that, or issue what does.
  void check_commits(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier);
  void changes(Warp& warp, std::uint32_t lanes, const std::byte* mbarrier, Change change);
  void initialised(Cluster& cluster, const std::byte* mbarrier);
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
