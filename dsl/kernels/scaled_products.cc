// SPDX-License-Identifier: Apache-2.0
#include "dsl/kernels/scaled_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsl/kernels/gemm_tiles.h"

namespace tartan::inline TARTAN_ABI::kernels::detail {

Tile scaled_part(const Tile& tile, int parts_n) {
  Tile out = tile;
  out.m = 16 * tile.warps_m;
  out.n /= std::max(parts_n, 1);
  out.k = scale_block;
  return out;
}

bool is_scaled_product(Builder& k, int rows, int columns, int depth, int multiple_of_columns,
                       const Tile& tile) {
  bool good = k.require(rows >= 0 && columns >= 0 && depth >= 0,
                        fmt::format("m = {}, n = {}, k = {}: expected sizes, or 0 for kernel "
                                    "parameters",
                                    rows, columns, depth));
  const auto divisible = [&](const char* what, int size, int by) {
    return k.require(size % by == 0,
                     fmt::format("{} = {}: expected a multiple of {}; the nearest is {}", what,
                                 size, by, nearest_multiple(size, by)));
  };
  good &= divisible("n", columns, multiple_of_columns);
  good &= divisible("k", depth, 16);
  good &= k.require(tile.k == scale_block,
                    fmt::format("tile.k = {}: expected {}, the elements along k that share a scale",
                                tile.k, scale_block));
  good &=
      k.require(tile.warps_m >= 1 && tile.warps_m <= 16 && tile.warps_n == 1 && tile.warps_k == 1 &&
                    tile.products == 1 && tile.m % (16 * tile.warps_m) == 0 && tile.m > 0,
                fmt::format("{} x {} warps of {} rows: expected warps along m alone, and a "
                            "multiple of 16 rows for each of up to 16",
                            tile.warps_m, tile.warps_n, tile.m));
  constexpr int most_rows = 1024;  // a stage of more has no room in shared memory
  good &= k.require(tile.m <= most_rows,
                    fmt::format("tile.m = {}: expected up to {}", tile.m, most_rows));
  return good && sizes_are_possible(k, tile, rows, columns, depth);
}

}  // namespace tartan::inline TARTAN_ABI::kernels::detail
