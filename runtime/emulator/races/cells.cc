// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/cells.h"

namespace tartan::TARTAN_ABI::emulator {

void Cells::clear() {
  records_.resize(1);
  free_ = 0;
}

void Cells::forget(Cell& cell) {
  if (cell.wides) drop_list(cell.wides);
  if (cell.others) drop_list(cell.others);
  cell = {};
}

Cell Cells::copy(const Cell& cell) {
  Cell made = cell;
  made.wides = copy_list(cell.wides);
  made.others = copy_list(cell.others);
  return made;
}

Past Cells::last_write(const Cell& cell) const {
  if (cell.wides) return records_[cell.wides].past;
  for (std::uint32_t at = cell.others; at; at = records_[at].next)
    if (records_[at].wrote) return records_[at].past;
  return cell.written;
}

Past Cells::some_read(const Cell& cell) const {
  for (std::uint32_t at = cell.others; at; at = records_[at].next)
    if (!records_[at].wrote) return records_[at].past;
  return {};
}

std::uint32_t Cells::new_record(const Record& record) {
  if (!free_) {
    records_.push_back(record);
    return static_cast<std::uint32_t>(records_.size() - 1);
  }
  const std::uint32_t at = free_;
  free_ = records_[at].next;
  records_[at] = record;
  return at;
}

std::uint32_t Cells::copy_list(std::uint32_t list) {
  std::uint32_t made = 0;
  for (std::uint32_t at = list; at; at = records_[at].next) {
    Record copy = records_[at];
    copy.next = made;
    made = new_record(copy);
  }
  return made;
}

void Cells::drop_list(std::uint32_t& list) {
  std::uint32_t last = list;
  while (records_[last].next) last = records_[last].next;
  records_[last].next = free_;
  free_ = list;
  list = 0;
}

void Cells::drop(std::uint32_t* place) {
  const std::uint32_t at = *place;
  *place = records_[at].next;
  records_[at].next = free_;
  free_ = at;
}

}  // namespace tartan::TARTAN_ABI::emulator
