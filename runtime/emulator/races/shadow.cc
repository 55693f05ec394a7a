// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/shadow.h"

namespace tartan::TARTAN_ABI::emulator {

void Shadow::clear() {
  ++generation_;
  tracks_.clear();
  cells_.clear();
  used_cells_ = 1;
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
    page->blocks.assign(chunk_bytes >> page->shift, {});
  }
  return *page;
}

Shadow::Page& Shadow::open(std::uint64_t number, int shift) {
  Page& here = page(number);
  if (shift < here.shift) refine(here, shift);
  return here;
}

void Shadow::refine(Page& page, int shift) {
  const std::uint32_t parts = 1u << (page.shift - shift), of_part = 64 / parts;
  std::vector<Block> blocks;
  blocks.reserve(page.blocks.size() * parts);
  for (Block& block : page.blocks) {
    for (std::uint32_t part = 0; part < parts; ++part) {
      Block& made = blocks.emplace_back();
      if (!block.cells) {
        if (block.tracks.count) made.tracks = tracks_.split(block.tracks, part, parts);
        continue;
      }
      made.cells = new_cells();
      for (std::uint32_t i = 0; i < 64; ++i)
        cells(made)[i] = cells_.copy(cells(block)[part * of_part + i / parts]);
    }
    tracks_.drop_all(block.tracks);
    if (block.cells) std::ranges::for_each(cells(block), [&](Cell& cell) { cells_.forget(cell); });
  }
  page.blocks = std::move(blocks);
  page.shift = shift;
}

std::uint32_t Shadow::new_cells() {
  if (used_cells_ == cells_of_blocks_.size()) cells_of_blocks_.emplace_back();
  cells_of_blocks_[used_cells_] = {};
  return used_cells_++;
}

Shadow::BlockCells& Shadow::cut(Block& block) {
  block.cells = new_cells();
  BlockCells& made = cells(block);
  tracks_.each(block.tracks, [&](int unit, const Past& past, std::uint32_t lanes, bool wrote) {
    Cell& cell = made[static_cast<std::size_t>(unit)];
    if (wrote) cell.written = past;
    else cells_.add_read(cell, past, lanes);
  });
  tracks_.drop_all(block.tracks);
  return made;
}

void Shadow::forget(std::uint64_t address, std::uint64_t bytes) {
  each_block(address, bytes,
             [&](const Page& page, Block& block, std::uint64_t base, std::uint64_t units) {
               if (!block.cells) return tracks_.forget(block.tracks, units);
               each_cell(cells(block), units, base, page.shift,
                         [&](Cell& cell, std::uint64_t) { cells_.forget(cell); });
             });
}

Past Shadow::last_write(std::uint64_t address) {
  Page* const page = find(address >> page_shift);
  if (!page || page->generation != generation_) return {};
  const Block& block = this->block(*page, address);
  const std::uint64_t unit = (address >> page->shift) & 63;
  return block.cells ? cells_.last_write(cells(block)[unit])
                     : tracks_.last_write(block.tracks, static_cast<std::uint32_t>(unit));
}

Past Shadow::some_read(std::uint64_t address) {
  Page* const page = find(address >> page_shift);
  if (!page || page->generation != generation_) return {};
  const Block& block = this->block(*page, address);
  const std::uint64_t unit = (address >> page->shift) & 63;
  return block.cells ? cells_.some_read(cells(block)[unit])
                     : tracks_.some_read(block.tracks, static_cast<std::uint32_t>(unit));
}

}  // namespace tartan::TARTAN_ABI::emulator
