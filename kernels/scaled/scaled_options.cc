// SPDX-License-Identifier: Apache-2.0
#include "kernels/scaled/scaled_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/gemm/gemm_tiles.h"

namespace tartan::TARTAN_ABI::kernels::detail {
namespace {

// Whether there are products of these sizes (0: parameters) and of this tile.
bool are_products(Builder& k, const ScaledProducts& options) {
  const Tile& tile = options.tile;
  bool good = k.require(options.m >= 0 && options.n >= 0 && options.k >= 0,
                        fmt::format("m = {}, n = {}, k = {}: expected sizes, or 0 for kernel "
                                    "parameters",
                                    options.m, options.n, options.k));
  const auto divisible = [&](const char* what, int size, int by) {
    return k.require(size % by == 0,
                     fmt::format("{} = {}: expected a multiple of {}; the nearest is {}", what,
                                 size, by, nearest_multiple(size, by)));
  };
  good &= divisible("n", options.n, options.along_k ? 4 : 8);
  good &= divisible("k", options.k, 16);
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
  good &= k.require(!options.share_a || options.cluster > 1,
                    "share_a: expected a cluster of two CTAs or more, which share A");
  return good && sizes_are_possible(k, tile, options.m, options.n, options.k);
}

bool goes_along_k(Builder& k, const ScaledProducts& options) {
  const int n = options.tile.n;
  bool good = are_products(k, options);
  good &= k.require(n >= 8 && n <= 256 && n % 8 == 0,
                    fmt::format("tile.n = {}: expected a multiple of 8 from 8 to 256", n));
  good &= k.require(options.stages >= 1 && options.stages <= 256,
                    fmt::format("stages = {}: expected 1 to 256", options.stages));
  good &= k.require(options.group >= 1,
                    fmt::format("group = {}: expected at least one row of tiles", options.group));
  return good;
}

}  // namespace

bool is_possible(Builder& k, const ScaledProducts& options) {
  if (options.along_k) return goes_along_k(k, options);
  const Tile& tile = options.tile;
  bool good = are_products(k, options);
  good &= k.require(options.c == bf16 || options.c == f16 || options.c == f32,
                    fmt::format("type of C: expected bf16, f16 or f32, found {}", name(options.c)));
  const int parts = options.parts_n;
  const bool divides = parts == 1 || parts == 2;
  good &= k.require(divides, fmt::format("parts_n = {}: expected 1 or 2", parts));
  const int width = divides ? tile.n / parts : 0;
  good &= k.require(
      width >= 8 && tile.n % (8 * (divides ? parts : 1)) == 0 &&
          width <= scale_block + std::gcd(width, scale_block),
      fmt::format("tile.n = {}: expected a multiple of {} whose products have the scales of two "
                  "blocks of {} columns at most: up to 136, 144, 160, 192 or 256 for each part",
                  tile.n, divides ? 8 * parts : 8, scale_block));
  good &= k.require(options.stages >= 1 && options.stages <= 256 && options.blocks_k >= 1 &&
                        options.blocks_k <= 4,
                    fmt::format("stages = {}, blocks_k = {}: expected 1 to 256, and 1 to 4",
                                options.stages, options.blocks_k));
  const int apart = options.cluster_splits;
  good &= k.require(apart == 1 || apart == 2 || apart == 4 || apart == 8,
                    fmt::format("cluster_splits = {}: expected 1, 2, 4 or 8", apart));
  good &= k.require(apart == 1 || (options.grouping == Grouping::none && options.cluster == 1 &&
                                   parts == 1 && tile.m == 16 * tile.warps_m),
                    "cluster_splits: expected a dense product, cluster = 1, parts_n = 1 and 16 "
                    "rows for each warp: a cluster has one tile, and its sum is exchanged whole");
  if (options.grouping == Grouping::contiguous)
    good &= k.require(scale_block % std::max(tile.m, 1) == 0,
                      fmt::format("tile.m = {}: expected a divisor of {}, to which the rows of a "
                                  "group are padded",
                                  tile.m, scale_block));
  if (options.grouping == Grouping::masked)
    good &= k.require(options.k > 0 && options.m % 4 == 0,
                      fmt::format("m = {}, k = {}: masked groups need a multiple of 4 and a "
                                  "constant k, for SA's tensor map",
                                  options.m, options.k));
  return good;
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
