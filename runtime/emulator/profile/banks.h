// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/profile/banks.h - bank conflicts of one warp-wide access to shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr int banks = 32, bank_bytes = 4;

/// Addresses of the lanes in `lanes`, each of `bytes` bytes; ldmatrix: of its rows, 16 bytes each.
struct SharedRequest {
  std::array<std::uint64_t, 32> at = {};
  std::uint32_t lanes = 0;
  std::uint32_t bytes = 4;
  bool load = false;  // by ld: phases may merge
};

struct Wavefronts {
  std::uint32_t all = 0;      // that the request takes
  std::uint32_t minimum = 0;  // without conflicts
  bool operator==(const Wavefronts&) const = default;
};

/// The lanes of each phase. Two phases of a load are one where each lane shares its address with
/// the next one, or each with the one after that (measured: tests/data/profile).
std::vector<std::uint32_t> phases(const SharedRequest& request);
Wavefronts wavefronts(const SharedRequest& request);
/// Words that each bank delivers in the costliest phase.
std::array<std::uint8_t, banks> worst_phase(const SharedRequest& request);
/// Changes of the layout that give the request its minimum, by trying: swizzles of 32, 64 and 128
/// bytes, else the smallest padding of rows. Empty without conflicts.
std::vector<std::string> cures(const SharedRequest& request);

}  // namespace tartan::TARTAN_ABI::emulator
