// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/boxes.h - how copies through tensor maps have laid out shared memory. A
// descriptor of wgmma that says otherwise reads other elements than were meant.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/races/shadow.h"

namespace tartan::TARTAN_ABI::emulator {

struct Box {
  std::uint64_t first = 0;  // its first byte
  BoxShape shape;
  std::uint32_t pc = 0;
  Past filled;  // who wrote it, as the shadow knows it
};

/// Of a block.
class Boxes {
 public:
  void clear() { chunks_.clear(), boxes_.clear(); }
  void add(Box box, std::uint64_t bytes);
  /// The last box that was at `address`; null: there was none.
  const Box* at(std::uint64_t address) const;

 private:
  static constexpr std::uint64_t chunk = 16;  // bytes
  std::vector<std::uint32_t> chunks_;         // 1 + index of the box
  std::vector<Box> boxes_;
};

}  // namespace tartan::TARTAN_ABI::emulator
