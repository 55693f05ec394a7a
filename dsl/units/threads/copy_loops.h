// SPDX-License-Identifier: Apache-2.0
// dsl/units/threads/copy_loops.h - when threads copy a tile in a loop: known to those who choose a
// tile. Not installed.
#pragma once

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// So many accesses of a thread to a tile are unrolled; more become a loop, which takes about twice
/// as long for each of them that waits for its loads.
constexpr int unrolled_accesses = 16;

/// Whether so many accesses to a tile are more than `threads` unroll.
constexpr bool copies_in_loop(double accesses, double threads) {
  return accesses > unrolled_accesses * threads;
}

}  // namespace tartan::TARTAN_ABI::detail
