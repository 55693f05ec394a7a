// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/observers.h - what happens in a launch, as its observers hear it.
//
// The machine and the handlers of instructions tell it to whoever listens, and know none of them:
// tell(warp, &ValueEvents::fill, to, bytes) is a look at an empty list in a launch without
// observers. What stops the launch is asked for: ask().
//
//   Events           who waits for whom, who accesses what, what is asynchronous
//   ValueEvents      where values go, in memory and in registers
//   LaunchObserver   of a launch: brings the observers of its clusters
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/emulator/machine/mbarrier.h"
#include "runtime/emulator/machine/program.h"
#include "runtime/emulator/machine/scope.h"
#include "runtime/emulator/machine/tensor_memory.h"

namespace tartan::TARTAN_ABI::emulator {

class Block;
class Cluster;
struct Warp;

/// Combines `bytes` bytes of elements at `from` into those at `to`, in order.
using Reduction = void (*)(std::byte* to, const std::byte* from, std::uint32_t bytes);

/// What an asynchronous copy of a lane brings to memory, or combines with what is there.
struct StoredBytes {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;
  Reduction reduction = nullptr;
  std::optional<std::uint32_t> mask = {};  // of every 16 bytes those whose bit is set
};

/// Bits of a lane's register.
struct ElementPlace {
  std::uint32_t slot = 0;
  int shift = 0, width = 32, register_bits = 32;
};

/// An instruction at which lanes wait for others.
struct GatheredPlace {
  std::uint32_t pc = 0, lanes = 0;
};

/// Bytes at an address.
struct Stretch {
  Window window = Window::global;
  std::uint64_t address = 0, bytes = 0;
};

/// How a box of a tensor lies in shared memory.
struct BoxShape {
  std::uint32_t span = 0;    // bytes of its swizzle
  std::uint64_t source = 0;  // where the tensor begins
};

/// An access of lanes to memory, if its row says none.
struct LaneAccess {
  Window window = Window::generic;
  std::uint32_t lanes = 0;
  std::uint64_t bytes = 0;            // of each lane
  const std::uint64_t* at = nullptr;  // addresses in the window, of 32 lanes
  bool writes = false;
  bool collective = false;      // by all lanes together
  std::uint64_t alignment = 0;  // 0: as many as bytes
};

/// What a copy has written: `room` bytes of host memory, those between its elements included; and
/// what it has read.
struct Filled {
  const std::byte* at = nullptr;
  std::uint64_t room = 0;
  std::optional<BoxShape> shape = {};  // through a tensor map
  std::span<const Stretch> from = {};
  std::optional<std::uint64_t> map = {};  // where the tensor map is
  std::optional<Scope> strong = {};       // of a reduction, or a relaxed copy
  std::optional<Scope> strong_from = {};  // how it has read
  bool generic = false;                   // it is not of the async proxy
};

/// A copy that completes bytes of an mbarrier.
struct AsyncCopy {
  std::uint64_t number = 0;  // of those of the cluster, from 1 on
  std::byte* mbarrier = nullptr;
  std::uint32_t bytes = 0;
  const Filled& filled;
};

/// It has done so; or arrivals of cp.async.mbarrier.arrive have come, which have no number.
struct Completion {
  std::uint64_t number = 0;
  std::byte* mbarrier = nullptr;
  std::uint64_t bytes = 0, arrivals = 0;
  bool ends = false;  // the phase
};

/// What a copy of a bulk group reads or writes.
struct GroupAccess {
  Stretch where;
  bool writes = false;
  std::optional<Scope> strong = {};
  std::uint32_t alike = 0;  // lanes that store the same bytes to the same place
  bool map = false;         // it is a tensor map
};

/// Asynchronous operations, by what waits for them.
enum class AsyncKind : std::uint8_t {
  copy,        // cp.async
  bulk,        // copies of a bulk group
  completion,  // what completes at an mbarrier
  arrival,     // of cp.async.mbarrier.arrive
  product      // wgmma
};

/// Who accesses tensor memory: tcgen05.dealloc, for whom the columns are a piece of memory; a
/// warp's loads and stores, which are over at its wait; or the tensor core, whose work is over when
/// tcgen05.commit has told an mbarrier so.
enum class TensorAgent : std::uint8_t { thread, load, store, core };

struct TensorTouch {
  TensorAgent agent = TensorAgent::load;
  bool writes = false;
  bool accumulator = false;  // of the tensor core: D, which its products keep in order
  TensorArea area;
  std::optional<std::uint32_t> rank = {};  // of the CTA whose memory it is; none: the warp's
};

/// 16 bytes of shared memory that hold elements of a factor: `count` rows or columns from `first`.
struct TileChunk {
  std::uint64_t address = 0;
  int first = 0, count = 1;
  std::optional<std::uint32_t> rank = {};  // of the CTA whose memory it is; none: the warp's
};

/// A factor that the tensor core reads in shared memory.
struct TensorTile {
  char name = 'A';         // 0: what tcgen05.cp copies
  std::uint32_t span = 0;  // bytes of its descriptor's swizzle
  std::span<const TileChunk> chunks;
};

/// What an instruction says of the collector, which keeps an A that is read again.
enum class CollectorUse : std::uint8_t { none, fill, use, lastuse, discard };

/// A product of the tensor core as it is issued.
struct TensorIssue {
  int lane = 0, column = 0;  // where D begins
  int m = 0, n = 0;
  int columns = 0;         // of cells that D has; with parts below each other, fewer than n
  bool all_lanes = false;  // else every other 16 of them
  CollectorUse collector = CollectorUse::none;
  // Of a product that uses it: A's descriptor or address, and a number that other contents change.
  bool a_in_tensor = false;
  std::uint64_t a = 0, contents = 0;
};

/// What a product leaves undefined: the place of D, and where its factors are.
struct TensorProductPlaces {
  std::span<const TileChunk> a, b;       // in shared memory
  int a_bytes = 16, b_bytes = 16;        // of those of a chunk that hold elements
  TensorArea a_cells;                    // row-major; no lanes: in shared memory
  bool shifts_a = false;                 // .ashift: its rows move by one as they are read
  std::span<const TensorArea> others;    // cells on which all of D depends: scales, metadata
  std::span<const std::uint8_t> d_lane;  // of each row, part after part
  int d_column = 0, columns = 0;
  int parts = 1;  // of D: each has rows, A in tensor memory and columns of its own
  bool accumulates = false, half = false;   // half: of a cell the lower 16 bits
  const std::uint32_t* disabled = nullptr;  // lanes that are not written: four words
  std::optional<std::uint32_t> rank = {};   // of the CTA whose tensor memory it is
};

/// What lanes are about to do to an mbarrier.
struct MbarrierUse {
  MbarrierAction action = MbarrierAction::arrive;
  bool by_copies = false;       // when their copies of cp.async are over
  bool raises = false;          // the mbarrier expects the arrival beside those that it counts
  bool by_tensor_core = false;  // when its work is done: tcgen05.commit
  std::uint32_t alike = 0;      // of init: lanes for which this op has done the same before
};
struct MbarrierArrival {
  bool relaxed = false, of_cta = false;  // its scope is said to be the CTA
  bool by_copies = false;
};
/// Lanes have found a phase over.
struct MbarrierPass {
  bool parity = false, relaxed = false;
  WaitScope scope = WaitScope::unsaid;
  bool first = true;  // of the mbarriers that the lanes of one wait look at
};

/// Told before it happens, unless the name says that it has; mbarriers by their place in the host's
/// memory. What gives false stops what is about to be done: after a finding.
class Events {
 public:
  virtual ~Events() = default;
  /// The cluster of that index begins; all its threads have exited; a finding stops it.
  virtual void start(Cluster&, std::uint32_t /*index*/) {}
  virtual void finish(Cluster&) {}
  virtual void stopped(const Finding&) {}
  /// All lanes of a warp have exited.
  virtual void exited(const Warp&) {}

  // The executing lanes.
  /// They have come to a collective together.
  virtual void met(Warp&) {}
  virtual void sync_warp(Warp&) {}
  virtual void access(Warp&, const LaneAccess&) {}
  /// A strong access, with the addresses of 32 lanes.
  virtual void communicate(Warp&, Window, const std::uint64_t* /*at*/, std::uint32_t /*bytes*/) {}
  virtual void fence_proxy(Warp&, bool /*shared*/, bool /*global*/) {}
  virtual void fence_inits(Warp&) {}
  /// fence.proxy.tensormap with .acquire of the maps there; tensormap.cp_fenceproxy has copied one.
  virtual void acquire_map(Warp&, const std::uint64_t* /*at*/, Window) {}
  virtual void released_map(Warp&) {}
  virtual void allocated(Warp&, std::uint64_t /*address*/, std::uint64_t /*bytes*/) {}
  virtual void wait_for_predecessor(Warp&) {}

  // Barriers of a block, a cluster and a warpgroup, and registers.
  /// They have arrived; `waits`: and wait, since others are missing.
  virtual void arrived(Warp&, std::uint32_t /*id*/, std::uint32_t /*expected*/, bool /*waits*/) {}
  /// The barrier lets lanes go; it has let all go.
  virtual void leave(Warp&, std::uint32_t /*lanes*/, std::uint32_t /*id*/) {}
  virtual void released(Block&, std::uint32_t /*id*/) {}
  virtual void arrived_at_cluster(Warp&, bool /*relaxed*/) {}
  virtual void waits_for_cluster(Warp&) {}
  virtual void leave_cluster(Warp&, std::uint32_t /*lanes*/) {}
  /// Before the lanes that wait leave.
  virtual void released_cluster(Cluster&) {}
  virtual void waits_for_warpgroup(Warp&) {}
  virtual void gathered_warpgroup(Warp&) {}
  virtual void waits_for_registers(Warp&, std::uint32_t /*wanted*/) {}
  virtual void has_registers(const Warp&) {}

  // mbarriers.
  virtual bool use_mbarrier(Warp&, std::uint32_t /*lanes*/, std::byte*, const MbarrierUse&) {
    return true;
  }
  /// A lane did so, and the mbarrier is about to count it.
  virtual void count_mbarrier(Warp&, int /*lane*/, std::byte*, MbarrierAction, std::uint32_t) {}
  /// The same of arrivals, of all lanes of an op that arrive there, before the phase ends.
  virtual void arrived_at_mbarrier(Warp&, std::uint32_t /*lanes*/, std::byte*, MbarrierArrival) {}
  virtual void ended_phase(Cluster&, std::byte*) {}
  /// A lane looks at it; `waits`: for a phase.
  virtual bool test_mbarrier(Warp&, int /*lane*/, std::byte*, bool /*waits*/) { return true; }
  virtual void found_pending(Warp&, std::byte*, bool /*parity*/) {}
  virtual void passed(Warp&, std::uint32_t /*lanes*/, std::byte*, const MbarrierPass&) {}

  // What is asynchronous is told when it is issued. Late operations are done later.
  virtual bool issue_copy(Warp&, int /*lane*/, const AsyncCopy&) { return true; }
  virtual void completed(Cluster&, const Completion&) {}
  virtual bool access_by_group(Warp&, int /*lane*/, const GroupAccess&) { return true; }
  virtual bool issue_product(Warp&, std::span<Warp>, const WarpgroupOperation&,
                             const WgmmaOperands&) {
    return true;
  }
  /// They close a group, or wait for all but the last `pending` of them; none: for all that they
  /// issued. `reads`: for what those read alone.
  virtual void commit(Warp&, AsyncKind) {}
  /// Of tensor memory: the tensor core's accesses are those of the lane that issued them.
  virtual bool access_tensor(Warp&, int /*lane*/, const TensorTouch&) { return true; }
  virtual bool read_tile(Warp&, int /*lane*/, const TensorTile&) { return true; }
  virtual bool issue_tensor(Warp&, int /*lane*/, const TensorIssue&) { return true; }
  /// tcgen05.fence::before_thread_sync or ::after_thread_sync.
  virtual void fence_tensor(Warp&, bool /*before*/) {}
  /// tcgen05.wait::ld or ::st; tcgen05.commit, which arrives later.
  virtual void wait_for_tensor(Warp&, TensorAgent) {}
  virtual void commit_tensor(Warp&, int /*lane*/, std::byte*) {}
  /// A warp has got columns, or says that its CTA allocates no more; it has given some back.
  virtual void takes_columns(Warp&, bool /*allocates*/) {}
  virtual void gives_columns(Warp&) {}
  /// A warp is about to allocate for a pair of CTAs. Later, two warps of a pair have come to
  /// allocate columns of both CTAs, or to give them back, told before they do.
  virtual bool allocates_for_pair(Warp&, Block& /*peer*/) { return true; }
  virtual void joined(Warp&, Warp& /*peer*/) {}
  virtual void wait(Warp&, AsyncKind, std::optional<std::uint32_t> /*pending*/, bool /*reads*/) {}
};

/// Memory is in host addresses. Told before it happens, but for start().
class ValueEvents {
 public:
  virtual ~ValueEvents() = default;
  /// The cluster begins: nobody has written its memory.
  virtual void start() {}
  /// `op` is about to run, for warp.mask: of those that are examined, or where Warp::undefined.
  virtual void run(Warp&, const Op&) {}
  /// All lanes of a collective are there, at one place of the text or at several.
  virtual void gathered(Warp&, std::uint32_t /*pc*/) {}
  virtual void gathered_apart(Warp&, std::span<const GatheredPlace>) {}

  /// Values that no register and no memory had.
  virtual void fill(Warp&, const std::byte* /*to*/, std::uint64_t /*bytes*/) {}
  virtual void move(Warp&, std::byte* /*to*/, const std::byte* /*from*/, std::uint64_t /*bytes*/) {}
  virtual void store(Warp&, int /*lane*/, const StoredBytes&) {}
  virtual void load_element(Warp&, int /*lane*/, const std::byte* /*from*/, const ElementPlace&) {}
  virtual void store_element(Warp&, int /*lane*/, std::byte* /*to*/, const ElementPlace&) {}
  /// A register of st.async and red.async, whose bits are at `stored.from` by now.
  virtual void store_register(Warp&, int /*lane*/, std::uint32_t /*slot*/, const StoredBytes&) {}
  /// Bytes of a register, `at` in the arena, to and from the stack.
  virtual void save(Warp&, std::byte* /*to*/, std::size_t /*at*/, std::size_t /*bytes*/) {}
  virtual void restore(Warp&, std::size_t /*at*/, const std::byte* /*from*/, std::size_t) {}
  virtual void copy_register(Warp&, std::uint32_t /*to*/, std::uint32_t /*from*/, int /*bits*/) {}
  /// Lane i of shfl.sync reads lane from[i] & 31 of op.a.
  virtual void shuffle(Warp&, const Op&, const std::uint32_t (&)[32]) {}

  /// A product of a warp. False: after a finding that stops it.
  virtual bool multiply(Warp&, const MatrixOperation&, const ScalePlaces&) { return true; }
  /// One of a warpgroup is issued, and later multiplies.
  virtual bool issue_product(Warp&, std::span<Warp>, const WarpgroupOperation&) { return true; }
  virtual void multiply_warpgroup(Warp&, std::span<Warp>, const WarpgroupOperation&,
                                  const WgmmaOperands&) {}

  // Tensor memory.
  virtual void gave_columns(Warp&, const TensorMemory::Allocation&) {}
  virtual void load_tensor(Warp&, const TensorMove&, isa::TensorCell /*first*/) {}
  virtual void store_tensor(Warp&, const TensorMove&, isa::TensorCell /*first*/) {}
  virtual void multiply_tensor(Warp&, const TensorProductPlaces&) {}
  /// `bytes` bytes of shared memory go to four cells from `to` on, of the CTA of that rank: 16 as
  /// they are, fewer unpacked.
  virtual void copy_to_tensor(Warp&, const std::byte* /*from*/, isa::TensorCell /*to*/,
                              std::uint64_t /*bytes*/, std::uint32_t /*rank*/) {}
  /// The rows of these cells, of the CTA of that rank, are about to move by one.
  virtual void shift_tensor(Warp&, const TensorArea& /*rows*/, std::uint32_t /*rank*/) {}
};

/// Of a launch, for as long as that runs.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  /// Whether several host threads may run the launch.
  virtual bool concurrent() const { return false; }
  /// A cluster is made, which may then be several of the grid, one after another: it takes its
  /// observers (Cluster::add).
  virtual void attach(Cluster&) {}
  /// It begins as the one of that index, before its observers hear so.
  virtual void begin(Cluster&, std::uint64_t /*index*/) {}
};

}  // namespace tartan::TARTAN_ABI::emulator
