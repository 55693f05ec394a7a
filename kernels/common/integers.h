// SPDX-License-Identifier: Apache-2.0
// kernels/common/integers.h - arithmetic of sizes and options.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::kernels {

/// x / y, rounded up; of x >= 0 and y > 0.
constexpr std::int64_t quotient_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

/// Whether x is a power of two in a range that begins above 0.
constexpr bool is_power(int x, int least, int most) {
  return x >= least && x <= most && (x & (x - 1)) == 0;
}

}  // namespace tartan::TARTAN_ABI::kernels
