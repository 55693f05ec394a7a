// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/past.h - an access that was.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// What an access was, in 32 bits: the instruction, the lane, and how strong it was.
class Deed {
 public:
  static constexpr std::uint32_t most_instructions = 1u << 24;

  Deed() = default;
  /// `strength` 0: weak, else 1 + its Scope.
  Deed(std::uint32_t pc, std::uint32_t lane, std::uint32_t strength)
      : bits_(pc << 8 | lane << 3 | strength) {}
  bool operator==(const Deed&) const = default;
  std::uint32_t pc() const { return bits_ >> 8; }
  std::uint32_t lane() const { return bits_ >> 3 & 31; }
  std::uint32_t strength() const { return bits_ & 3; }
  /// Strong at the scope of the GPU.
  bool wide() const { return strength() == 3; }
  /// All lanes of the warp did it together.
  bool collective() const { return bits_ & 4; }
  Deed together() const {
    Deed made = *this;
    made.bits_ |= 4;
    return made;
  }
  Deed of_lane(std::uint32_t lane) const {
    Deed made = *this;
    made.bits_ = (bits_ & ~(31u << 3)) | lane << 3;
    return made;
  }

 private:
  std::uint32_t bits_ = 0;
};

/// An access that was, as memory knows it.
struct Past {
  std::uint32_t warp = 0, time = 0;  // as in Epoch; time 0: there was none
  Deed deed;
  Past of_lane(std::uint32_t lane) const { return {warp, time, deed.of_lane(lane)}; }
};

}  // namespace tartan::TARTAN_ABI::emulator
