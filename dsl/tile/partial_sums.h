// SPDX-License-Identifier: Apache-2.0
// dsl/tile/partial_sums.h - the shared memory through which CTAs and warps exchange parts of sums:
// what reduce_scatter() takes, for those who choose a tile. Not installed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// How many of its `own` columns of fragments a taker gets at a time: a divisor, as many as fit in
/// half of the `left` bytes (the rest may stage stores), but at most 64 KB; or in what the kernel
/// exchanges through already. `column`: the bytes of one. At least one, which may not fit.
inline int columns_exchanged(int own, std::int64_t column, std::int64_t left,
                             std::int64_t already = 0) {
  const std::int64_t most = std::max(std::min<std::int64_t>(left / 2, 64 << 10), already);
  for (int out = own; out > 1; --out)
    if (own % out == 0 && out * column <= most) return out;
  return 1;
}

/// How many CTAs of a cluster that divides k get a part of a tile that is so many fragments wide in
/// each warp: as many as have the same number of columns, the first of them.
inline int takers_among(int splits, int across) {
  int out = std::clamp(splits, 1, std::max(across, 1));
  while (across % out != 0) --out;
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
