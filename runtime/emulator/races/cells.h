// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/cells.h - who accessed a piece of memory last, where some of the accesses
// were strong.
//
// A cell keeps its last weak write, of each warp the last reads since then, with the lanes that did
// them, and the strong writes since. Strong writes at the scope of the GPU do not race with each
// other, so they have a list of their own.
//
// Strong accesses of a cell each of which goes on from what the one before left are a chain: who
// knows of one that gave what it read knows of the writes before it in the chain (observation
// order, PTX ISA 9.0, 8.9.2). So the last block may reset the counter that the others incremented,
// though none of them told it anything. A reduction goes on, and gives nothing: it may as well have
// come first.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "runtime/emulator/races/past.h"
#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

struct Cell {
  Past written;              // the last weak one
  std::uint32_t wides = 0;   // strong writes at the scope of the GPU since: a list
  std::uint32_t others = 0;  // reads, and strong writes of narrower scope; 0: there are none
  std::uint32_t chain = 0;   // writes that did not read what was there
  bool mixed = false;        // some of the wide ones are to elements of other sizes
};

/// The element that a strong access is to, for a part of its bytes. Two are one operation after the
/// other only where they are to the same element (PTX ISA 9.0, 8.7.1).
struct Extent {
  std::uint32_t start = 0, bytes = 0;  // 0: elements of several sizes
  bool matches(const Extent& other) const {
    return !bytes || !other.bytes || (start == other.start && bytes == other.bytes);
  }
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
  Past last_write(const Cell& cell) const;
  /// Somebody who has read it since; time 0: nobody.
  Past some_read(const Cell& cell) const;

 private:
  /// The last read or strong write of some lanes of a warp.
  struct Record {
    Past past;
    std::uint32_t lanes = 0, next = 0;
    bool wrote = false;
    bool observes = false;      // it gave what it read
    std::uint32_t chain = 0;    // of a strong access: that of its cell then
    std::uint32_t arrival = 0;  // and when it came
    Extent extent = {};
  };
  static constexpr std::uint32_t most_kept = 16;  // narrow strong writes of a cell

  std::uint32_t new_record(const Record& record);
  std::uint32_t copy_list(std::uint32_t list);
  void drop_list(std::uint32_t& list);
  /// Takes the record out of the list, and returns its place in front of the next one.
  void drop(std::uint32_t* place);
  /// Wide accesses to one element race with each other nowhere.
  template <typename Judge>
  bool all_atomic(const Cell& cell, const Past& now, Judge& judge) const {
    return now.deed.wide() && !cell.mixed && records_[cell.wides].extent.matches(judge.extent());
  }
  template <typename Judge>
  void drop_reads(Cell& cell, Judge& judge);
  template <typename Judge>
  void judge_list(const Cell& cell, std::uint32_t list, std::uint64_t place, const Past& now,
                  bool writes_alone, Judge& judge);
  template <typename Judge>
  bool is_ordered(const Cell& cell, const Record& record, const Past& past, Judge& judge) const;
  template <typename Judge>
  bool observed(const Cell& cell, const Record& record, const Past& past, Judge& judge) const;
  template <typename Judge>
  void note_strong(Cell& cell, std::uint32_t& list, std::uint32_t most, const Past& now,
                   Judge& judge);

  std::uint32_t most_readers_;
  std::vector<Record> records_{1};
  std::uint32_t free_ = 0;
  std::uint32_t arrivals_ = 0;
};

// Whether somebody whom the accessor knows has read it, or what came of it, in its chain.
template <typename Judge>
bool Cells::observed(const Cell& cell, const Record& record, const Past& past, Judge& judge) const {
  for (const std::uint32_t list : {cell.wides, cell.others})
    for (std::uint32_t at = list; at; at = records_[at].next) {
      const Record& other = records_[at];
      if (!other.observes || other.chain != record.chain || other.arrival < record.arrival ||
          !judge.reach(past, other.past))
        continue;
      // Lanes of one instruction come one after another.
      const std::uint32_t lanes =
          &other == &record ? other.lanes & ~((2u << past.deed.lane()) - 1) : other.lanes;
      for (std::uint32_t m = lanes; m; m &= m - 1)
        if (judge.knows(other.past.of_lane(static_cast<std::uint32_t>(std::countr_zero(m)))))
          return true;
    }
  return false;
}

template <typename Judge>
bool Cells::is_ordered(const Cell& cell, const Record& record, const Past& past,
                       Judge& judge) const {
  if (!record.wrote) return judge.after_read(past);
  return judge.after_write(past) || (past.deed.strength() && observed(cell, record, past, judge));
}

template <typename Judge>
void Cells::judge_list(const Cell& cell, std::uint32_t list, std::uint64_t place, const Past& now,
                       bool writes_alone, Judge& judge) {
  for (std::uint32_t at = list; at; at = records_[at].next) {
    const Record& record = records_[at];
    if (writes_alone && !record.wrote) continue;
    const bool strong = now.deed.strength() && judge.both_strong(record.past) &&
                        record.extent.matches(judge.extent());
    if (strong || judge.settled(record.past, record.wrote)) continue;
    for (std::uint32_t m = record.lanes; m; m &= m - 1) {
      const Past past = record.past.of_lane(static_cast<std::uint32_t>(std::countr_zero(m)));
      if (!is_ordered(cell, record, past, judge)) judge.unordered(past, place, record.wrote);
    }
  }
}

// Strong reads that happen before a strong write: whoever is behind it is behind them.
template <typename Judge>
void Cells::drop_reads(Cell& cell, Judge& judge) {
  for (std::uint32_t* link = &cell.others; *link;) {
    const Record& record = records_[*link];
    if (!record.wrote && record.past.deed.strength() && judge.all_ordered(record.past)) drop(link);
    else link = &records_[*link].next;
  }
}

// Of strong writes before it, it replaces its own and those that happen before it.
template <typename Judge>
void Cells::note_strong(Cell& cell, std::uint32_t& list, std::uint32_t most, const Past& now,
                        Judge& judge) {
  const bool observes = judge.observes();
  if (!judge.continues()) ++cell.chain;
  const Record made{.past = now,
                    .lanes = 1u << now.deed.lane(),
                    .wrote = true,
                    .observes = observes,
                    .chain = cell.chain,
                    .arrival = ++arrivals_,
                    .extent = judge.extent()};
  const auto alike = [&](const Record& record) {
    return record.wrote && record.past.warp == now.warp &&
           record.past.deed.strength() == now.deed.strength();
  };
  cell.mixed |= list && !records_[list].extent.matches(made.extent);
  if (Record& head = records_[list]; list && alike(head) && head.past.time == now.time &&
                                     head.chain == made.chain && head.observes == observes &&
                                     head.extent.matches(made.extent)) {
    head.past.deed = now.deed;
    head.lanes |= made.lanes;
    head.arrival = made.arrival;
    return;
  }
  std::uint32_t writes = 0;
  for (std::uint32_t* link = &list; *link;) {
    Record& record = records_[*link];
    if (alike(record)) record.lanes &= ~made.lanes;
    const bool goes =
        record.wrote && (!record.lanes || ++writes >= most || judge.all_ordered(record.past));
    if (goes) drop(link);
    else link = &record.next;
  }
  const std::uint32_t next = list;
  list = new_record(made);
  records_[list].next = next;
}

template <typename Judge>
void Cells::read(Cell& cell, std::uint64_t place, const Past& now, std::uint32_t lanes,
                 Judge& judge) {
  if (cell.written.time && !judge.after_write(cell.written))
    judge.unordered(cell.written, place, true);
  if (cell.wides && !all_atomic(cell, now, judge))
    judge_list(cell, cell.wides, place, now, true, judge);
  const bool strong = now.deed.strength() != 0;
  const Record made{.past = now,
                    .lanes = lanes,
                    .observes = strong,
                    .chain = cell.chain,
                    .arrival = strong ? ++arrivals_ : 0,
                    .extent = strong ? judge.extent() : Extent{}};
  const auto put = [&](Record& record) {
    const std::uint32_t next = record.next;
    record = made;
    record.next = next;
  };
  if (!cell.others) {
    cell.others = new_record(made);
    return;
  }
  judge_list(cell, cell.others, place, now, true, judge);
  std::uint32_t same = 0, old = 0, warps = 0;  // same: to be added to; old: to be replaced
  bool strangers = false;                      // among those who read it
  const std::uint32_t head_warp = records_[cell.others].past.warp;
  for (std::uint32_t* link = &cell.others; *link;) {
    Record& record = records_[*link];
    if (!record.wrote && record.past.warp == now.warp) {
      const bool alike =
          record.past.deed.strength() == now.deed.strength() && record.extent.matches(made.extent);
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
  if (same) {
    records_[same].lanes |= lanes;
    records_[same].chain = made.chain;
    records_[same].arrival = made.arrival;
  } else if (old) {
    put(records_[old]);
  } else if (warps < most_readers_ && !strangers) {
    const std::uint32_t next = cell.others;
    cell.others = new_record(made);
    records_[cell.others].next = next;
  }
}

template <typename Judge>
void Cells::write(Cell& cell, std::uint64_t place, const Past& now, Judge& judge) {
  if (cell.written.time && !judge.after_write(cell.written))
    judge.unordered(cell.written, place, true);
  if (cell.wides && !all_atomic(cell, now, judge))
    judge_list(cell, cell.wides, place, now, false, judge);
  if (cell.others) judge_list(cell, cell.others, place, now, false, judge);
  if (!now.deed.strength()) {
    if (cell.wides) drop_list(cell.wides);
    if (cell.others) drop_list(cell.others);
    cell.written = now;
    cell.mixed = false;
    ++cell.chain;
    return;
  }
  if (cell.others) drop_reads(cell, judge);
  if (now.deed.wide()) note_strong(cell, cell.wides, most_readers_, now, judge);
  else note_strong(cell, cell.others, most_kept, now, judge);
}

}  // namespace tartan::TARTAN_ABI::emulator
