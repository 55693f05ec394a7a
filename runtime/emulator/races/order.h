// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/order.h - what is ordered before what in a cluster, for kernels with
// asynchronous copies or wgmma.
//
// The emulator does a copy or a product when it is issued; on a GPU it is done some time later. So
// a kernel that waits for the wrong phase can look right here by luck, or give wrong numbers
// without a word. The clocks kept here know better: every warp has one, with an entry for each warp
// of the cluster ("what it did up to then is known to me") and for each mbarrier ("this many of its
// phases have ended, as far as I know").
//
//   arrive, bar.sync, fences, atomics   bring what a warp knows to a meeting point
//   a wait that ends, bar.sync          takes what is known there
//   fence.proxy.async                   makes the stores that its warp knows of visible to copies
//                                       and products, its own and others'
//
// A product may read a box when one of the four warps knows that its mbarrier's phase has ended, a
// load when its own does; a copy may fill it when its thread knows that the products that read it
// were waited for, and of the loads. What a copy takes may be overwritten by who knows that its
// thread has waited for its group. Order between the lanes of a warp is not looked at, and whatever
// might order two warps is taken to do so: a kernel that is right has no finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI::emulator {

class Block;
class Cluster;
struct MatrixDescriptor;
struct Warp;

/// Counts that only grow: entry i is how much of i is known. Entries beyond the end are 0.
class Clock {
 public:
  std::uint32_t operator[](std::size_t i) const { return i < entries_.size() ? entries_[i] : 0; }
  void set(std::size_t i, std::uint32_t count);
  void join(const Clock& other);
  void clear() { entries_.clear(); }

 private:
  std::vector<std::uint32_t> entries_;
};

/// Where warps meet, other than at mbarriers.
struct Meeting {
  enum class Kind : std::uint8_t { memory, cluster, barrier } kind;
  std::uint32_t barrier = 0;
};

/// How a box that a copy fills lies in shared memory.
struct BoxShape {
  bool tensor = false;       // through a tensor map
  std::uint32_t span = 0;    // bytes of its swizzle
  std::uint64_t source = 0;  // where the tensor begins
};

/// A tile of wgmma in shared memory.
struct TileOperand {
  char name = 'A';
  const MatrixDescriptor* descriptor = nullptr;
  bool mn_major = false;
  bool long_rows = false;  // 64 bytes, as B of a sparse product has them
  int element_bits = 16, outer = 0, k = 0;
};

class Order {
 public:
  explicit Order(Cluster& cluster);
  /// The cluster begins: nobody knows anything.
  void start();

  void release(const Warp& warp, Meeting meeting);
  void acquire(const Warp& warp, Meeting meeting);

  // mbarriers, by their place in the host's memory. False: after a finding.
  void initialise(const Warp& warp, const std::byte* at);
  void invalidate(const std::byte* at);
  /// Before `warp` arrives at it, expects bytes there or looks at its phase.
  bool use(Warp& warp, int lane, const std::byte* at);
  void arrive(const Warp& warp, const std::byte* at);
  /// Its phase has ended.
  void end_phase(const std::byte* at);
  /// A wait of `warp` has ended.
  void waited(const Warp& warp, const std::byte* at);

  // Memory, by its place in the host's; what is not shared memory of the cluster is nothing to
  // this class. False: after a finding.

  /// A copy fills `bytes` bytes and completes on `mbarrier`.
  bool fill(Warp& warp, int lane, const std::byte* to, std::uint64_t bytes,
            const std::byte* mbarrier, const BoxShape& shape);
  /// A copy takes them; `in_group`: it is done when its thread has waited for a group of copies.
  bool take(Warp& warp, int lane, const std::byte* from, std::uint64_t bytes, bool in_group);
  /// The same for one that completes on `mbarrier`; to be called in front of fill().
  void take_until(Warp& warp, int lane, const std::byte* from, std::uint64_t bytes,
                  const std::byte* mbarrier);
  /// The threads of warp.mask close a group of such copies, or wait for all but `pending` groups.
  void commit_copies(const Warp& warp);
  void wait_for_copies(const Warp& warp, std::uint32_t pending);
  /// st.async and red.async: the same as fill() for a few bytes.
  bool fill_some(Warp& warp, int lane, const std::byte* to, std::uint64_t bytes,
                 const std::byte* mbarrier);
  /// Whether copies have filled anything.
  bool has_boxes() const;
  /// A product of `warp`'s warpgroup reads a tile.
  bool read(Warp& warp, const TileOperand& operand);
  void commit(const Warp& warp);
  void wait(const Warp& warp, std::uint32_t pending);

  /// Shared memory of the block of that rank.
  struct Place {
    std::uint32_t rank = 0;
    std::uint64_t offset = 0;
  };
  /// Ordinary code of `warp` loads or writes there; `fenced`: in a way that the async proxy sees.
  bool load(Warp& warp, int lane, Place place, std::uint64_t bytes);
  bool write(Warp& warp, int lane, Place place, std::uint64_t bytes, bool fenced);
  void fence_proxy(const Warp& warp);
  /// Nothing for what is no shared memory of the cluster.
  std::optional<Place> place_of(const std::byte* at) const;

 private:
  struct Mbarrier {
    std::size_t entry = 0;  // in clocks
    std::uint32_t phases = 0;
    bool valid = true;
    Clock pending, known;  // what arrivals brought; what those who wait get to know
    Place place;
    std::size_t warp = 0;  // that initialised it, when
    std::uint32_t time = 0;
    std::uint32_t pc = 0;
  };
  /// The last product of a warpgroup that read a box.
  struct Read {
    std::uint32_t warpgroup = 0;
    std::uint32_t group = 0;  // of those that wgmma.commit_group closes
    std::uint32_t pc = 0;
    std::uint32_t waited[4] = {};  // when its warps had waited for it; 0: not yet
  };
  /// The last load of a warp from a box.
  struct Load {
    std::size_t warp = 0;  // in clocks
    std::uint32_t time = 0, pc = 0;
  };
  struct Box {
    std::uint64_t first = 0, count = 0;  // chunks; count 0: nothing any more
    BoxShape shape;
    std::size_t entry = 0;    // of the mbarrier, and which of its phases
    std::uint32_t phase = 0;  // ends when the box is full
    std::uint64_t mbarrier = 0;
    std::uint32_t pc = 0;
    // Of st.async: its bytes of one chunk.
    bool some = false;
    std::uint64_t begin = 0, end = 0;
    std::vector<Read> reads;
    std::vector<Load> loads;

    bool holds(std::uint64_t offset, std::uint64_t bytes) const {
      return !some || (offset < end && begin < offset + bytes);
    }
    std::string_view filler() const { return some ? "asynchronous store" : "copy"; }
  };
  /// The last ordinary store to a chunk.
  struct Write {
    std::uint32_t time = 0;  // 0: never
    std::uint32_t warp = 0;  // in clocks
  };
  /// What a copy out of shared memory takes.
  struct Source {
    std::uint64_t chunks = 0;  // of it that were not overwritten yet
    std::size_t warp = 0;      // in clocks
    int lane = 0;
    std::uint32_t group = 0;  // of its thread's
    std::uint32_t pc = 0;
    std::uint32_t waited = 0;  // when its thread had waited for it; 0: not yet
    // Where the copy completes on an mbarrier: that, and the phase that ends then.
    std::optional<std::size_t> entry;
    std::uint32_t phase = 0;
  };
  static constexpr std::uint64_t chunk = 16;  // bytes
  /// Of a block.
  struct Shared {
    std::vector<std::uint32_t> box;     // of each chunk: 1 + its index; 0: none
    std::vector<std::uint32_t> filled;  // the same, whatever was stored there since
    std::vector<Write> written;
    std::vector<Box> boxes;
    std::vector<std::uint32_t> free_boxes;  // as in `box`
    std::vector<std::uint32_t> source;      // of each chunk, as `box`: who takes it
    std::vector<Source> sources;
  };
  /// Everybody sees it.
  static constexpr Write fenced_write{1, ~std::uint32_t{0}};

  std::size_t entry(const Warp& warp) const;
  static std::size_t thread(std::size_t warp, int lane) {
    return 32 * warp + static_cast<std::size_t>(lane);
  }
  Clock& clock(const Warp& warp) { return clocks_[entry(warp)]; }
  Clock& at(const Warp& warp, Meeting meeting);
  bool check_chunk(Warp& warp, const TileOperand& operand, std::uint64_t address, bool& any);
  bool check_rows(Warp& warp, const TileOperand& operand, std::uint64_t first, std::uint64_t last);
  bool check_start(Warp& warp, const TileOperand& operand);
  bool in_tensor_box(const Warp& warp, std::uint64_t address) const;
  bool known_to_warpgroup(const Warp& warp, const Box& box);
  bool may_overwrite(Warp& warp, int lane, std::uint32_t rank, const Box& box);
  bool is_full(Warp& warp, int lane, const Box& box, std::uint64_t offset, std::string_view what);
  bool fenced(const Write& write) const {
    return write.warp == fenced_write.warp || fenced_[write.warp] >= write.time;
  }
  std::uint32_t new_box(Shared& shared);
  void drop(Shared& shared, std::uint32_t index);
  void keep_source(Source source, Shared& shared, std::uint64_t first);
  bool free_source(Warp& warp, int lane, Shared& shared, std::uint64_t at);

  Cluster& cluster_;
  std::size_t warps_per_block_;
  std::vector<Clock> clocks_;  // of warps
  std::vector<Clock> meetings_;
  std::unordered_map<const std::byte*, Mbarrier> mbarriers_;
  std::size_t entries_ = 0;             // in use
  std::vector<std::uint32_t> commits_;  // of warps
  std::vector<std::uint32_t> copies_;   // groups of copies, of threads
  std::vector<Shared> shared_;          // of blocks
  Clock fenced_;                        // what is known to those who have fenced
};

}  // namespace tartan::inline TARTAN_ABI::emulator
