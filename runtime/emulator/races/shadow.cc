// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/shadow.h"

#include <algorithm>

namespace tartan::inline TARTAN_ABI::emulator {

void Shadow::clear() {
  ++generation_;
  reads_.resize(1);
  free_reads_ = 0;
}

Shadow::Page* Shadow::find(std::uint64_t number) {
  Recent& recent = recent_[number % cached];
  if (recent.number != number) {
    const auto found = pages_.find(number);
    if (found == pages_.end()) return nullptr;
    recent = {number, &found->second};
  }
  return recent.page;
}

Shadow::Page& Shadow::open(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t number = address >> page_shift;
  Page* page = find(number);
  if (!page) {
    page = &pages_[number];
    recent_[number % cached] = {number, page};
  }
  if (page->generation != generation_) {
    page->generation = generation_;
    page->cells.assign(page_bytes >> page->shift, {});
  }
  const std::uint64_t uneven = (address | bytes) & ((std::uint64_t{1} << page->shift) - 1);
  if (uneven) refine(*page, std::countr_zero(uneven));
  return *page;
}

void Shadow::refine(Page& page, int shift) {
  const int parts = 1 << (page.shift - shift);
  std::vector<Cell> cells;
  cells.reserve(page_bytes >> shift);
  for (const Cell& cell : page.cells)
    for (int part = 0; part < parts; ++part) {
      Cell& made = cells.emplace_back(cell);
      if (part == 0) continue;
      made.reads = 0;
      for (std::uint32_t at = cell.reads; at; at = reads_[at].next) {
        Read copy = reads_[at];
        copy.next = made.reads;
        made.reads = new_read(copy);
      }
    }
  page.cells = std::move(cells);
  page.shift = shift;
}

void Shadow::forget(std::uint64_t address, std::uint64_t bytes) {
  each_cell(address, bytes, [&](Cell& cell, std::uint64_t) {
    if (cell.reads) drop_reads(cell);
    cell = {};
  });
}

Past Shadow::last_write(std::uint64_t address) {
  const Page* const page = find(address >> page_shift);
  if (!page || page->generation != generation_) return {};
  return page->cells[(address & (page_bytes - 1)) >> page->shift].written;
}

std::uint32_t Shadow::new_read(const Read& read) {
  if (!free_reads_) {
    reads_.push_back(read);
    return static_cast<std::uint32_t>(reads_.size() - 1);
  }
  const std::uint32_t at = free_reads_;
  free_reads_ = reads_[at].next;
  reads_[at] = read;
  return at;
}

void Shadow::drop_reads(Cell& cell) {
  std::uint32_t last = cell.reads;
  while (reads_[last].next) last = reads_[last].next;
  reads_[last].next = free_reads_;
  free_reads_ = cell.reads;
  cell.reads = 0;
}

// In front of a strong write: drops what it replaces, and keeps the last write with `write`.
void Shadow::keep(Cell& cell, bool write) {
  std::uint32_t* from = &cell.reads;
  int kept = 0;
  while (const std::uint32_t at = *from) {
    Read& read = reads_[at];
    const bool same = write && read.wrote && read.past.warp == cell.written.warp &&
                      read.past.deed.lane() == cell.written.deed.lane() &&
                      read.past.deed.strength() == cell.written.deed.strength();
    const bool goes = read.wrote ? same || ++kept >= most_kept : read.past.deed.strength() != 0;
    if (!goes) {
      from = &read.next;
      continue;
    }
    *from = read.next;
    read.next = free_reads_;
    free_reads_ = at;
  }
  if (!write) return;
  const std::uint32_t made = new_read({.past = cell.written,
                                       .lanes = 1u << cell.written.deed.lane(),
                                       .next = cell.reads,
                                       .wrote = true});
  cell.reads = made;
}

}  // namespace tartan::inline TARTAN_ABI::emulator
