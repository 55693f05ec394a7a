// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/warp.h - 32 lanes that run a program.
//
// Lanes of a warp are kept in groups that share a program counter (independent thread scheduling).
// Of the groups that can run, the one with the lowest counter does, so groups meet again where
// their paths join, and merge. Lanes that could go on and have not for long (those that others spin
// for) come first once in a while, so every lane makes progress.
//
// A collective instruction parks its group until every lane that it needs, and that has not exited,
// has come to it: one of .aligned to the same place of the text, one with a member mask to the same
// instruction with the same mask, wherever that stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/machine/program.h"

namespace tartan::TARTAN_ABI::emulator {

class Block;

/// Lanes that share a program counter.
struct Group {
  enum class State : std::uint8_t {
    ready,
    gathering,
    at_barrier,
    in_warpgroup,
    at_cluster,
    for_registers,
    for_columns,  // of tensor memory: the op runs again when some are free
    for_peer      // the other CTA of its pair: the op runs again when that has come
  };

  /// The last wait for an mbarrier that was not done, and how the lanes come back to it.
  struct Poll {
    std::uint32_t pc = 0;       // behind the wait; 0: none
    std::uint64_t steps = 0;    // since then
    std::uint64_t length = 0;   // of the way round, once it was gone
    std::uint64_t address = 0;  // of the first lane's mbarrier
    bool parity = false;        // of the phase that it waits for
  };

  std::uint32_t pc = 0;
  std::uint32_t mask = 0;
  State state = State::ready;
  std::uint8_t barrier = 0;    // at_barrier
  bool anywhere = false;       // gathering: others may do so at other places
  std::uint32_t required = 0;  // gathering: the lanes that must come
  std::uint32_t passed = 0;    // lanes that executed this op with another member mask
  std::uint32_t wanted = 0;    // for_registers: how many a lane is to have; for_columns
  std::uint64_t last_run = 0;
  Poll poll;
};

struct Warp {
  // What handlers use.
  std::byte* arena = nullptr;
  std::uint32_t* tags = nullptr;  // what an observer keeps of each byte of the arena
  std::uint32_t mask = 0;         // lanes that execute the current op
  std::uint32_t pc = 0;           // the op after the current one; a branch changes it
  std::uint32_t group =
      0;               // lanes of the running group; exit and divergent branches take lanes out
  bool leave = false;  // set by whatever changes groups: back to the scheduler after this op
  std::uint32_t slice = 0;  // ops until other warps get their turn
  Block* block = nullptr;
  const Program* program = nullptr;
  std::byte* local = nullptr;
  std::uint64_t local_step = 0;  // bytes from a lane's local memory to the next one's
  std::uint32_t started = 0;     // lanes that exist
  std::uint32_t live = 0;        // those that have not exited
  std::uint32_t index = 0;       // in the block
  std::uint32_t at_cluster = 0;  // lanes that arrived at the cluster's barrier and have not waited
  std::uint32_t in_cluster_phase = 0;  // those of them whose phase is not complete
  std::uint32_t registers = 0;         // of a lane; counts where the kernel bounds them
  const Allocation* recent[8] = {};
  std::uint64_t steps = 0, lane_steps = 0, multiply_adds = 0;
  std::uint64_t copied = 0;  // bytes, by bulk copies
  bool was_refused = false;  // a lane has read that no cluster is left to take

  std::uint32_t stack_top = 0;  // up to where any lane's stack was ever taken
  std::vector<Group> groups;    // those that do not run now, and the running one at `current`
  std::size_t current = 0;
  std::uint32_t partial_syncs = 0;  // barriers of some of its lanes alone
  bool only_polled = false;         // what the last run() came to
  bool undefined = false;           // examined: some register has bits that nobody wrote

  void start(std::uint32_t lanes);
  bool done() const { return live == 0; }
  /// Where its first lanes are.
  std::uint32_t first_pc() const { return groups.empty() ? 0 : groups[0].pc; }
  /// Runs until the slice is over or no group can run. False if no group could.
  bool run(std::uint32_t slice_ops);

  // Under a schedule.
  /// Groups whose collective has all its lanes are ready.
  void wake();
  /// Runs that group, which is ready, for at most so many ops.
  void run_group(std::size_t which, std::uint32_t ops);

  /// For control ops: the executing lanes go on at `target`, the rest of the group behind this op.
  void branch(std::uint32_t target);
  /// The executing lanes are done.
  void exit();
  /// True when all of `required` that live are among the executing lanes. Otherwise parks the lanes
  /// at this op, which runs again later.
  bool gather(std::uint32_t required);
  /// The same for an op whose lanes pass those member masks, for which they may wait at other
  /// places of the text. Where some do, the op is done for all of them at once, and the result is
  /// false. Lanes of one mask execute it together, those of another mask by themselves.
  bool gather_members(const std::uint32_t* masks);
  /// For one that is undefined if any thread of the warp has exited, or never was (PTX ISA, "mma",
  /// "ldmatrix", "wmma"): false with a finding then.
  bool gather_whole();
  /// For a collective that has all its lanes without gather(): it is about to run.
  void examine_gathered();
  /// The lanes that have come to what a group gathers for.
  std::uint32_t gathered(const Group& group) const;
  /// Keeps only `lanes` of the executing ones; the others run this op again by themselves.
  void defer_all_but(std::uint32_t lanes);
  /// Parks the executing lanes behind this op until the barrier releases them.
  void wait_at_barrier(std::uint8_t barrier);
  /// Parks them behind this op until the other warps of the warpgroup have come to it.
  void wait_for_warpgroup();
  /// Parks them behind this op until all threads of the cluster have arrived.
  void wait_for_cluster();
  /// Parks them behind this op until the block has `wanted` registers for each of them.
  void wait_for_registers(std::uint32_t wanted);
  /// Parks them at this op, which runs again when columns of tensor memory are given back.
  void wait_for_columns(std::uint32_t wanted);
  /// The same up to when the other CTA of its pair has come.
  void wait_for_peer();
  /// Ends the turn of this warp after the op: it waits for something that another one does.
  void yield() {
    slice = 0;
    paused_ = true;
  }
  /// The executing lanes found the mbarrier at `address` in the phase that they wait to end.
  void poll_again(std::uint64_t address, bool parity);
  /// Some of them found it in the next one.
  void poll_done() { groups[current].poll = {}; }
  /// Stops the launch with a finding at the current op.
  void fail(const Rule& rule, std::string message, int lane = -1, std::uint64_t address = 0);

 private:
  bool choose();
  void run_current();
  void check_divergence();
  void favour_oldest();
  void merge_into_current();
  bool gather(std::uint32_t required, bool anywhere);
  bool are_named(std::uint32_t lanes, std::uint32_t members);
  bool same_masks(std::uint32_t pc, std::uint32_t members, std::uint32_t passed,
                  std::uint32_t came);
  bool nobody_left();
  void note_passing(std::uint32_t at, std::uint32_t lanes);
  bool alike(const Group& a, const Group& b) const;
  void run_together(const Group& here, std::uint32_t members);
  void examine_together(const Group& here);
  void report_divergence();

  std::uint32_t favoured_ = 0;  // lanes that come first, until so many steps are done
  std::uint64_t favoured_until_ = 0;
  std::uint64_t waited_ = 0;  // steps for which some group could have run and did not
  std::uint64_t began_ = 0;   // steps before the running group's turn
  bool paused_ = false;       // the turn ended with yield()
  // Of a watched launch: the lanes that executed each aligned op of the kernel.
  std::unordered_map<std::uint32_t, std::uint32_t> been_at_;
  friend class Block;
};

}  // namespace tartan::TARTAN_ABI::emulator
