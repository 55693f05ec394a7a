// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/block.h - a thread block: its warps, shared memory and barriers.
//
// A block runs on one host thread, its warps in turn, a slice each; so what a block does on its own
// depends on nothing but its inputs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulator/machine/heap.h"
#include "runtime/emulator/machine/multiprocessor.h"
#include "runtime/emulator/machine/tensor_memory.h"
#include "runtime/emulator/machine/warp.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {

class LaunchObserver;
class Schedule;

/// What all blocks of a launch share.
struct LaunchContext {
  const Program& program;
  const ptx::Module& module;
  GlobalMemory& memory;
  Launch launch;
  Dim3 cluster;                   // blocks of one
  bool explicit_cluster = false;  // the launch or the kernel states it
  std::vector<std::byte> params;
  std::uint64_t max_steps = 0;
  Heap* heap = nullptr;
  const Multiprocessor& multiprocessor;
  std::uint64_t grid = 0;       // %gridid
  std::uint64_t workspace = 0;  // of a cooperative launch
  bool checked = false;         // DeviceOptions::checks: what is undefined is a finding
  std::vector<LaunchObserver*> observers = {};  // in the order in which they hear of events
  Schedule* schedule = nullptr;                 // null: the usual order
  detail::Trial* trial = nullptr;               // of one that finds the level of findings
  const std::function<void(std::string_view)>* print = nullptr;  // who hears what kernels print
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  /// Takes a cluster that has not started out of the grid, and gives the place of its first block.
  std::function<std::optional<Dim3>()> cancel = {};
  detail::Watch* watch = nullptr;  // null: nobody looks
};

struct Barrier {
  bool pending = false;
  std::uint32_t expected = 0;  // threads; 0: all of the block
  // Of each warp: the lanes of its first arrival in this phase, of its second one, ...
  std::vector<std::vector<std::uint32_t>> arrived;
  std::uint32_t votes = 0;  // bar.red: threads whose predicate holds
  std::uint32_t voters = 0;
};

inline constexpr std::size_t warps_of_warpgroup = 4;

/// Four warps that an instruction of warpgroups brings together.
struct Warpgroup {
  std::uint32_t pc = 0;       // behind the instruction
  std::uint32_t arrived = 0;  // bits: its warps that wait there
};

/// A setmaxnreg that a warp executed.
struct RegisterChange {
  std::uint32_t pc = 0, count = 0;
  bool more = false;
};

class Cluster;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

class Block {
 public:
  /// What a turn came to. `polled`: warps ran, but only to find that what they wait for is not
  /// done.
  enum class Turn : std::uint8_t { done, parked, polled, progressed };

  Block(LaunchContext& context, Cluster& cluster, std::uint32_t rank);
  /// What a block has of shared memory.
  static std::uint64_t shared_bytes(const LaunchContext& context);
  /// About how much memory of the host a block takes.
  static std::uint64_t host_bytes(const LaunchContext& context);

  /// Makes this the block at `place` in the grid, ready to run.
  void start(Dim3 place);
  /// Runs each warp for a slice.
  Turn run_turn();
  /// Under a schedule: runs a group of `warp`, which is ready, for at most so many instructions.
  void run_group(Warp& warp, std::size_t group, std::uint32_t instructions);
  /// Whether the mbarrier that the group found in the phase whose end it waits for is still there.
  bool still_waits(const Group& group) const;
  bool done() const;
  bool stopped() const;
  /// Adds what the warps did.
  void count(Report& report) const;

  // For warps and handlers.
  std::byte* shared() { return shared_.data() + shared_shift_; }
  std::uint64_t shared_bytes() const { return shared_bytes_; }
  std::byte* params() { return context_.params.data(); }
  GlobalMemory& memory() { return context_.memory; }
  const Launch& launch() const { return context_.launch; }
  const LaunchContext& context() const { return context_; }
  Cluster& cluster() { return cluster_; }
  std::uint32_t rank() const { return rank_; }
  /// What its own addresses of shared memory begin with, in clusters of several blocks: where the
  /// cluster has it.
  std::uint64_t own_place() const { return own_place_; }
  Dim3 place() const { return place_; }
  std::span<Warp> warps() { return warps_; }

  /// `warp`'s executing lanes arrive at barrier `id`; `expected` threads in all (0: the whole
  /// block). With `wait` they wait there.
  void arrive(Warp& warp, std::uint32_t id, std::uint32_t expected, bool wait, std::uint32_t votes);
  /// `warp` has come to an instruction of warpgroups. True for the last of the four, which executes
  /// it for all; the others wait behind it.
  bool gather_warpgroup(Warp& warp);
  /// The warps of `warp`'s warpgroup.
  std::span<Warp> warpgroup(const Warp& warp);
  /// setmaxnreg: each lane of `warp` is to have `count` registers. What others gave up is what a
  /// warp that wants more gets; it waits until there is enough.
  void set_registers(Warp& warp, std::uint32_t count, bool more);
  /// "40 more registers for each, of which the block has ..."
  std::string registers_text(const Warp& warp, std::uint32_t wanted) const;
  /// Of programs that use it.
  TensorMemory& tensor() { return *tensor_; }
  /// The other CTA of its pair, whose rank differs in the last bit; null where the cluster has
  /// none.
  Block* peer();
  /// Nobody has written these columns: in a further run they have other contents.
  void fill_columns(std::uint32_t first, std::uint32_t count);
  /// Columns have been given back: who waits for some tries again.
  void hand_out_columns();
  /// "64 columns of tensor memory, of which 480 are allocated".
  std::string columns_text(std::uint32_t wanted) const;
  /// A warp has exited: with the last one, all columns must be free.
  void check_allocations(Warp& warp);
  void lanes_exited() { recheck_ = true; }
  /// All lanes of `warp` have.
  void warp_exited(Warp& warp);
  void fail(Warp& warp, std::uint32_t pc, const Rule& rule, std::string message, int lane,
            std::uint64_t address);
  int line(std::uint32_t pc) const;
  /// "line 40 (gemm.cc:12)".
  std::string where(std::uint32_t pc) const;

  /// Whether every warp that is not done stands at a barrier of this block or waits for lanes of
  /// its own.
  bool waits_for_itself() const;
  /// Says so, with the place of one that does.
  void report_deadlock();
  /// "has 32 threads and waits for 64": barrier `id`.
  std::string barrier_text(std::uint8_t id) const;

 private:
  bool complete(const Barrier& barrier) const;
  bool change_alike(Warp& warp, const RegisterChange& change);
  void release(std::uint8_t id);
  std::uint32_t first_registers() const;
  void hand_out_registers();
  void recheck();
  std::uint64_t special(isa::SpecialRegister which, std::uint32_t warp, std::uint32_t lane) const;
  std::uint32_t allotted_shared() const;
  bool within_limits(Warp& warp);
  std::uint32_t slice(const Warp& warp, std::uint32_t ops) const;
  void report_limit(Warp& warp, const Rule& rule, std::string message);
  void fill_specials(Warp& warp);
  void clear_local(Warp& warp);
  void fill_unwritten(Warp& warp);

  LaunchContext& context_;
  Cluster& cluster_;
  std::uint32_t rank_;
  std::uint64_t own_place_;
  std::vector<Warp> warps_;
  std::vector<std::byte> arenas_, shared_;
  std::unique_ptr<std::byte[], Free> locals_;  // the system gives stacks as they are used
  std::size_t arena_shift_ = 0, shared_shift_ = 0, local_shift_ = 0;
  std::uint64_t shared_bytes_ = 0;
  Dim3 place_;
  Barrier barriers_[16];
  std::unique_ptr<TensorMemory> tensor_;
  std::vector<Warpgroup> warpgroups_;
  std::vector<std::vector<RegisterChange>> register_changes_;  // of the warps
  std::uint32_t free_registers_ = 0;  // of a lane: each counts for a whole warp
  bool recheck_ = false;
};

}  // namespace tartan::TARTAN_ABI::emulator
