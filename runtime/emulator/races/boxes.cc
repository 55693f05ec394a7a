// SPDX-License-Identifier: Apache-2.0
// Boxes in shared memory: whether those who fill, load, overwrite and copy them know enough of each
// other.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/races/order.h"

namespace tartan::inline TARTAN_ABI::emulator {

// Whether a copy's thread knows that a box is full, and that all who read it have.
bool Order::may_overwrite(Warp& warp, int lane, std::uint32_t rank, const Box& box) {
  const Clock& mine = clock(warp);
  const auto overwrites = [&](std::string what) {
    warp.fail("asynchronous-race"_rule,
              fmt::format("race: the TMA load overwrites shared memory at 0x{:x}, {}",
                          box.first * chunk, what),
              lane, box.first * chunk);
    return false;
  };
  for (const Read& read : box.reads) {
    bool ordered = false, over = false;
    for (std::uint32_t i = 0; i < warps_of_warpgroup; ++i) {
      const std::size_t reader = rank * warps_per_block_ + read.warpgroup * warps_of_warpgroup + i;
      over |= read.waited[i] != 0;
      ordered |= read.waited[i] != 0 && mine[reader] >= read.waited[i];
    }
    if (ordered) continue;
    return overwrites(
        over ? fmt::format("which wgmma.mma_async of line {} reads: it has completed, but that is "
                           "not ordered before this load; wait for an mbarrier phase at which its "
                           "warpgroup arrives after wgmma.wait_group",
                           warp.block->line(read.pc))
             : fmt::format("which wgmma.mma_async of line {} may still be reading: no "
                           "wgmma.wait_group covers it",
                           warp.block->line(read.pc)));
  }
  for (const Load& load : box.loads)
    if (mine[load.warp] < load.time)
      return overwrites(
          fmt::format("from which warp {} loads on line {}: the load is not ordered before this "
                      "copy; wait for an mbarrier phase at which that warp arrives after its loads",
                      load.warp % warps_per_block_, warp.block->line(load.pc)));
  if (mine[box.entry] <= box.phase)
    return overwrites(
        fmt::format("which the {0} of line {1} fills: this thread has not waited for phase {2} of "
                    "mbarrier 0x{3:x}, in which that {0} completes",
                    box.filler(), warp.block->line(box.pc), box.phase, box.mbarrier));
  return true;
}

bool Order::fill(Warp& warp, int lane, const std::byte* to, std::uint64_t bytes,
                 const std::byte* mbarrier, const BoxShape& shape) {
  if (!use(warp, lane, mbarrier)) return false;
  const auto place = place_of(to);
  if (!place || bytes == 0) return true;
  const std::uint64_t offset = place->offset;
  Shared& shared = shared_[place->rank];
  Mbarrier& barrier = mbarriers_[mbarrier];
  arrive(warp, mbarrier);
  const std::uint64_t first = offset / chunk, count = (bytes + chunk - 1) / chunk;

  for (std::uint64_t at = first; at < first + count; ++at)
    if (!free_source(warp, lane, shared, at)) return false;
  std::uint32_t same = 0;  // the box that was there before, if it is the same stretch
  for (std::uint64_t at = first; at < first + count;) {
    const std::uint32_t index = shared.filled[at];
    if (!index) {
      ++at;
      continue;
    }
    const Box& box = shared.boxes[index - 1];
    if (!may_overwrite(warp, lane, place->rank, box)) return false;
    if (!box.some && box.first == first && box.count == count) {
      same = index;
      break;
    }
    drop(shared, index);
    ++at;
  }

  if (!same) same = new_box(shared);
  std::fill_n(shared.box.begin() + static_cast<std::ptrdiff_t>(first), count, same);
  std::fill_n(shared.filled.begin() + static_cast<std::ptrdiff_t>(first), count, same);
  std::fill_n(shared.written.begin() + static_cast<std::ptrdiff_t>(first), count, fenced_write);
  Box& box = shared.boxes[same - 1];
  box.first = first;
  box.count = count;
  box.shape = shape;
  box.entry = barrier.entry;
  box.phase = barrier.phases;
  box.mbarrier = barrier.place.offset;
  box.pc = warp.pc - 1;
  box.some = false;
  box.reads.clear();
  box.loads.clear();
  return true;
}

// Words of one chunk may come from several threads, each with an mbarrier of its own: the last one
// is remembered.
bool Order::fill_some(Warp& warp, int lane, const std::byte* to, std::uint64_t bytes,
                      const std::byte* mbarrier) {
  if (!use(warp, lane, mbarrier)) return false;
  arrive(warp, mbarrier);
  const auto place = place_of(to);
  if (!place) return true;
  Shared& shared = shared_[place->rank];
  const Mbarrier& barrier = mbarriers_[mbarrier];
  const std::uint64_t offset = place->offset, at = offset / chunk;
  if (!free_source(warp, lane, shared, at)) return false;
  std::uint32_t index = shared.filled[at];
  if (index) {
    Box& box = shared.boxes[index - 1];
    if (box.some && box.entry == barrier.entry && box.phase == barrier.phases) {
      if (box.begin <= offset && offset + bytes <= box.end) return true;
      if (box.end == offset) return box.end += bytes, true;
    } else if (box.holds(offset, bytes) && !may_overwrite(warp, lane, place->rank, box)) {
      return false;
    }
    if (!box.some) index = 0;
  }
  if (!index) index = new_box(shared);
  shared.box[at] = shared.filled[at] = index;
  if (shared.written[at].time == 0) shared.written[at] = fenced_write;
  shared.boxes[index - 1] = {.first = at,
                             .count = 1,
                             .entry = barrier.entry,
                             .phase = barrier.phases,
                             .mbarrier = barrier.place.offset,
                             .pc = warp.pc - 1,
                             .some = true,
                             .begin = offset,
                             .end = offset + bytes};
  return true;
}

std::uint32_t Order::new_box(Shared& shared) {
  if (shared.free_boxes.empty()) {
    shared.boxes.emplace_back();
    return static_cast<std::uint32_t>(shared.boxes.size());
  }
  const std::uint32_t index = shared.free_boxes.back();
  shared.free_boxes.pop_back();
  return index;
}

// Its chunks belong to no box any more, but they were written.
void Order::drop(Shared& shared, std::uint32_t index) {
  Box& box = shared.boxes[index - 1];
  for (std::uint64_t at = box.first; at < box.first + box.count; ++at) {
    if (shared.box[at] == index) shared.box[at] = 0;
    if (shared.filled[at] == index) shared.filled[at] = 0;
  }
  box.count = 0;
  box.reads.clear();
  box.loads.clear();
  shared.free_boxes.push_back(index);
}

bool Order::take(Warp& warp, int lane, const std::byte* from, std::uint64_t bytes, bool in_group) {
  const auto place = place_of(from);
  if (!place) return true;
  Shared& shared = shared_[place->rank];
  const std::uint64_t first = place->offset / chunk,
                      last = (place->offset + bytes + chunk - 1) / chunk;
  for (std::uint64_t at = first; at < last; ++at) {
    if (const std::uint32_t index = shared.box[at]) {
      const Box& box = shared.boxes[index - 1];
      if (clock(warp)[box.entry] > box.phase) continue;
      warp.fail(
          "asynchronous-race"_rule,
          fmt::format("race: the copy reads shared memory at 0x{:x}, which the {} of line {} "
                      "fills: this thread has not waited for mbarrier 0x{:x} to end phase {}",
                      at * chunk, box.filler(), warp.block->line(box.pc), box.mbarrier, box.phase),
          lane, at * chunk);
      return false;
    }
    if (fenced(shared.written[at])) continue;
    warp.fail("proxy-fence"_rule,
              fmt::format("the copy reads shared memory at 0x{:x}, written by ordinary stores: "
                          "insert fence.proxy.async between the store and the following barrier",
                          at * chunk),
              lane, at * chunk);
    return false;
  }
  if (in_group) {
    const std::size_t mine = entry(warp);
    keep_source({.chunks = last - first,
                 .warp = mine,
                 .lane = lane,
                 .group = copies_[thread(mine, lane)],
                 .pc = warp.pc - 1},
                shared, first);
  }
  return true;
}

bool Order::has_boxes() const {
  return std::ranges::any_of(shared_, [](const Shared& one) { return !one.boxes.empty(); });
}

// Whether somebody has told `warp` that a box is full.
bool Order::is_full(Warp& warp, int lane, const Box& box, std::uint64_t offset,
                    std::string_view what) {
  if (clock(warp)[box.entry] > box.phase) return true;
  warp.fail("asynchronous-race"_rule,
            fmt::format("race: {} 0x{:x} is in the box at 0x{:x} that the {} of line {} fills: "
                        "this warp has not waited for mbarrier 0x{:x} to end phase {} (parity {}), "
                        "directly or through another warp",
                        what, offset, box.some ? box.begin : box.first * chunk, box.filler(),
                        warp.block->line(box.pc), box.mbarrier, box.phase, box.phase % 2),
            lane, offset);
  return false;
}

bool Order::load(Warp& warp, int lane, Place place, std::uint64_t bytes) {
  if (place.rank >= shared_.size()) return true;
  Shared& shared = shared_[place.rank];
  const std::uint64_t at = place.offset / chunk;
  const std::uint32_t index = at < shared.filled.size() ? shared.filled[at] : 0;
  if (!index) return true;
  Box& box = shared.boxes[index - 1];
  if (!box.holds(place.offset, bytes)) return true;
  if (!is_full(warp, lane, box, place.offset, "the load from shared memory at")) return false;
  const std::size_t mine = entry(warp);
  auto load = std::ranges::find(box.loads, mine, &Load::warp);
  if (load == box.loads.end()) load = box.loads.insert(load, Load{.warp = mine});
  load->time = clocks_[mine][mine];
  load->pc = warp.pc - 1;
  return true;
}

bool Order::write(Warp& warp, int lane, Place place, std::uint64_t bytes, bool fenced) {
  if (place.rank >= shared_.size()) return true;
  Shared& shared = shared_[place.rank];
  const std::size_t mine = entry(warp);
  const Write made{clocks_[mine][mine], static_cast<std::uint32_t>(mine)};
  const std::uint64_t offset = place.offset;
  for (std::uint64_t at = offset / chunk; at < (offset + bytes + chunk - 1) / chunk; ++at) {
    if (at >= shared.box.size()) return true;
    if (!free_source(warp, lane, shared, at)) return false;
    if (const std::uint32_t index = shared.box[at])
      if (const Box& box = shared.boxes[index - 1]; box.holds(offset, bytes)) {
        if (!is_full(warp, lane, box, offset, "the store to shared memory at")) return false;
        shared.box[at] = 0;
      }
    shared.written[at] = fenced ? fenced_write : made;
  }
  return true;
}

}  // namespace tartan::inline TARTAN_ABI::emulator
