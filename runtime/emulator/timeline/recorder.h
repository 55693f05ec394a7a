// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/timeline/recorder.h - takes down the events of a launch for a Timeline.
//
// The instructions that a timeline shows tell the cluster's
// recorder when they begin and end (TimedOps); what happens in between tells it more:
// barriers when they are complete, mbarriers when their phase ends, copies when they are done.
// Clusters beyond those that are kept have no recorder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/isa/timed.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/machine/program.h"
#include "runtime/timeline_roles.h"
#include "tartan/runtime/timeline.h"

namespace tartan::TARTAN_ABI::emulator {

class ClusterTimeline;

/// How a timeline shows an op.
struct TimedOp {
  using Kind = isa::Timed;
  Handler inner = nullptr;
  Kind kind = Kind::No;
  std::uint8_t group = 0;                // 0: cp.async, 1: bulk, 2: wgmma
  std::optional<std::uint32_t> pending;  // Waits: groups that may be; none: all are waited for
  isa::Opcode opcode = {};
};

class TimedOps final : public Observation {
 public:
  static constexpr Seat seat = 2;

  void decoded(Decoder& decoder, std::size_t first) override;
  void finish(Program& program, const ptx::Module&) override { ops_.resize(program.ops.size()); }
  const TimedOp& operator[](std::size_t op) const { return ops_[op]; }

 private:
  std::vector<TimedOp> ops_;
};

/// The events of one launch.
class LaunchTimeline final : public LaunchObserver {
 public:
  LaunchTimeline(const LaunchContext& context, Timeline& to) : context_(context), to_(to) {}

  void begin(Cluster& cluster, std::uint64_t index) override;
  /// Whether there is room for another event, for which it then makes room; else it is left out.
  bool admit();
  void withdraw() { --events_; }
  /// Gives the timeline what there is.
  void finish();
  void stop(const Finding& finding) { stopped_ = finding.message; }
  const LaunchContext& context() const { return context_; }

 private:
  const LaunchContext& context_;
  Timeline& to_;
  std::map<std::uint64_t, std::unique_ptr<ClusterTimeline>> clusters_;  // by index
  std::size_t events_ = 0;
  std::uint64_t left_out_ = 0;
  std::string stopped_;
};

/// Those of one cluster. It hears what an instruction does while that runs.
class ClusterTimeline final : public Events {
 public:
  static constexpr Seat seat = TimedOps::seat;

  ClusterTimeline(LaunchTimeline& launch, Cluster& cluster);

  // Of any instruction that is recorded.
  void begin(Warp& warp, const TimedOp& what);
  void end(Warp& warp, const Op& op, const TimedOp& what);
  void exited(const Warp& warp) override;
  void stopped(const Finding& finding) override;

  // Barriers of a block, and of the cluster; warpgroups; registers.
  void arrived(Warp& warp, std::uint32_t id, std::uint32_t expected, bool waits) override;
  void released(Block& block, std::uint32_t id) override;
  void arrived_at_cluster(Warp& warp, bool relaxed) override;
  void waits_for_cluster(Warp& warp) override;
  void released_cluster(Cluster& cluster) override;
  void waits_for_warpgroup(Warp& warp) override;
  void gathered_warpgroup(Warp& warp) override;
  void waits_for_registers(Warp& warp, std::uint32_t wanted) override;
  void has_registers(const Warp& warp) override;

  // mbarriers.
  void count_mbarrier(Warp& warp, int lane, std::byte* at, MbarrierAction action,
                      std::uint32_t count) override;
  void ended_phase(Cluster& cluster, std::byte* at) override;
  void found_pending(Warp& warp, std::byte* at, bool parity) override;
  void passed(Warp& warp, std::uint32_t lanes, std::byte* at, const MbarrierPass& pass) override;

  bool issue_copy(Warp& warp, int lane, const AsyncCopy& copy) override;
  void completed(Cluster& cluster, const Completion& completion) override;

  /// Ends what has not ended, and moves everything to the end of the three.
  void move_to(std::vector<TimelineCta>& ctas, std::vector<TimelineBarrier>& barriers,
               std::vector<TimelineEvent>& events);

 private:
  using Kind = TimelineEvent::Kind;
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // rank of the block; which barrier there
  struct Barrier {
    std::int32_t index = 0;
    std::uint64_t began = 0, phases = 0, arrivals = 0, bytes = 0;
    std::array<std::int64_t, 2> flips = {TimelineEvent::none, TimelineEvent::none};  // by parity
  };
  struct Wait {
    std::size_t event;
    const Warp* warp;
    Place place;
    bool parity;
  };
  enum class Group : std::uint8_t { copy, bulk, product };
  struct Flight {
    std::size_t event;
    const Warp* warp;
    Group kind;
    std::uint32_t lanes, number;
    std::int64_t commit = TimelineEvent::none;
  };
  struct Arriving {  // copies on their way to one phase of an mbarrier
    std::size_t event;
    Place place;
    std::uint64_t phase, pending;
    bool parity;
  };
  // Of an AsyncCopy: the event that issued it, and its flight.
  struct Copy {
    std::int64_t issued = TimelineEvent::none, flight = TimelineEvent::none;
  };
  struct Amount {  // of what an instruction does
    std::uint32_t lanes = 0;
    std::uint64_t bytes = 0, multiply_adds = 0;
  };
  // How a warp stood when its last event was recorded.
  struct Last {
    std::int64_t event = TimelineEvent::none;
    std::uint64_t clock = 0, steps = 0;
    isa::Opcode opcode = {};
  };
  using Work = detail::WarpWork;

  std::uint64_t clock();
  std::int64_t push(TimelineEvent event);
  void pop();
  TimelineEvent& at(std::int64_t event) { return events_[static_cast<std::size_t>(event)]; }
  TimelineEvent made(const Warp& warp, Kind kind, std::uint32_t pc);
  Place place_of(const std::byte* at) const;
  Barrier& barrier(Place place);
  std::string text(Place place) const;
  void arrive(Place place, std::uint64_t arrivals, std::uint64_t bytes);
  void initialised(const std::byte* at);
  void arrived_at(const std::byte* at, std::uint64_t arrivals, std::uint64_t bytes);
  /// `cause`: the event that ended it.
  void phase_ended(const std::byte* at, std::int64_t cause);
  Copy issued(Warp& warp, const std::byte* at, std::uint64_t bytes);
  /// The event of it.
  std::int64_t completes(const std::byte* at, const Copy& copy, std::uint64_t bytes,
                         std::uint64_t arrivals);
  std::int64_t end_phase(Place place, Barrier& barrier, std::int64_t cause);
  void open_wait(const Warp& warp, Place place, bool parity, std::string name, bool own);
  template <typename Which>
  void close_waits(std::int64_t cause, Which&& which);
  bool joins_run(const Warp& warp, const TimedOp& what);
  void take_down(Warp& warp, const TimedOp& what, const Amount& amount);
  void in_flight(const Warp& warp, Group kind, const Amount& amount);
  void close_group(const Warp& warp, Group kind, std::uint32_t lanes);
  void end_flights(const Warp& warp, Group kind, std::uint32_t lanes,
                   std::optional<std::uint32_t> pending);
  void land(Place place, bool parity);

  LaunchTimeline& launch_;
  Cluster* cluster_;
  std::uint64_t last_clock_ = 0;
  std::vector<TimelineCta> ctas_;  // by rank
  std::vector<TimelineBarrier> barrier_names_;
  std::vector<TimelineEvent> events_;
  std::map<Place, Barrier> barriers_;
  std::vector<Wait> waits_;      // that have not ended
  std::vector<Flight> flights_;  // likewise
  std::vector<Arriving> arriving_;
  std::map<std::uint64_t, Copy> copies_;  // that have not completed, by number
  std::map<std::pair<const Warp*, Group>, std::array<std::uint32_t, 32>> closed_;  // by lane
  std::map<const Warp*, Last> last_;
  std::map<const Warp*, std::size_t> lives_;  // of those that live
  std::vector<std::vector<Work>> work_;       // by rank and warp

  // Of the instruction that runs.
  std::int64_t current_ = TimelineEvent::none;
  std::uint64_t copied_ = 0;
  std::uint32_t lanes_ = 0;
  bool to_mbarrier_ = false;  // it copies to one
  bool parked_ = false;       // it waits for the rest of the warpgroup
  bool drop_ = false;         // it polls again: another event has it
};

}  // namespace tartan::TARTAN_ABI::emulator
