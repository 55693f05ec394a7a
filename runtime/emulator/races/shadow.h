// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/shadow.h - who accessed memory last, byte for byte.
//
// Memory is cut into pages, pages into cells. A cell keeps its last write, and of each warp the
// last reads since then, with the lanes that did them. Behind a strong write (an atomic, a bulk
// reduction) it also keeps the accesses before it with which others may race that do not with this
// one: weak ones, and strong writes that do not happen before it. The cells of a page are as large
// as the smallest access to it so far, at most 16 bytes: whoever reads and writes vectors has few
// of them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI::emulator {

/// What an access was, in 32 bits: the instruction, the lane, and how strong it was.
class Deed {
 public:
  static constexpr std::uint32_t most_instructions = 1u << 24;

  Deed() = default;
  /// `strength` 0: weak, else 1 + its Scope.
  Deed(std::uint32_t pc, std::uint32_t lane, std::uint32_t strength)
      : bits_(pc << 8 | lane << 3 | strength) {}
  std::uint32_t pc() const { return bits_ >> 8; }
  std::uint32_t lane() const { return bits_ >> 3 & 31; }
  std::uint32_t strength() const { return bits_ & 3; }
  /// All lanes of the warp did it together.
  bool collective() const { return bits_ & 4; }
  Deed together() const {
    Deed made = *this;
    made.bits_ |= 4;
    return made;
  }
  Deed of_lane(std::uint32_t lane) const {
    Deed made = *this;
    made.bits_ = (bits_ & ~(31u << 3)) | lane << 3;
    return made;
  }

 private:
  std::uint32_t bits_ = 0;
};

/// An access that was, as cells know it.
struct Past {
  std::uint32_t warp = 0, time = 0;  // as in Epoch; time 0: there was none
  Deed deed;
};

class Shadow {
 public:
  /// Of a cell, at most so many warps' reads are remembered: all the grid may read it.
  explicit Shadow(std::uint32_t most_readers) : most_readers_(most_readers) {}

  /// Nobody has accessed anything.
  void clear();
  /// Nobody has accessed those bytes: they are a new piece of memory.
  void forget(std::uint64_t address, std::uint64_t bytes);

  /// An access of `now` to any number of bytes. judge.unordered(past, cell's address, wrote) hears
  /// each past access that is not ordered: of writes judge.after_write(past) says that, of reads
  /// judge.after_read(past), unless judge.all_ordered(past) says it for all lanes of a warp. Of
  /// reads by two clusters that judge.strangers(warp, warp) are never ordered, those of one warp
  /// each do: who writes is a stranger to one of them. judge.knows(past): it happens before now,
  /// strong or not.
  template <typename Judge>
  void read(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge);
  template <typename Judge>
  void write(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge);
  /// Who wrote the byte last; time 0: nobody.
  Past last_write(std::uint64_t address);

 private:
  struct Cell {
    Past written;
    std::uint32_t reads = 0;  // index into reads_; 0: none
  };
  /// The last read of some lanes of a warp, or a write with a strong one behind it.
  struct Read {
    Past past;
    std::uint32_t lanes = 0, next = 0;
    bool wrote = false;
  };
  struct Page {
    std::uint32_t generation = 0;
    int shift = 4;  // cells of 2^shift bytes
    std::vector<Cell> cells;
  };
  static constexpr int page_shift = 10;
  static constexpr std::uint64_t page_bytes = 1 << page_shift;
  static constexpr std::size_t cached = 256;

  Page* find(std::uint64_t number);
  Page& open(std::uint64_t address, std::uint64_t bytes);
  /// Calls body(cell, its address) for the cells of those bytes.
  template <typename Body>
  void each_cell(std::uint64_t address, std::uint64_t bytes, Body&& body);
  void refine(Page& page, int shift);
  std::uint32_t new_read(const Read& read);
  void drop_reads(Cell& cell);
  void keep(Cell& cell, bool write);
  static constexpr int most_kept = 16;  // writes of a cell

  std::unordered_map<std::uint64_t, Page> pages_;
  struct Recent {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };
  std::array<Recent, cached> recent_;
  std::uint32_t most_readers_;
  std::vector<Read> reads_{1};
  std::uint32_t free_reads_ = 0;
  std::uint32_t generation_ = 1;
};

template <typename Body>
void Shadow::each_cell(std::uint64_t address, std::uint64_t bytes, Body&& body) {
  for (const std::uint64_t end = address + bytes; address < end;) {
    const std::uint64_t here = std::min(end, (address / page_bytes + 1) * page_bytes) - address;
    Page& page = open(address, here);
    Cell* cell = &page.cells[(address & (page_bytes - 1)) >> page.shift];
    const std::uint64_t step = std::uint64_t{1} << page.shift;
    for (Cell* const last = cell + (here >> page.shift); cell != last; ++cell, address += step)
      body(*cell, address);
  }
}

template <typename Judge>
void Shadow::read(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge) {
  const std::uint32_t bit = 1u << now.deed.lane();
  each_cell(address, bytes, [&](Cell& cell, std::uint64_t place) {
    if (cell.written.time && !judge.after_write(cell.written))
      judge.unordered(cell.written, place, true);
    std::uint32_t same = 0, old = 0;  // to be added to; of this lane alone, to be replaced
    std::uint32_t warps = 0;
    bool strangers = false;  // among those who read it
    for (std::uint32_t at = cell.reads; at; at = reads_[at].next, ++warps) {
      Read& read = reads_[at];
      if (read.wrote) {
        if (!judge.after_write(read.past)) judge.unordered(read.past, place, true);
        continue;
      }
      strangers |= judge.strangers(read.past.warp, reads_[cell.reads].past.warp);
      if (read.past.warp != now.warp) continue;
      if (read.past.time == now.time && read.past.deed.strength() == now.deed.strength()) {
        same = at;
        continue;
      }
      const bool covered = !now.deed.strength() || read.past.deed.strength() == now.deed.strength();
      if (!(read.lanes & bit) || !covered) continue;
      read.lanes &= ~bit;
      if (!read.lanes) old = at;
    }
    if (same) reads_[same].lanes |= bit;
    else if (old) reads_[old].past = now, reads_[old].lanes = bit;
    else if (warps < most_readers_ && !strangers)
      cell.reads = new_read({.past = now, .lanes = bit, .next = cell.reads});
  });
}

template <typename Judge>
void Shadow::write(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge) {
  const bool strong = now.deed.strength() != 0;
  each_cell(address, bytes, [&](Cell& cell, std::uint64_t place) {
    if (cell.written.time && !judge.after_write(cell.written))
      judge.unordered(cell.written, place, true);
    for (std::uint32_t at = cell.reads; at; at = reads_[at].next) {
      if (reads_[at].wrote) {
        if (!judge.after_write(reads_[at].past)) judge.unordered(reads_[at].past, place, true);
        continue;
      }
      if (judge.all_ordered(reads_[at].past)) continue;
      for (std::uint32_t m = reads_[at].lanes; m; m &= m - 1) {
        Past past = reads_[at].past;
        past.deed = past.deed.of_lane(static_cast<std::uint32_t>(std::countr_zero(m)));
        if (!judge.after_read(past)) judge.unordered(past, place, false);
      }
    }
    if (strong)
      keep(cell,
           cell.written.time && (!cell.written.deed.strength() || !judge.knows(cell.written)));
    else if (cell.reads) drop_reads(cell);
    cell.written = now;
  });
}

}  // namespace tartan::inline TARTAN_ABI::emulator
