// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/shuffle.h - which lane a lane reads in shfl.sync.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

enum class Shuffle : std::uint8_t { up, down, bfly, idx };

/// The lane that `lane` reads, and whether it is inside of its segment: bit 5 is set where it is
/// not.
template <Shuffle S>
constexpr std::uint32_t shuffle_source(std::uint32_t lane, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t delta = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  const std::uint32_t low = lane & segment, high = low | (clamp & ~segment);
  const std::uint32_t from = S == Shuffle::up     ? lane - delta
                             : S == Shuffle::down ? lane + delta
                             : S == Shuffle::bfly ? lane ^ delta
                                                  : low | (delta & ~segment);
  // up: clamp is 0, and `high` the segment's first lane.
  const bool inside = S == Shuffle::up
                          ? static_cast<std::int32_t>(from) >= static_cast<std::int32_t>(high)
                          : from <= high;
  return inside ? from : lane | 32;
}

constexpr std::uint32_t shuffle_source(Shuffle mode, std::uint32_t lane, std::uint32_t b,
                                       std::uint32_t c) {
  switch (mode) {
    case Shuffle::up: return shuffle_source<Shuffle::up>(lane, b, c);
    case Shuffle::down: return shuffle_source<Shuffle::down>(lane, b, c);
    case Shuffle::bfly: return shuffle_source<Shuffle::bfly>(lane, b, c);
    case Shuffle::idx: return shuffle_source<Shuffle::idx>(lane, b, c);
  }
  return lane;
}

}  // namespace tartan::TARTAN_ABI::emulator
