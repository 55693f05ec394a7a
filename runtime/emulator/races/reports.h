// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/reports.h - races as findings: both accesses with their lines, threads and
// the name of the memory; the first of each pair of instructions, the others counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/races/numbers.h"
#include "runtime/emulator/races/past.h"
#include "tartan/abi.h"
#include "tartan/runtime/device.h"
#include "tartan/support/rules.h"

namespace tartan::TARTAN_ABI::emulator {

class Predecessor;

struct LaunchContext;

/// One of two accesses.
struct RaceSide {
  Actor actor = Actor::thread;
  std::optional<std::uint32_t> thread;  // number of its warp's threads; nothing: an mbarrier's copy
  std::uint32_t lane = 0, pc = 0;
  bool writes = false;
};

struct Race {
  enum class Kind : std::uint8_t {
    unordered,
    same_value,       // unordered, but both write the same
    mixed,            // both are strong, but to elements of different sizes
    unfenced,         // ordered, but the async proxy need not see the store
    read_unfenced,    // the same of a load in front of an asynchronous write
    init_unfenced,    // first is mbarrier.init, second a copy that completes there
    narrow_wait,      // second waits at scope .cta for what first, of another CTA, wrote
    by_every_lane,    // lanes of a warp store the same bytes to the same place
    unacquired,       // the same of a tensor map
    noncoherent,      // ld.global.nc of what the grid writes
    unfinished,       // first is a copy, and its block may have exited by then
    exited,           // second may have ended by then, and with it the memory
    early,            // first is of the launch before, which may still run
    converged,        // unordered, but by lanes of a warp that did the first one together
    repeated_init,    // both are mbarrier.init with one count, by lanes of one instruction
    unwaited,         // first is a product, and its threads exit without a wait for it
    alloc_unfenced,   // as read_unfenced, of the address that tcgen05.alloc stored
    tensor_unfenced,  // in tensor memory, ordered, but without tcgen05.fence
    reordered,        // products whose accumulators overlap, in an order that is left open
    collector         // second takes from the collector what first, if any, put there
  } kind = Kind::unordered;
  RaceSide first, second;  // as they happened to come
  bool shared = true;
  std::uint32_t rank = 0;     // of the block whose shared memory it is
  std::uint64_t address = 0;  // in it, or in global memory
  bool waited = false;        // first is asynchronous, and was waited for
  bool mbarrier = false;      // second uses an mbarrier there
  bool tensor = false;        // it is tensor memory: lane * 2048 + 4 * column
  bool unfenced = false;      // fences alone are missing for the tensor core's order
  struct {
    bool before = false, after = false;
  } fences;                     // that are missing
  TensorIssue accumulators[2];  // reordered
  enum class Kept : std::uint8_t { nothing, other, changed } kept = Kept::nothing;  // collector
  char operand = 0;         // second is a product, and that its operand
  std::uint32_t lanes = 1;  // that issue the same store
  std::uint32_t use = 0;    // narrow_wait: the instruction that uses what was written
  // Where first completes, and in which phase.
  std::uint64_t completes_at = 0;
  std::uint32_t phase = 0;
};

class RaceReports {
 public:
  /// `predecessor`: the launch before, if that may still run.
  RaceReports(const LaunchContext& context, Numbers numbers, const Predecessor* predecessor)
      : context_(context), numbers_(numbers), predecessor_(predecessor) {}
  void add(const Race& race);
  /// Counts so many more of a kind and place that is known; false: it is not, add() them.
  bool count(Race::Kind kind, const RaceSide& first, const RaceSide& second, bool mbarrier,
             int races);
  /// In the order in which they were found, those of the kernel as a whole last; of very many the
  /// first ones.
  std::vector<Finding> findings() const;
  /// Whether it is between ordinary accesses.
  bool is_ordinary(const Race& race) const;

 private:
  /// The least that would order two threads.
  enum class Span : std::uint8_t { warp, block, cluster, grid };
  struct Tally {
    std::uint64_t count = 0;
    std::uint32_t places = 0;  // pairs of instructions
    Span span = Span::warp;    // the widest
  };
  struct Entry {
    const Rule* rule;
    Race race;
    Tally tally = {};
  };
  struct Thread {
    Dim3 block;
    std::uint32_t rank = 0, warp = 0, cluster = 0;
  };
  static constexpr std::size_t most_entries = 100;

  const Rule& rule(const Race& race) const;
  /// A second run has found that nobody uses what the load brings.
  bool is_dead(const Entry& entry) const;
  Level level(const Entry& entry) const;
  Tally* find_tally(const Race& race);
  Span span(const RaceSide& first, const RaceSide& second) const;
  Thread thread(std::uint32_t number) const;
  bool apart(const Race& race) const;
  std::string text(const Entry& entry) const;
  std::string race_text(const Race& race, Span span) const;
  std::string early_text(const Race& race) const;
  std::string exit_text(const Race& race) const;
  std::string mbarrier_text(const Race& race) const;
  std::string init_text(const Race& race) const;
  std::string narrow_text(const Race& race) const;
  std::string side_text(const RaceSide& side, bool with_block) const;
  std::string memory_text(const Race& race) const;
  std::string barrier_advice(const Race& race, Span span) const;
  std::string advice(const Race& race, Span span) const;
  std::string copy_advice(const Race& race, Span span) const;
  std::string tensor_advice(const Race& race) const;
  /// Of what the tensor core alone does; else empty.
  std::string tensor_text(const Race& race) const;
  static std::string slot_advice();
  std::string pair_text(const Race& race) const;
  std::string fence_text(const Race& race) const;
  std::string accumulators_text(const Race& race) const;
  std::string factor_text(const Race& race) const;
  std::string collector_text(const Race& race) const;
  static std::string tensor_cell_text(std::uint64_t address);
  std::string group_advice(const Race& race, Span span) const;

  const LaunchContext& context_;
  Numbers numbers_;
  const Predecessor* predecessor_;
  std::deque<Entry> entries_;
  std::unordered_map<std::uint64_t, Tally*> tallies_;  // by what makes a kind and place
  Tally left_out_;
};

}  // namespace tartan::TARTAN_ABI::emulator
