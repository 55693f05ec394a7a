// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/shadow.h - who accessed memory last, byte for byte.
//
// Memory is cut into pages, pages into units as large as the smallest access to the page so far, at
// most 16 bytes, and units are grouped in blocks of 64. A block has tracks, one for each warp and
// time (tracks.h), until somebody accesses it by a strong operation or in very many ways: then it
// has cells, one for each unit (cells.h).
//
// Both tell a judge of past accesses:
//   judge.settled(past, wrote)   the access is ordered behind it whatever its lane was
//   judge.both_strong(past)      both are strong, and reach each other
//   judge.reach(past, past)      the same of two past ones
//   judge.extent(), judge.continues(), judge.observes()
//                                of a strong access: its element, and whether it goes on from what
//                                is there, and gives that
//   judge.after_write(past), judge.after_read(past)
//                                the same of the lane that past names
//   judge.unordered(past, address of the unit, wrote)
//                                hears each that is not ordered
//   judge.own()                  the warp whose lanes access: each is ordered behind itself
//   judge.strangers(warp, warp)  never ordered, being of two clusters. Of reads by two of them,
//                                those of one warp each do: who writes is a stranger to one
//   judge.knows(past), judge.all_ordered(past)
//                                it happens before now, strong or not
//   judge.turn(group)            what follows is about an access of those lanes
//   judge.element_bytes(bytes), judge.element(address)
//                                and, one after another, to those elements
//   judge.pass(lanes)            their accesses are ordered
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/races/cells.h"
#include "runtime/emulator/races/tracks.h"
#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// Lanes that access the same place.
struct LaneGroup {
  std::uint32_t lanes;
  std::uint64_t address;
};

class Shadow {
 public:
  static constexpr int page_shift = 10;
  static constexpr std::uint64_t page_bytes = 1 << page_shift;
  static constexpr std::uint64_t chunk_bytes = page_bytes / 64;

  /// Of a unit, at most so many warps' reads are remembered: all the grid may read it.
  explicit Shadow(std::uint32_t most_readers) : tracks_(most_readers), cells_(most_readers) {}

  /// Nobody has accessed anything.
  void clear();
  /// Nobody has accessed those bytes: they are a new piece of memory.
  void forget(std::uint64_t address, std::uint64_t bytes);

  /// An access to any number of bytes, by one lane or asynchronous.
  template <typename Judge>
  void read(std::uint64_t address, std::uint64_t bytes, const Past& now, std::uint32_t lanes,
            Judge& judge);
  template <typename Judge>
  void write(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge);
  /// What lanes of a warp access by one instruction. A group that writes is a lane.
  template <typename Judge>
  void access(std::span<const LaneGroup> groups, std::uint64_t bytes, const Past& now, bool writes,
              Judge& judge);
  /// A weak read of those chunks of page number `page` that have a bit in `chunks`. Whether
  /// somebody has written any of them.
  template <typename Judge>
  bool read_chunks(std::uint64_t page, std::uint64_t chunks, const Past& now, Judge& judge);
  /// Who wrote the byte last; time 0: nobody.
  Past last_write(std::uint64_t address);
  /// Somebody who has read the byte since; time 0: nobody.
  Past some_read(std::uint64_t address);

 private:
  struct Block {
    TrackedBlock tracks;
    std::uint32_t cells = 0;  // place in cells_of_blocks_; 0: it has tracks
  };
  using BlockCells = std::array<Cell, 64>;
  struct Page {
    std::uint32_t generation = 0;
    int shift = 4;  // units of 2^shift bytes
    std::vector<Block> blocks;
  };
  static constexpr std::size_t cached = 256;
  static constexpr std::uint32_t most_tracks = 64;  // of a block

  static std::uint64_t block_bytes(const Page& page) { return std::uint64_t{64} << page.shift; }
  static std::uint64_t ones(std::uint64_t count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  }
  Page* find(std::uint64_t number);
  /// The page, up to date.
  Page& page(std::uint64_t number);
  /// The same with units of at most 2^shift bytes.
  Page& open(std::uint64_t number, int shift);
  void refine(Page& page, int shift);
  Block& block(Page& page, std::uint64_t address) {
    return page.blocks[(address & (page_bytes - 1)) >> (page.shift + 6)];
  }
  BlockCells& cells(const Block& block) { return cells_of_blocks_[block.cells]; }
  BlockCells& cut(Block& block);
  /// The cell of exactly those bytes, if there is one.
  Cell* find_cell(std::uint64_t address, std::uint64_t bytes);
  std::uint32_t new_cells();
  /// Calls body(page, block, its address, units) for the blocks of those bytes.
  template <typename Body>
  void each_block(std::uint64_t address, std::uint64_t bytes, Body&& body);
  /// Calls body(cell, its address).
  template <typename Body>
  void each_cell(BlockCells& cells, std::uint64_t units, std::uint64_t base, int shift,
                 Body&& body);
  template <typename Judge>
  void read_units(const Page& page, Block& block, const LaneUnits& access, std::uint64_t base,
                  const Past& now, Judge& judge);
  template <typename Judge>
  void write_units(const Page& page, Block& block, std::uint64_t units, std::uint64_t base,
                   const Past& now, Judge& judge);
  template <typename Judge>
  void access_group(const LaneGroup& group, std::uint64_t bytes, const Past& now, bool writes,
                    Judge& judge);
  template <typename Judge>
  void access_block(Page& page, std::span<const LaneGroup> groups, std::uint64_t bytes,
                    const Past& now, bool writes, Judge& judge);

  std::unordered_map<std::uint64_t, Page> pages_;
  struct Recent {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };
  std::array<Recent, cached> recent_;
  Tracks tracks_;
  Cells cells_;
  std::deque<BlockCells> cells_of_blocks_{1};
  std::uint32_t used_cells_ = 1;
  std::uint32_t generation_ = 1;
};

inline Cell* Shadow::find_cell(std::uint64_t address, std::uint64_t bytes) {
  Page& here = page(address >> page_shift);
  const Block& block = this->block(here, address);
  const std::uint64_t size = std::uint64_t{1} << here.shift;
  if (!block.cells || bytes != size || address & (size - 1)) return nullptr;
  return &cells(block)[(address >> here.shift) & 63];
}

template <typename Body>
void Shadow::each_block(std::uint64_t address, std::uint64_t bytes, Body&& body) {
  // Nothing is behind the last address of all.
  for (std::uint64_t left = address + bytes < address ? 0 - address : bytes; left > 0;) {
    const std::uint64_t in_page = std::min(left, page_bytes - (address & (page_bytes - 1)));
    Page& page = open(address >> page_shift, std::countr_zero(address | in_page | chunk_bytes));
    const std::uint64_t size = block_bytes(page), base = address & ~(size - 1);
    const std::uint64_t here = std::min(in_page, size - (address - base));
    const std::uint64_t units = ones(here >> page.shift) << ((address - base) >> page.shift);
    body(page, block(page, address), base, units);
    address += here;
    left -= here;
  }
}

template <typename Body>
void Shadow::each_cell(BlockCells& cells, std::uint64_t units, std::uint64_t base, int shift,
                       Body&& body) {
  for (std::uint64_t m = units; m; m &= m - 1) {
    const auto unit = static_cast<std::uint64_t>(std::countr_zero(m));
    body(cells[unit], base + (unit << shift));
  }
}

template <typename Judge>
void Shadow::read_units(const Page& page, Block& block, const LaneUnits& access, std::uint64_t base,
                        const Past& now, Judge& judge) {
  if (!block.cells && (now.deed.strength() || block.tracks.count >= most_tracks)) cut(block);
  if (block.cells) {
    each_cell(cells(block), access.units, base, page.shift, [&](Cell& cell, std::uint64_t place) {
      cells_.read(cell, place, now, access.lanes, judge);
    });
    return;
  }
  tracks_.judge(block.tracks, access, false, base, page.shift, judge);
  tracks_.note_read(block.tracks, {&access, 1}, access.units, now, judge);
}

template <typename Judge>
void Shadow::write_units(const Page& page, Block& block, std::uint64_t units, std::uint64_t base,
                         const Past& now, Judge& judge) {
  if (!block.cells && (now.deed.strength() || block.tracks.count >= most_tracks)) cut(block);
  if (block.cells) {
    each_cell(cells(block), units, base, page.shift,
              [&](Cell& cell, std::uint64_t place) { cells_.write(cell, place, now, judge); });
    return;
  }
  const LaneUnits access{1u << now.deed.lane(), units};
  tracks_.judge(block.tracks, access, true, base, page.shift, judge);
  tracks_.note_write(block.tracks, {&access, 1}, units, now);
}

template <typename Judge>
void Shadow::read(std::uint64_t address, std::uint64_t bytes, const Past& now, std::uint32_t lanes,
                  Judge& judge) {
  if (Cell* const cell = find_cell(address, bytes))
    return cells_.read(*cell, address, now, lanes, judge);
  each_block(address, bytes,
             [&](const Page& page, Block& block, std::uint64_t base, std::uint64_t units) {
               read_units(page, block, {lanes, units}, base, now, judge);
             });
}

template <typename Judge>
void Shadow::write(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge) {
  if (Cell* const cell = find_cell(address, bytes)) return cells_.write(*cell, address, now, judge);
  each_block(address, bytes,
             [&](const Page& page, Block& block, std::uint64_t base, std::uint64_t units) {
               write_units(page, block, units, base, now, judge);
             });
}

template <typename Judge>
bool Shadow::read_chunks(std::uint64_t number, std::uint64_t chunks, const Past& now,
                         Judge& judge) {
  Page& here = page(number);
  const std::uint32_t lanes = 1u << now.deed.lane();
  if (here.shift == 4 && !here.blocks[0].cells) {
    const bool any = tracks_.written(here.blocks[0].tracks) & chunks;
    read_units(here, here.blocks[0], {lanes, chunks}, number * page_bytes, now, judge);
    return any;
  }
  bool any = false;
  for (std::uint64_t m = chunks; m; m &= m - 1) {
    const std::uint64_t address =
        number * page_bytes + chunk_bytes * static_cast<std::uint64_t>(std::countr_zero(m));
    any = any || last_write(address).time != 0;
    read(address, chunk_bytes, now, lanes, judge);
  }
  return any;
}

// The groups are in one block.
template <typename Judge>
void Shadow::access_block(Page& page, std::span<const LaneGroup> groups, std::uint64_t bytes,
                          const Past& now, bool writes, Judge& judge) {
  Block& block = this->block(page, groups[0].address);
  const std::uint64_t base = groups[0].address & ~(block_bytes(page) - 1);
  const std::uint64_t width = ones(bytes >> page.shift);
  std::array<LaneUnits, 32> run;
  std::uint64_t all = 0;
  std::uint32_t lanes = 0;
  bool alone = block.cells || block.tracks.count >= most_tracks;  // each for itself
  for (std::size_t i = 0; i < groups.size() && !alone; ++i) {
    run[i] = {groups[i].lanes, width << ((groups[i].address - base) >> page.shift)};
    alone = writes && all & run[i].units;
    all |= run[i].units;
    lanes |= groups[i].lanes;
  }
  const std::span<const LaneUnits> of_lanes(run.data(), groups.size());
  if (alone || !tracks_.ordered(block.tracks, of_lanes, all, writes, judge)) {
    for (const LaneGroup& group : groups) access_group(group, bytes, now, writes, judge);
    return;
  }
  judge.pass(lanes);
  if (writes) tracks_.note_write(block.tracks, of_lanes, all, now);
  else tracks_.note_read(block.tracks, of_lanes, all, now, judge);
}

template <typename Judge>
void Shadow::access_group(const LaneGroup& group, std::uint64_t bytes, const Past& now, bool writes,
                          Judge& judge) {
  judge.turn(group);
  Past of_group = now;
  of_group.deed = now.deed.of_lane(static_cast<std::uint32_t>(std::countr_zero(group.lanes)));
  // A strong access of a vector is one of each element.
  const std::uint64_t step = now.deed.strength() ? judge.element_bytes(bytes) : bytes;
  for (std::uint64_t done = 0; done < bytes; done += step) {
    const std::uint64_t at = group.address + done;
    judge.element(at);
    if (writes) write(at, step, of_group, judge);
    else read(at, step, of_group, group.lanes, judge);
  }
}

template <typename Judge>
void Shadow::access(std::span<const LaneGroup> groups, std::uint64_t bytes, const Past& now,
                    bool writes, Judge& judge) {
  std::uint64_t mixed = bytes | chunk_bytes;
  for (const LaneGroup& group : groups) mixed |= group.address;
  const int shift = std::countr_zero(mixed);
  if (now.deed.strength() || !std::has_single_bit(bytes) || bytes > 64 || mixed & (bytes - 1)) {
    for (const LaneGroup& group : groups) access_group(group, bytes, now, writes, judge);
    return;
  }
  for (std::size_t i = 0, end = 0; i < groups.size(); i = end) {
    Page& page = open(groups[i].address >> page_shift, shift);
    const int block_shift = page.shift + 6;
    const std::uint64_t number = groups[i].address >> block_shift;
    for (end = i + 1; end < groups.size() && groups[end].address >> block_shift == number;) ++end;
    access_block(page, groups.subspan(i, end - i), bytes, now, writes, judge);
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
