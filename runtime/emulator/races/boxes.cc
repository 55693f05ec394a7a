// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/boxes.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::emulator {

// A box in the same place takes that of the one before: rings of stages have few.
void Boxes::add(Box box, std::uint64_t bytes) {
  const std::uint64_t first = box.first / chunk, last = (box.first + bytes + chunk - 1) / chunk;
  if (chunks_.size() < last) chunks_.resize(last);
  std::uint32_t index = chunks_[first];
  if (!index || boxes_[index - 1].first != box.first) {
    const auto same = std::ranges::find(boxes_, box.first, &Box::first);
    index = static_cast<std::uint32_t>(same - boxes_.begin()) + 1;
    if (same == boxes_.end()) boxes_.emplace_back();
  }
  boxes_[index - 1] = box;
  std::fill(chunks_.begin() + static_cast<std::ptrdiff_t>(first),
            chunks_.begin() + static_cast<std::ptrdiff_t>(last), index);
}

const Box* Boxes::at(std::uint64_t address) const {
  const std::uint64_t index = address / chunk;
  return index < chunks_.size() && chunks_[index] ? &boxes_[chunks_[index] - 1] : nullptr;
}

}  // namespace tartan::TARTAN_ABI::emulator
