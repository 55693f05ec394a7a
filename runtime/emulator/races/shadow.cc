// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/shadow.h"

#include <algorithm>

namespace tartan::inline TARTAN_ABI::emulator {

void Shadow::clear() {
  ++generation_;
  records_.resize(1);
  free_ = 0;
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

Shadow::Page& Shadow::page(std::uint64_t number) {
  Page* page = find(number);
  if (!page) {
    page = &pages_[number];
    recent_[number % cached] = {number, page};
  }
  if (page->generation != generation_) {
    page->generation = generation_;
    page->whole = true;
    page->written = {};
    page->reads.clear();
  }
  return *page;
}

Shadow::Page& Shadow::open(std::uint64_t address, std::uint64_t bytes) {
  Page& here = page(address >> page_shift);
  if (here.whole) cut(here);
  const std::uint64_t uneven = (address | bytes) & ((std::uint64_t{1} << here.shift) - 1);
  if (uneven) refine(here, std::countr_zero(uneven));
  return here;
}

// Into cells.
void Shadow::cut(Page& page) {
  page.whole = false;
  page.cells.assign(page_bytes >> page.shift, {.written = page.written});
  const std::uint64_t of_chunk = chunk_bytes >> page.shift;
  for (const ChunkReads& each : page.reads)
    for (std::uint64_t m = each.chunks; m; m &= m - 1) {
      const std::uint64_t first = of_chunk * static_cast<std::uint64_t>(std::countr_zero(m));
      for (std::uint64_t i = first; i < first + of_chunk; ++i)
        page.cells[i].others = new_record({.past = each.past,
                                           .lanes = 1u << each.past.deed.lane(),
                                           .next = page.cells[i].others});
    }
}

void Shadow::refine(Page& page, int shift) {
  const int parts = 1 << (page.shift - shift);
  std::vector<Cell> cells;
  cells.reserve(page_bytes >> shift);
  for (const Cell& cell : page.cells)
    for (int part = 0; part < parts; ++part) {
      Cell& made = cells.emplace_back(cell);
      if (part == 0) continue;
      made.wides = copy_list(cell.wides);
      made.others = copy_list(cell.others);
    }
  page.cells = std::move(cells);
  page.shift = shift;
}

void Shadow::forget(std::uint64_t address, std::uint64_t bytes) {
  each_cell(address, bytes, [&](Cell& cell, std::uint64_t) {
    if (cell.wides) drop_list(cell.wides);
    if (cell.others) drop_list(cell.others);
    cell = {};
  });
}

Past Shadow::last_write(std::uint64_t address) {
  const Page* const page = find(address >> page_shift);
  if (!page || page->generation != generation_) return {};
  if (page->whole) return page->written;
  const Cell& cell = page->cells[(address & (page_bytes - 1)) >> page->shift];
  return cell.wides ? records_[cell.wides].past : cell.written;
}

Past Shadow::some_read(std::uint64_t address) {
  const Page* const page = find(address >> page_shift);
  if (!page || page->generation != generation_) return {};
  const std::uint64_t place = address & (page_bytes - 1);
  if (page->whole) {
    for (const ChunkReads& each : page->reads)
      if (each.chunks >> (place / chunk_bytes) & 1) return each.past;
    return {};
  }
  for (std::uint32_t at = page->cells[place >> page->shift].others; at; at = records_[at].next)
    if (!records_[at].wrote) return records_[at].past;
  return {};
}

// A read of the same chunks by the same actor replaces one that was in another group; of those in
// one group the first is kept.
void Shadow::note_read(Page& page, std::uint64_t chunks, const Past& now) {
  ChunkReads* mine = nullptr;
  for (ChunkReads& each : page.reads) {
    if (each.past.warp != now.warp || each.past.deed.lane() != now.deed.lane()) continue;
    if (each.past.time != now.time) each.chunks &= ~chunks;
    else if (each.past.deed.pc() == now.deed.pc()) mine = &each;
    else chunks &= ~each.chunks;
  }
  if (mine) mine->chunks |= chunks;
  else if (chunks) page.reads.push_back({now, chunks});
  std::erase_if(page.reads, [](const ChunkReads& each) { return each.chunks == 0; });
}

std::uint32_t Shadow::new_record(const Record& record) {
  if (!free_) {
    records_.push_back(record);
    return static_cast<std::uint32_t>(records_.size() - 1);
  }
  const std::uint32_t at = free_;
  free_ = records_[at].next;
  records_[at] = record;
  return at;
}

std::uint32_t Shadow::copy_list(std::uint32_t list) {
  std::uint32_t made = 0;
  for (std::uint32_t at = list; at; at = records_[at].next) {
    Record copy = records_[at];
    copy.next = made;
    made = new_record(copy);
  }
  return made;
}

void Shadow::drop_list(std::uint32_t& list) {
  std::uint32_t last = list;
  while (records_[last].next) last = records_[last].next;
  records_[last].next = free_;
  free_ = list;
  list = 0;
}

void Shadow::drop(std::uint32_t* place) {
  const std::uint32_t at = *place;
  *place = records_[at].next;
  records_[at].next = free_;
  free_ = at;
}

}  // namespace tartan::inline TARTAN_ABI::emulator
