// SPDX-License-Identifier: Apache-2.0
// Clocks, and where warps meet. What they say of shared memory is in tiles.cc.
#include "runtime/emulator/races/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "runtime/emulator/machine/cluster.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::size_t barriers = 16, memory_meeting = 0, cluster_meeting = 1, first_barrier = 2;

}  // namespace

void Clock::set(std::size_t i, std::uint32_t count) {
  if (i >= entries_.size()) entries_.resize(i + 1);
  entries_[i] = count;
}

void Clock::join(const Clock& other) {
  if (entries_.size() < other.entries_.size()) entries_.resize(other.entries_.size());
  for (std::size_t i = 0; i < other.entries_.size(); ++i)
    entries_[i] = std::max(entries_[i], other.entries_[i]);
}

Order::Order(Cluster& cluster)
    : cluster_(cluster),
      warps_per_block_(cluster.block(0).warps().size()),
      clocks_(cluster.size() * warps_per_block_),
      meetings_(first_barrier + cluster.size() * barriers),
      commits_(clocks_.size()),
      copies_(32 * clocks_.size()),
      shared_(cluster.size()) {}

void Order::start() {
  for (std::size_t i = 0; i < clocks_.size(); ++i) {
    clocks_[i].clear();
    clocks_[i].set(i, 1);
  }
  for (Clock& meeting : meetings_) meeting.clear();
  mbarriers_.clear();
  entries_ = clocks_.size();
  std::ranges::fill(commits_, 0);
  std::ranges::fill(copies_, 0);
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank) {
    const std::uint64_t chunks = (cluster_.block(rank).shared_bytes() + chunk - 1) / chunk;
    shared_[rank].box.assign(chunks, 0);
    shared_[rank].filled.assign(chunks, 0);
    shared_[rank].written.assign(chunks, {});
    shared_[rank].boxes.clear();
    shared_[rank].free_boxes.clear();
    shared_[rank].source.assign(chunks, 0);
    shared_[rank].sources.clear();
  }
  fenced_.clear();
}

std::optional<Order::Place> Order::place_of(const std::byte* at) const {
  for (std::uint32_t rank = 0; rank < cluster_.size(); ++rank) {
    Block& block = cluster_.block(rank);
    const std::byte* first = block.shared();
    if (!std::less<>()(at, first) && std::less<>()(at, first + block.shared_bytes()))
      return Place{rank, static_cast<std::uint64_t>(at - first)};
  }
  return std::nullopt;
}

std::size_t Order::entry(const Warp& warp) const {
  return warp.block->rank() * warps_per_block_ + warp.index;
}

Clock& Order::at(const Warp& warp, Meeting meeting) {
  switch (meeting.kind) {
    case Meeting::Kind::memory: return meetings_[memory_meeting];
    case Meeting::Kind::cluster: return meetings_[cluster_meeting];
    default: return meetings_[first_barrier + warp.block->rank() * barriers + meeting.barrier];
  }
}

void Order::release(const Warp& warp, Meeting meeting) {
  const std::size_t mine = entry(warp);
  at(warp, meeting).join(clocks_[mine]);
  clocks_[mine].set(mine, clocks_[mine][mine] + 1);
}

void Order::acquire(const Warp& warp, Meeting meeting) { clock(warp).join(at(warp, meeting)); }

void Order::fence_proxy(const Warp& warp) {
  const std::size_t mine = entry(warp);
  fenced_.join(clocks_[mine]);
  clocks_[mine].set(mine, clocks_[mine][mine] + 1);
}

// ---- mbarriers.

void Order::initialise(const Warp& warp, const std::byte* at) {
  const auto [found, fresh] = mbarriers_.try_emplace(at);
  Mbarrier made;
  // The next one in the same place goes on with its count of phases, at one of parity 0.
  made.entry = fresh ? entries_++ : found->second.entry;
  made.phases = (found->second.phases + 1) / 2 * 2;
  made.place = place_of(at).value_or(Place{});
  made.warp = entry(warp);
  made.time = clock(warp)[made.warp];
  made.pc = warp.pc - 1;
  found->second = std::move(made);
}

void Order::invalidate(const std::byte* at) {
  if (const auto found = mbarriers_.find(at); found != mbarriers_.end())
    found->second.valid = false;
}

bool Order::use(Warp& warp, int lane, const std::byte* at) {
  const auto found = mbarriers_.find(at);
  if (found == mbarriers_.end() || !found->second.valid) {
    const std::uint64_t offset = place_of(at).value_or(Place{}).offset;
    warp.fail(
        "mbarrier"_rule,
        fmt::format(
            "no mbarrier at shared address 0x{:x}: expected mbarrier.init before its first use",
            offset),
        lane, offset);
    return false;
  }
  const Mbarrier& barrier = found->second;
  if (clock(warp)[barrier.warp] >= barrier.time) return true;
  warp.fail(
      "mbarrier"_rule,
      fmt::format("use before initialization: the mbarrier at shared address 0x{:x}, initialized "
                  "by mbarrier.init on line {}, is used without ordering; insert {} in between",
                  barrier.place.offset, warp.block->line(barrier.pc),
                  barrier.place.rank == warp.block->rank() &&
                          barrier.warp / warps_per_block_ == barrier.place.rank
                      ? "bar.sync"
                      : "barrier.cluster.arrive and barrier.cluster.wait"),
      lane, barrier.place.offset);
  return false;
}

void Order::arrive(const Warp& warp, const std::byte* at) {
  const std::size_t mine = entry(warp);
  mbarriers_[at].pending.join(clocks_[mine]);
  clocks_[mine].set(mine, clocks_[mine][mine] + 1);
}

void Order::end_phase(const std::byte* at) {
  const auto found = mbarriers_.find(at);
  if (found == mbarriers_.end()) return;
  Mbarrier& barrier = found->second;
  ++barrier.phases;
  barrier.pending.set(barrier.entry, barrier.phases);
  barrier.known.join(barrier.pending);
}

void Order::waited(const Warp& warp, const std::byte* at) {
  const auto found = mbarriers_.find(at);
  if (found != mbarriers_.end()) clock(warp).join(found->second.known);
}

// ---- Groups of products.

void Order::commit(const Warp& warp) { ++commits_[entry(warp)]; }

void Order::wait(const Warp& warp, std::uint32_t pending) {
  const std::size_t mine = entry(warp);
  if (commits_[mine] <= pending) return;
  const std::uint32_t over = commits_[mine] - pending;  // groups that are
  constexpr auto of_warpgroup = static_cast<std::uint32_t>(warps_of_warpgroup);
  for (Box& box : shared_[warp.block->rank()].boxes)
    for (Read& read : box.reads) {
      std::uint32_t& waited = read.waited[warp.index % of_warpgroup];
      if (read.warpgroup == warp.index / of_warpgroup && read.group < over && waited == 0)
        waited = clocks_[mine][mine];
    }
}

}  // namespace tartan::inline TARTAN_ABI::emulator
