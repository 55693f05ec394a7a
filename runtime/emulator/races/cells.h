// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/cells.h - who accessed a piece of memory last, where some of the accesses
// were strong.
//
// A cell keeps its last write, and of each warp the last reads since then, with the lanes that did
// them. Behind a strong write (an atomic, a bulk reduction) it also keeps the accesses before it
// with which others may race that do not with this one: weak ones, and strong writes of narrower
// scope. Strong writes at the scope of the GPU never race with each other, so they have a list of
// their own.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "runtime/emulator/races/past.h"
#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI::emulator {

struct Cell {
  Past written;              // the last one that is no wide one
  std::uint32_t wides = 0;   // strong writes at the scope of the GPU since: a list
  std::uint32_t others = 0;  // reads, and writes with strong ones behind them; 0: there are none
};

/// What cells do, and their lists.
class Cells {
 public:
  /// Of a cell, at most so many warps' reads are remembered.
  explicit Cells(std::uint32_t most_readers) : most_readers_(most_readers) {}

  /// No cell is in use.
  void clear();
  /// An access of `now` to the cell at `place`. Judges: shadow.h.
  template <typename Judge>
  void read(Cell& cell, std::uint64_t place, const Past& now, std::uint32_t lanes, Judge& judge);
  template <typename Judge>
  void write(Cell& cell, std::uint64_t place, const Past& now, Judge& judge);
  /// Nobody has accessed it.
  void forget(Cell& cell);
  /// A read that is in no list yet, in front of the others.
  void add_read(Cell& cell, const Past& past, std::uint32_t lanes) {
    cell.others = new_record({.past = past, .lanes = lanes, .next = cell.others});
  }
  /// With lists of its own.
  Cell copy(const Cell& cell);
  Past last_write(const Cell& cell) const {
    return cell.wides ? records_[cell.wides].past : cell.written;
  }
  /// Somebody who has read it since; time 0: nobody.
  Past some_read(const Cell& cell) const;

 private:
  /// The last read or strong write of some lanes of a warp.
  struct Record {
    Past past;
    std::uint32_t lanes = 0, next = 0;
    bool wrote = false;
  };
  static constexpr int most_kept = 16;  // narrow strong writes of a cell

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

  std::uint32_t most_readers_;
  std::vector<Record> records_{1};
  std::uint32_t free_ = 0;
};

template <typename Judge>
void Cells::judge_list(std::uint32_t list, std::uint64_t place, bool writes_alone, Judge& judge) {
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
void Cells::judge_write(const Cell& cell, std::uint64_t place, bool wide, Judge& judge) {
  if (cell.written.time && !judge.after_write(cell.written))
    judge.unordered(cell.written, place, true);
  if (cell.wides && !wide) judge_list(cell.wides, place, false, judge);
  if (cell.others) judge_list(cell.others, place, false, judge);
}

// In front of a strong write: drops strong reads that happen before it and a narrow write that it
// replaces, and keeps the last write with `write`. Of strong ones the last warps' are kept; there
// is at most one weak write, which may race with whatever comes, and it stays.
template <typename Judge>
void Cells::keep(Cell& cell, bool write, Judge& judge) {
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
void Cells::note_wide(Cell& cell, const Past& now, Judge& judge) {
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
void Cells::read(Cell& cell, std::uint64_t place, const Past& now, std::uint32_t lanes,
                 Judge& judge) {
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
}

template <typename Judge>
void Cells::write(Cell& cell, std::uint64_t place, const Past& now, Judge& judge) {
  const bool strong = now.deed.strength() != 0, wide = now.deed.wide();
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
}

}  // namespace tartan::inline TARTAN_ABI::emulator
