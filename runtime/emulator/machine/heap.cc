// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/heap.h"

#include <iterator>

namespace tartan::TARTAN_ABI::emulator {

void Heap::open(std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  room_ = address;
  free_ = {{address, bytes}};
  used_.clear();
}

std::uint64_t Heap::allocate(std::uint64_t size) {
  if (size == 0 || size > bytes) return 0;
  size = (size + 15) / 16 * 16;
  const std::scoped_lock lock(mutex_);
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    const auto [address, room] = *piece;
    if (room < size) continue;
    free_.erase(piece);
    if (room > size) free_.emplace(address + size, room - size);
    used_.emplace(address, size);
    return address;
  }
  return 0;
}

bool Heap::free(std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  const auto piece = used_.find(address);
  if (piece == used_.end()) return false;
  auto freed = free_.emplace(*piece).first;
  used_.erase(piece);
  // Neighbours become one piece.
  if (const auto next = std::next(freed);
      next != free_.end() && freed->first + freed->second == next->first) {
    freed->second += next->second;
    free_.erase(next);
  }
  if (freed != free_.begin())
    if (const auto before = std::prev(freed); before->first + before->second == freed->first) {
      before->second += freed->second;
      free_.erase(freed);
    }
  return true;
}

}  // namespace tartan::TARTAN_ABI::emulator
