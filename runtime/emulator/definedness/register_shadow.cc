// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/definedness/register_shadow.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Where a lane's part of a register begins.
std::size_t place(std::uint32_t slot, int bits, std::uint32_t lane, int half) {
  if (bits == 1) return slot;
  return slot + (bits == 32 ? 4 : 8) * std::size_t{lane} + 256 * static_cast<std::size_t>(half);
}

std::size_t bytes_of(int bits) { return bits == 1 ? 4 : static_cast<std::size_t>(bits) * 4; }

}  // namespace

void RegisterShadow::start(const Program& program, std::span<const UnwrittenRegister> unwritten) {
  room_ = program.arena.size();
  held_ = 0;
  if (unwritten.empty() && bits_.empty()) return;
  make_room(room_);
  std::ranges::fill(bits_, std::byte{0});
  std::ranges::fill(origins_, 0);
  std::ranges::fill(holds_, 0);
  for (const UnwrittenRegister& each : unwritten) {
    const int bits = static_cast<int>(each.bits);
    std::memset(bits_.data() + each.slot, 0xFF, bytes_of(bits));
    settle(each.slot, bits);
  }
}

// Warps that never meet an undefined value have none of this.
void RegisterShadow::make_room(std::size_t bytes) {
  if (!bits_.empty()) return;
  bits_.resize(bytes);
  origins_.resize(bytes / 4);
  holds_.resize(bytes / 4);
}

std::uint64_t RegisterShadow::get(std::uint32_t slot, int bits, std::uint32_t lane,
                                  int half) const {
  if (bits_.empty()) return 0;
  const std::byte* at = bits_.data() + place(slot, bits, lane, half);
  std::uint64_t value = 0;
  std::memcpy(&value, at, bits <= 32 ? 4 : 8);
  return bits == 1 ? value >> lane & 1 : value;
}

void RegisterShadow::set(std::uint32_t slot, int bits, std::uint32_t lane, std::uint64_t value,
                         int half) {
  if (bits_.empty() && !value) return;
  make_room(room_);
  std::byte* at = bits_.data() + place(slot, bits, lane, half);
  if (bits == 1) {
    std::uint32_t word;
    std::memcpy(&word, at, 4);
    word = (word & ~(1u << lane)) | static_cast<std::uint32_t>(value & 1) << lane;
    std::memcpy(at, &word, 4);
  } else {
    std::memcpy(at, &value, bits <= 32 ? 4 : 8);
  }
}

std::uint32_t RegisterShadow::lanes(std::uint32_t slot, int bits, std::uint32_t lanes,
                                    int used) const {
  if (!holds(slot)) return 0;
  const std::uint64_t mask = used >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << used) - 1;
  std::uint32_t found = 0;
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    bool any = get(slot, bits, lane) & mask;
    if (bits == 128) any |= get(slot, bits, lane, 1) != 0;
    found |= std::uint32_t{any} << lane;
  }
  return found;
}

void RegisterShadow::clear(std::uint32_t slot, int bits, std::uint32_t lanes) {
  if (!holds(slot)) return;
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    set(slot, bits, lane, 0);
    if (bits == 128) set(slot, bits, lane, 0, 1);
  }
  settle(slot, bits);
}

void RegisterShadow::settle(std::uint32_t slot, int bits) {
  if (bits_.empty()) return;
  const std::byte* at = bits_.data() + slot;
  const bool any =
      std::any_of(at, at + bytes_of(bits), [](std::byte b) { return b != std::byte{0}; });
  std::uint8_t& holds = holds_[slot / 4];
  held_ += static_cast<std::uint32_t>(any) - holds;
  holds = any;
}

std::uint32_t& RegisterShadow::origin(std::uint32_t slot, int bits, std::uint32_t lane) {
  make_room(room_);
  return origins_[place(slot, bits, lane, 0) / 4];
}

}  // namespace tartan::TARTAN_ABI::emulator
