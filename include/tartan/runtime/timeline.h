// SPDX-License-Identifier: Apache-2.0
// tartan/runtime/timeline.h - the order in which the emulator did what a kernel asked for: copies,
// products, barriers, waits, and what ended each wait. `tartan run --timeline` writes it.
//
//   const auto timeline = std::make_shared<Timeline>();
//   auto device = Device::open("emulator", {.timeline = timeline});
//   ...                                                  // load, launch
//   write_file("timeline.json", timeline->json());       // for ui.perfetto.dev, chrome://tracing
//
// Time is counted in steps: instructions that the warps of the CTA's cluster had issued until then.
// The emulator runs warps in turn, so this is an order of events, and no measure of cycles. Each
// cluster counts from 0. Of a launch on a GPU (tartan/runtime/trace.h) it is in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI {

/// How much a Timeline keeps of a launch: what exceeds it is counted (TimelineLaunch).
struct TimelineLimits {
  /// Of the first clusters of the grid, as many as have so many CTAs; the first cluster is always
  /// kept.
  std::uint64_t ctas = 4;
  std::size_t events = 50'000;  ///< of all kept CTAs of a launch together
};

/// Something that happened, or lasted, in one CTA.
struct TimelineEvent {
  /// What it is; rows of a viewer are warps and barriers.
  enum class Kind : std::uint8_t {
    warp,        ///< a warp's life
    copy,        ///< an instruction that starts asynchronous copies
    product,     ///< one that multiplies matrices: mma, wmma, wgmma
    commit,      ///< one that closes a group of copies or products
    arrive,      ///< one that arrives at a barrier, initializes it, or gives registers back
    wait,        ///< from the instruction that waits until what it waits for has happened
    phase,       ///< of a barrier: from the end of the phase before until its own
    completion,  ///< at an mbarrier: a copy is complete
    flight,      ///< from the first copy or product of a group until the program has waited for it
  };
  static constexpr std::int64_t none = -1;

  Kind kind = Kind::warp;
  std::uint32_t cta = 0;      // index into Timeline::ctas()
  std::int32_t warp = -1;     // of the CTA; -1 for phases and completions
  std::int32_t barrier = -1;  // index into Timeline::barriers(); -1: no barrier
  std::uint64_t begin = 0;    // in steps, of which an instruction takes one; GPU: nanoseconds
  std::uint64_t end = 0;      // where it has not ended: the launch's
  bool ended = true;          // waits, phases, flights, lives
  std::uint32_t lanes = 0;    // a bit for each that took part; an arrival of copies: 0
  std::uint64_t count = 0;    // executions by warps: of a run of products or copies; of a poll
  std::uint64_t bytes = 0;    // copied, or expected by an mbarrier
  std::uint64_t multiply_adds = 0;
  std::uint64_t arrivals = 0;  // at an mbarrier, or threads at a barrier
  std::uint64_t done = 0;      // flight: the step in which the emulator had done it
  std::int64_t cause = none;   // wait: the event that ended it; completion: the copy. An index
  std::string name;            // "wgmma x4", "wait for full+8"
  std::string opcode;          // as written: "cp.async.cg.shared.global"
  int line = 0;                // of the PTX text, of a run the first; 0: no instruction
  std::string source;          // "gemm.cc:42", from .loc; empty where unknown
};

/// "copy", "wait": also the category of the event in the JSON text.
std::string_view name(TimelineEvent::Kind kind);

/// A CTA that a timeline keeps.
struct TimelineCta {
  std::size_t launch = 0;  // index into Timeline::launches()
  Dim3 place;              // ctaid
  /// By warp: "producer" if it only copies and others only multiply, which are "consumer"; empty
  /// elsewhere.
  std::vector<std::string> roles;
};

/// A barrier of a CTA: an mbarrier, one of the 16 barriers, or that of its cluster.
struct TimelineBarrier {
  std::uint32_t cta = 0;
  std::string name;  // "mbarrier gemm_shared+1024", "barrier 0"
};

/// A launch, and what the limits left out of it.
struct TimelineLaunch {
  std::string kernel;
  Launch shape;
  std::uint64_t ctas = 0;       // of the grid
  std::uint64_t kept_ctas = 0;  // as many as Timeline::ctas() has
  std::uint64_t left_out = 0;   // events of those CTAs
  std::string stopped;          // the message of the finding that stopped it; empty: it finished
  std::string measured_on;      // the GPU, where times are nanoseconds; empty: steps
};

/// The launches of a device on the emulator, each of which adds to it when it ends, a deadlock
/// included. Give one to DeviceOptions::timeline, and read it while no launch runs. A launch that
/// is recorded takes one host thread.
class Timeline {
 public:
  explicit Timeline(TimelineLimits limits = {}) : limits_(limits) {}

  const TimelineLimits& limits() const { return limits_; }
  const std::vector<TimelineLaunch>& launches() const { return launches_; }
  const std::vector<TimelineCta>& ctas() const { return ctas_; }
  const std::vector<TimelineBarrier>& barriers() const { return barriers_; }
  /// By CTA; those of one CTA in the order in which they began.
  const std::vector<TimelineEvent>& events() const { return events_; }

  /// All of it in Chrome's trace format, which Perfetto reads, too: docs/timeline.md.
  std::string json() const;
  /// "4 of 128 CTAs, 812 events", and what was left out; one line for each launch.
  std::string summary() const;

  /// For engines: appends a launch, whose events, CTAs and barriers count from 0.
  void add(TimelineLaunch launch, std::vector<TimelineCta> ctas,
           std::vector<TimelineBarrier> barriers, std::vector<TimelineEvent> events);

 private:
  const TimelineLimits limits_;
  std::mutex mutex_;
  std::vector<TimelineLaunch> launches_;
  std::vector<TimelineCta> ctas_;
  std::vector<TimelineBarrier> barriers_;
  std::vector<TimelineEvent> events_;
};

}  // namespace tartan::TARTAN_ABI
