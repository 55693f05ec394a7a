// SPDX-License-Identifier: Apache-2.0
// Boxes and tiles in shared memory: whether those who fill and read them know enough of each other.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/cluster.h"
#include "runtime/emulator/matrix/wgmma.h"
#include "runtime/emulator/order.h"

namespace tartan::emulator {
namespace {

std::string swizzle_name(std::uint32_t span) {
  return span ? fmt::format("the swizzle of {} bytes", span) : "no swizzle";
}

}  // namespace

// ---- Copies.

// Whether a copy's thread knows that a box is full, and that all who read it have.
bool Order::may_overwrite(Warp& warp, int lane, std::uint32_t rank, const Box& box) {
  const Clock& mine = clock(warp);
  const auto overwrites = [&](std::string what) {
    warp.fail(
        "asynchronous-race"_rule,
        fmt::format("the copy overwrites shared memory at 0x{:x}, {}", box.first * chunk, what),
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
        over ? fmt::format("which wgmma.mma_async of line {} reads: that product was waited for, "
                           "but nothing tells this thread so; wait for the phase of an mbarrier "
                           "at which its warpgroup arrives behind wgmma.wait_group",
                           warp.block->line(read.pc))
             : fmt::format("which wgmma.mma_async of line {} may still be reading: no "
                           "wgmma.wait_group covers it yet",
                           warp.block->line(read.pc)));
  }
  for (const Load& load : box.loads)
    if (mine[rank * warps_per_block_ + load.warp] < load.time)
      return overwrites(
          fmt::format("from which warp {} loads on line {}: nothing tells this thread that it has; "
                      "wait for the phase of an mbarrier at which that warp arrives behind its "
                      "loads",
                      load.warp, warp.block->line(load.pc)));
  if (mine[box.entry] <= box.phase)
    return overwrites(
        fmt::format("which the copy of line {} fills: nothing tells this thread that phase {} of "
                    "mbarrier 0x{:x}, in which that copy completes, has ended",
                    warp.block->line(box.pc), box.phase, box.mbarrier));
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
    const std::uint32_t index = shared.box[at];
    if (!index) {
      ++at;
      continue;
    }
    const Box& box = shared.boxes[index - 1];
    if (!may_overwrite(warp, lane, place->rank, box)) return false;
    if (box.first == first && box.count == count) {
      same = index;
      break;
    }
    const std::uint64_t next = box.first + box.count;
    drop(shared, index);
    at = std::max(at + 1, next);
  }

  if (!same) {
    const auto free = std::ranges::find(shared.boxes, 0u, &Box::count);
    same = static_cast<std::uint32_t>(free - shared.boxes.begin()) + 1;
    if (free == shared.boxes.end()) shared.boxes.emplace_back();
    std::fill_n(shared.box.begin() + static_cast<std::ptrdiff_t>(first), count, same);
    std::fill_n(shared.written.begin() + static_cast<std::ptrdiff_t>(first), count, fenced_write);
  }
  Box& box = shared.boxes[same - 1];
  box.first = first;
  box.count = count;
  box.shape = shape;
  box.entry = barrier.entry;
  box.phase = barrier.phases;
  box.mbarrier = barrier.place.offset;
  box.pc = warp.pc - 1;
  box.reads.clear();
  box.loads.clear();
  return true;
}

// Its chunks belong to no box any more, but they were written.
void Order::drop(Shared& shared, std::uint32_t index) {
  Box& box = shared.boxes[index - 1];
  for (std::uint64_t at = box.first; at < box.first + box.count; ++at)
    if (shared.box[at] == index) shared.box[at] = 0;
  box.count = 0;
  box.reads.clear();
  box.loads.clear();
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
      warp.fail("asynchronous-race"_rule,
                fmt::format("the copy takes shared memory at 0x{:x}, which the copy of line {} "
                            "fills: this thread has not waited for mbarrier 0x{:x} to end phase {}",
                            at * chunk, warp.block->line(box.pc), box.mbarrier, box.phase),
                lane, at * chunk);
      return false;
    }
    if (shared.written[at] != proxy_fences_ + first_write) continue;
    warp.fail(
        "proxy-fence"_rule,
        fmt::format("the copy takes shared memory at 0x{:x}, where ordinary code stored: "
                    "fence.proxy.async is missing between the store and the barrier behind it",
                    at * chunk),
        lane, at * chunk);
    return false;
  }
  if (in_group) keep_source(warp, lane, shared, first, last);
  return true;
}

bool Order::load(Warp& warp, int lane, std::uint64_t offset) {
  Shared& shared = shared_[warp.block->rank()];
  const std::uint64_t at = offset / chunk;
  const std::uint32_t index = at < shared.box.size() ? shared.box[at] : 0;
  if (!index) return true;
  Box& box = shared.boxes[index - 1];
  const std::size_t mine = entry(warp);
  if (clocks_[mine][box.entry] <= box.phase) {
    warp.fail(
        "asynchronous-race"_rule,
        fmt::format("shared memory at 0x{:x} is in the box at 0x{:x} that the copy of line {} "
                    "fills: no thread of this warp has waited for mbarrier 0x{:x} to end phase "
                    "{} (of parity {}), or heard from one that has",
                    offset, box.first * chunk, warp.block->line(box.pc), box.mbarrier, box.phase,
                    box.phase % 2),
        lane, offset);
    return false;
  }
  auto load = std::ranges::find(box.loads, warp.index, &Load::warp);
  if (load == box.loads.end()) load = box.loads.insert(load, Load{.warp = warp.index});
  load->time = clocks_[mine][mine];
  load->pc = warp.pc - 1;
  return true;
}

bool Order::write(Warp& warp, int lane, std::uint32_t rank, std::uint64_t offset,
                  std::uint64_t bytes, bool fenced) {
  if (rank >= shared_.size()) return true;
  Shared& shared = shared_[rank];
  for (std::uint64_t at = offset / chunk; at < (offset + bytes + chunk - 1) / chunk; ++at) {
    if (at >= shared.box.size()) return true;
    if (!free_source(warp, lane, shared, at)) return false;
    shared.box[at] = 0;
    shared.written[at] = fenced ? fenced_write : proxy_fences_ + first_write;
  }
  return true;
}

// ---- Products.

// Looks at two rows of every eight, so at every 8x8 matrix of the tile.
bool Order::read(Warp& warp, const TileOperand& operand) {
  if (!check_start(warp, operand)) return false;
  bool any = false;
  const MatrixDescriptor& descriptor = *operand.descriptor;
  const auto address = [&](int x, int k) {
    return descriptor.address(operand.mn_major, operand.element_bits, x, k);
  };
  const auto look = [&](std::uint64_t first, std::uint64_t last) {
    return check_chunk(warp, operand, first, any) && check_chunk(warp, operand, last, any) &&
           check_rows(warp, operand, first, last);
  };
  for (int x = 0; x < operand.outer; x += 8) {
    if (!operand.mn_major) {
      if (!look(address(x, 0), address(x + 7, 0))) return false;
    } else {
      for (int k = 0; k < operand.k; k += 8)
        if (!look(address(x, k), address(x, k + 7))) return false;
    }
  }
  if (any || mbarriers_.empty()) return true;
  const std::uint64_t start = address(0, 0);
  warp.fail("unwritten-tile"_rule,
            fmt::format("{} at shared address 0x{:x} was never written: neither a copy nor a store "
                        "has been there; the wait in front of this product let it pass too early",
                        operand.name, start),
            0, start);
  return false;
}

bool Order::in_tensor_box(const Warp& warp, std::uint64_t address) const {
  const Shared& shared = shared_[warp.block->rank()];
  const std::uint64_t at = address / chunk;
  const std::uint32_t index = at < shared.box.size() ? shared.box[at] : 0;
  return index && shared.boxes[index - 1].shape.tensor;
}

// Rows with a swizzle have no continuation: what lies behind belongs to the next row.
bool Order::check_start(Warp& warp, const TileOperand& operand) {
  const MatrixDescriptor& descriptor = *operand.descriptor;
  const auto width = static_cast<std::uint32_t>(descriptor.width);
  if (!width || operand.mn_major || operand.long_rows || !in_tensor_box(warp, descriptor.start))
    return true;
  const std::uint32_t inside = descriptor.start % width, bytes = 32;
  if (inside + bytes <= width) return true;
  warp.fail("matrix-descriptor"_rule,
            fmt::format("the descriptor of {} starts at 0x{:x}, {} bytes into a row of {}: the {} "
                        "bytes that the product takes of a row go beyond its end",
                        operand.name, descriptor.start, inside, width, bytes),
            0, descriptor.start);
  return false;
}

bool Order::known_to_warpgroup(const Warp& warp, const Box& box) {
  const std::size_t first = entry(warp) - warp.index % warps_of_warpgroup;
  for (std::size_t i = 0; i < warps_of_warpgroup; ++i)
    if (clocks_[first + i][box.entry] > box.phase) return true;
  return false;
}

bool Order::check_chunk(Warp& warp, const TileOperand& operand, std::uint64_t address, bool& any) {
  Shared& shared = shared_[warp.block->rank()];
  const std::uint64_t at = address / chunk;
  if (at >= shared.box.size()) return any = true;  // a fault that the product reports
  const std::uint32_t index = shared.box[at];
  if (!index) {
    any |= shared.written[at] != never;
    if (shared.written[at] != proxy_fences_ + first_write) return true;
    warp.fail(
        "proxy-fence"_rule,
        fmt::format("{} at shared address 0x{:x} was stored by ordinary code: "
                    "fence.proxy.async is missing between the store and the barrier behind it",
                    operand.name, at * chunk),
        0, at * chunk);
    return false;
  }
  any = true;
  Box& box = shared.boxes[index - 1];
  const auto width = static_cast<std::uint32_t>(operand.descriptor->width);
  if (box.shape.tensor && box.shape.span != width) {
    warp.fail("matrix-descriptor"_rule,
              fmt::format("the descriptor of {} says {}, the copy of line {} wrote the box at "
                          "0x{:x} with {}: make the descriptor's bits 62 and 63 and the tensor map "
                          "agree",
                          operand.name, swizzle_name(width), warp.block->line(box.pc),
                          box.first * chunk, swizzle_name(box.shape.span)),
              0, address);
    return false;
  }
  if (!known_to_warpgroup(warp, box)) {
    warp.fail("asynchronous-race"_rule,
              fmt::format("{} lies in the box at 0x{:x} that the copy of line {} fills: no thread "
                          "of the warpgroup has waited for mbarrier 0x{:x} to end phase {} (of "
                          "parity {})",
                          operand.name, box.first * chunk, warp.block->line(box.pc), box.mbarrier,
                          box.phase, box.phase % 2),
              0, address);
    return false;
  }
  constexpr auto of_warpgroup = static_cast<std::uint32_t>(warps_of_warpgroup);
  const std::uint32_t warpgroup = warp.index / of_warpgroup;
  auto read = std::ranges::find(box.reads, warpgroup, &Read::warpgroup);
  if (read == box.reads.end()) read = box.reads.insert(read, Read{});
  *read = {.warpgroup = warpgroup, .group = commits_[entry(warp)], .pc = warp.pc - 1};
  return true;
}

// Eight rows of one tile in boxes of two tensors: it starts between them.
bool Order::check_rows(Warp& warp, const TileOperand& operand, std::uint64_t first,
                       std::uint64_t last) {
  const Shared& shared = shared_[warp.block->rank()];
  if (last / chunk >= shared.box.size() || first / chunk >= shared.box.size()) return true;
  const std::uint32_t one = shared.box[first / chunk], other = shared.box[last / chunk];
  if (one == other || !one || !other) return true;
  const Box &a = shared.boxes[one - 1], &b = shared.boxes[other - 1];
  if (a.shape.source == b.shape.source) return true;
  warp.fail(
      "matrix-descriptor"_rule,
      fmt::format("the descriptor of {} starts at 0x{:x}: eight rows of one 8x8 matrix lie in "
                  "two boxes, the one at 0x{:x} and that of another tensor at 0x{:x}",
                  operand.name, operand.descriptor->start, a.first * chunk, b.first * chunk),
      0, operand.descriptor->start);
  return false;
}

}  // namespace tartan::emulator
