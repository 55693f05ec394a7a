// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/shadow.h - who accessed memory last, byte for byte.
//
// Memory is cut into pages, pages into cells. A cell keeps its last write, and of each warp the
// last reads since then, with the lanes that did them. Behind a strong write (an atomic, a bulk
// reduction) it also keeps the accesses before it with which others may race that do not with this
// one: weak ones, and strong writes of narrower scope. Strong writes at the scope of the GPU never
// race with each other, so they have a list of their own. The cells of a page are as large as the
// smallest access to it so far, at most 16 bytes: whoever reads and writes vectors has few of them.
//
// A page that a copy has written as a whole, and that products alone have read since, has no cells:
// one write, and of each product a bit for each 16 bytes that it reads.
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
  /// Strong at the scope of the GPU.
  bool wide() const { return strength() == 3; }
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
  static constexpr int page_shift = 10;
  static constexpr std::uint64_t page_bytes = 1 << page_shift;
  static constexpr std::uint64_t chunk_bytes = page_bytes / 64;

  /// Of a cell, at most so many warps' reads are remembered: all the grid may read it.
  explicit Shadow(std::uint32_t most_readers) : most_readers_(most_readers) {}

  /// Nobody has accessed anything.
  void clear();
  /// Nobody has accessed those bytes: they are a new piece of memory.
  void forget(std::uint64_t address, std::uint64_t bytes);

  /// An access of `now` to any number of bytes; a read may be that of several lanes of the warp.
  /// judge.unordered(past, cell's address, wrote) hears each past access that is not ordered: of
  /// writes judge.after_write(past) says that, of reads judge.after_read(past), unless
  /// judge.settled(past, wrote) says it for all lanes of a warp. Of reads by two clusters that
  /// judge.strangers(warp, warp) are never ordered, those of one warp each do: who writes is a
  /// stranger to one of them. judge.knows(past): it happens before now, strong or not.
  template <typename Judge>
  void read(std::uint64_t address, std::uint64_t bytes, const Past& now, std::uint32_t lanes,
            Judge& judge);
  template <typename Judge>
  void write(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge);
  /// A weak read of those chunks of page number `page` that have a bit in `chunks`. Whether
  /// somebody has written any of them.
  template <typename Judge>
  bool read_chunks(std::uint64_t page, std::uint64_t chunks, const Past& now, Judge& judge);
  /// Who wrote the byte last; time 0: nobody.
  Past last_write(std::uint64_t address);
  /// Somebody who has read the byte since; time 0: nobody.
  Past some_read(std::uint64_t address);

 private:
  struct Cell {
    Past written;              // the last one that is no wide one
    std::uint32_t wides = 0;   // strong writes at the scope of the GPU since: index into records_
    std::uint32_t others = 0;  // reads, and writes with strong ones behind them; 0: there are none
  };
  /// The last read or strong write of some lanes of a warp.
  struct Record {
    Past past;
    std::uint32_t lanes = 0, next = 0;
    bool wrote = false;
  };
  struct ChunkReads {
    Past past;
    std::uint64_t chunks = 0;
  };
  struct Page {
    std::uint32_t generation = 0;
    int shift = 4;       // cells of 2^shift bytes
    bool whole = false;  // it has no cells, but:
    Past written;
    std::vector<ChunkReads> reads;
    std::vector<Cell> cells;
  };
  static constexpr std::size_t cached = 256;
  static constexpr int most_kept = 16;  // narrow strong writes of a cell

  Page* find(std::uint64_t number);
  /// The page, up to date.
  Page& page(std::uint64_t number);
  /// The same with cells that fit the access.
  Page& open(std::uint64_t address, std::uint64_t bytes);
  /// Calls body(cell, its address) for the cells of those bytes.
  template <typename Body>
  void each_cell(std::uint64_t address, std::uint64_t bytes, Body&& body);
  void cut(Page& page);
  void refine(Page& page, int shift);
  std::uint32_t new_record(const Record& record);
  std::uint32_t copy_list(std::uint32_t list);
  void drop_list(std::uint32_t& list);
  /// Takes the record out of the list, and returns its place in front of the next one.
  void drop(std::uint32_t* place);
  template <typename Judge>
  void keep(Cell& cell, bool write, Judge& judge);
  template <typename Judge>
  void judge_list(std::uint32_t list, std::uint64_t place, bool writes_alone, Judge& judge);
  template <typename Judge>
  void judge_write(const Cell& cell, std::uint64_t place, bool wide, Judge& judge);
  template <typename Judge>
  void note_wide(Cell& cell, const Past& now, Judge& judge);
  template <typename Judge>
  void write_cells(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge);
  template <typename Judge>
  void write_page(std::uint64_t number, const Past& now, Judge& judge);
  static void note_read(Page& page, std::uint64_t chunks, const Past& now);
  /// Calls judge.unordered for each chunk.
  template <typename Judge>
  static void report(const Past& past, std::uint64_t page, std::uint64_t chunks, bool wrote,
                     Judge& judge);

  std::unordered_map<std::uint64_t, Page> pages_;
  struct Recent {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };
  std::array<Recent, cached> recent_;
  std::uint32_t most_readers_;
  std::vector<Record> records_{1};
  std::uint32_t free_ = 0;
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
void Shadow::judge_list(std::uint32_t list, std::uint64_t place, bool writes_alone, Judge& judge) {
  for (std::uint32_t at = list; at; at = records_[at].next) {
    const Record& record = records_[at];
    if ((writes_alone && !record.wrote) || judge.settled(record.past, record.wrote)) continue;
    for (std::uint32_t m = record.lanes; m; m &= m - 1) {
      Past past = record.past;
      past.deed = past.deed.of_lane(static_cast<std::uint32_t>(std::countr_zero(m)));
      const bool ordered = record.wrote ? judge.after_write(past) : judge.after_read(past);
      if (!ordered) judge.unordered(past, place, record.wrote);
    }
  }
}

template <typename Judge>
void Shadow::read(std::uint64_t address, std::uint64_t bytes, const Past& now, std::uint32_t lanes,
                  Judge& judge) {
  each_cell(address, bytes, [&](Cell& cell, std::uint64_t place) {
    if (cell.written.time && !judge.after_write(cell.written))
      judge.unordered(cell.written, place, true);
    if (cell.wides && !now.deed.wide()) judge_list(cell.wides, place, true, judge);
    if (!cell.others) {
      cell.others = new_record({.past = now, .lanes = lanes});
      return;
    }
    judge_list(cell.others, place, true, judge);
    std::uint32_t same = 0, old = 0, warps = 0;  // same: to be added to; old: to be replaced
    bool strangers = false;                      // among those who read it
    const std::uint32_t head_warp = records_[cell.others].past.warp;
    for (std::uint32_t* link = &cell.others; *link;) {
      Record& record = records_[*link];
      if (!record.wrote && record.past.warp == now.warp) {
        const bool alike = record.past.deed.strength() == now.deed.strength();
        if (alike && record.past.time == now.time) same = *link;
        else if (alike || !now.deed.strength()) record.lanes &= ~lanes;
        if (!record.lanes && (same || old)) {
          drop(link);
          continue;
        }
        if (!record.lanes) old = *link;
      }
      strangers |= judge.strangers(record.past.warp, head_warp);
      ++warps;
      link = &record.next;
    }
    if (same) records_[same].lanes |= lanes;
    else if (old) records_[old].past = now, records_[old].lanes = lanes;
    else if (warps < most_readers_ && !strangers)
      cell.others = new_record({.past = now, .lanes = lanes, .next = cell.others});
  });
}

template <typename Judge>
bool Shadow::read_chunks(std::uint64_t number, std::uint64_t chunks, const Past& now,
                         Judge& judge) {
  Page& here = page(number);
  bool any = false;
  if (!here.whole) {
    for (std::uint64_t m = chunks; m; m &= m - 1) {
      const std::uint64_t address =
          number * page_bytes + chunk_bytes * static_cast<std::uint64_t>(std::countr_zero(m));
      any = any || last_write(address).time != 0;
      read(address, chunk_bytes, now, 1u << now.deed.lane(), judge);
    }
    return any;
  }
  if (here.written.time && !judge.after_write(here.written))
    report(here.written, number, chunks, true, judge);
  note_read(here, chunks, now);
  return here.written.time != 0;
}

template <typename Judge>
void Shadow::report(const Past& past, std::uint64_t page, std::uint64_t chunks, bool wrote,
                    Judge& judge) {
  for (std::uint64_t m = chunks; m; m &= m - 1) {
    const auto chunk = static_cast<std::uint64_t>(std::countr_zero(m));
    judge.unordered(past, page * page_bytes + chunk * chunk_bytes, wrote);
  }
}

template <typename Judge>
void Shadow::judge_write(const Cell& cell, std::uint64_t place, bool wide, Judge& judge) {
  if (cell.written.time && !judge.after_write(cell.written))
    judge.unordered(cell.written, place, true);
  if (cell.wides && !wide) judge_list(cell.wides, place, false, judge);
  if (cell.others) judge_list(cell.others, place, false, judge);
}

// In front of a strong write: drops strong reads that happen before it and a narrow write that it
// replaces, and keeps the last write with `write`. Of strong ones the last warps' are kept; there
// is at most one weak write, which may race with whatever comes, and it stays.
template <typename Judge>
void Shadow::keep(Cell& cell, bool write, Judge& judge) {
  const std::uint32_t bit = 1u << cell.written.deed.lane();
  const auto alike = [&](const Record& record) {
    return write && record.wrote && record.past.warp == cell.written.warp &&
           record.past.deed.strength() == cell.written.deed.strength();
  };
  int kept = 0;
  for (std::uint32_t* link = &cell.others; *link;) {
    Record& record = records_[*link];
    const bool strong = record.past.deed.strength() != 0;
    if (alike(record)) record.lanes &= ~bit;
    const bool goes = record.wrote ? !record.lanes || (strong && ++kept >= most_kept)
                                   : strong && judge.all_ordered(record.past);
    if (goes) drop(link);
    else link = &records_[*link].next;
  }
  if (!write) return;
  if (Record& head = records_[cell.others];
      cell.others && alike(head) && head.past.time == cell.written.time) {
    head.past.deed = cell.written.deed;
    head.lanes |= bit;
    return;
  }
  cell.others =
      new_record({.past = cell.written, .lanes = bit, .next = cell.others, .wrote = true});
}

// Of those before it, it replaces its own and those that happen before it.
template <typename Judge>
void Shadow::note_wide(Cell& cell, const Past& now, Judge& judge) {
  const std::uint32_t bit = 1u << now.deed.lane();
  Record& head = records_[cell.wides];
  if (cell.wides && head.past.warp == now.warp && head.past.time == now.time) {
    head.past.deed = now.deed;
    head.lanes |= bit;
    return;
  }
  std::uint32_t warps = 0;
  for (std::uint32_t* link = &cell.wides; *link;) {
    Record& record = records_[*link];
    if (record.past.warp == now.warp) record.lanes &= ~bit;
    if (!record.lanes || ++warps >= most_readers_ || judge.all_ordered(record.past)) drop(link);
    else link = &record.next;
  }
  cell.wides = new_record({.past = now, .lanes = bit, .next = cell.wides, .wrote = true});
}

template <typename Judge>
void Shadow::write_cells(std::uint64_t address, std::uint64_t bytes, const Past& now,
                         Judge& judge) {
  const bool strong = now.deed.strength() != 0, wide = now.deed.wide();
  each_cell(address, bytes, [&](Cell& cell, std::uint64_t place) {
    judge_write(cell, place, wide, judge);
    if (wide) {
      if (cell.others) keep(cell, false, judge);
      return note_wide(cell, now, judge);
    }
    if (strong) {
      keep(cell, cell.written.time && (!cell.written.deed.strength() || !judge.knows(cell.written)),
           judge);
    } else {
      if (cell.wides) drop_list(cell.wides);
      if (cell.others) drop_list(cell.others);
    }
    cell.written = now;
  });
}

template <typename Judge>
void Shadow::write_page(std::uint64_t number, const Past& now, Judge& judge) {
  Page& here = page(number);
  if (!here.whole) {
    each_cell(number * page_bytes, page_bytes, [&](Cell& cell, std::uint64_t place) {
      judge_write(cell, place, false, judge);
      if (cell.wides) drop_list(cell.wides);
      if (cell.others) drop_list(cell.others);
    });
  } else {
    constexpr std::uint64_t all = ~std::uint64_t{0};
    if (here.written.time && !judge.after_write(here.written))
      report(here.written, number, all, true, judge);
    for (const ChunkReads& each : here.reads)
      if (!judge.settled(each.past, false) && !judge.after_read(each.past))
        report(each.past, number, each.chunks, false, judge);
  }
  here.whole = true;
  here.reads.clear();
  here.written = now;
}

template <typename Judge>
void Shadow::write(std::uint64_t address, std::uint64_t bytes, const Past& now, Judge& judge) {
  while (bytes) {
    const std::uint64_t here = std::min(bytes, page_bytes - address % page_bytes);
    if (here == page_bytes && !now.deed.strength()) write_page(address >> page_shift, now, judge);
    else write_cells(address, here, now, judge);
    address += here;
    bytes -= here;
  }
}

}  // namespace tartan::inline TARTAN_ABI::emulator
