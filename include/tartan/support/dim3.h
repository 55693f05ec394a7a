// SPDX-License-Identifier: Apache-2.0
// tartan/support/dim3.h - the size of a grid or block.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// Blocks of a grid, or threads of a block, along x, y and z.
struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  constexpr std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

}  // namespace tartan::TARTAN_ABI
