// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/definedness/register_shadow.h - the undefined bits of a warp's registers, and
// where they came from. Both lie as the registers do in the arena (program.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/emulator/machine/program.h"

namespace tartan::TARTAN_ABI::emulator {

/// The bits of a register of that type: 1, 32, 64 or 128.
constexpr int register_bits(Type type) {
  const int size = bits(type);
  return type == Type::pred ? 1 : size <= 32 ? 32 : size;
}

class RegisterShadow {
 public:
  /// As a warp of `program` begins: those registers are undefined.
  void start(const Program& program, std::span<const UnwrittenRegister> unwritten);
  bool any() const { return held_ != 0; }
  /// Whether some lane's part of the register has undefined bits.
  bool holds(std::uint32_t slot) const { return !holds_.empty() && holds_[slot / 4]; }

  /// A lane's bits; `half` is 1 for the upper half of 128.
  std::uint64_t get(std::uint32_t slot, int bits, std::uint32_t lane, int half = 0) const;
  void set(std::uint32_t slot, int bits, std::uint32_t lane, std::uint64_t value, int half = 0);
  /// The lanes of `lanes` that have undefined bits among the lower `used` of the register's.
  std::uint32_t lanes(std::uint32_t slot, int bits, std::uint32_t lanes, int used) const;
  /// All bits of those lanes are defined.
  void clear(std::uint32_t slot, int bits, std::uint32_t lanes);
  /// To be called behind set(): whether the register holds any is counted.
  void settle(std::uint32_t slot, int bits);

  /// 0: the register itself was never written.
  std::uint32_t& origin(std::uint32_t slot, int bits, std::uint32_t lane);

 private:
  void make_room(std::size_t bytes);

  std::size_t room_ = 0;
  std::vector<std::byte> bits_;
  std::vector<std::uint32_t> origins_;
  std::vector<std::uint8_t> holds_;  // by slot / 4
  std::uint32_t held_ = 0;           // registers
};

}  // namespace tartan::TARTAN_ABI::emulator
