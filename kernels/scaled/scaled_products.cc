// SPDX-License-Identifier: Apache-2.0
#include "kernels/scaled/scaled_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels::detail {

Tile scaled_part(const Tile& tile, int parts_n) {
  Tile out = tile;
  out.m = 16 * tile.warps_m;
  out.n /= std::max(parts_n, 1);
  out.k = scale_block;
  return out;
}

void promote(Builder& k, Accumulator& sum, const WarpTile& product,
             const std::function<Scalar(std::size_t i, std::size_t e)>& scale) {
  const WarpTile old = sum;
  std::vector<std::vector<Scalar>> added;
  for (const Fragment& each : product.fragments()) added.push_back(k.elements(each));
  std::vector<Fragment> out;
  for (std::size_t i = 0; i < added.size(); ++i) {
    const Fragment& of = old.fragments()[i];
    std::vector<Scalar> elements = k.elements(of);
    for (std::size_t e = 0; e < elements.size(); ++e)
      elements[e] = fma(added[i][e], scale(i, e), elements[e]);
    out.push_back(k.pack(of.kind(), elements));
  }
  sum = WarpTile(std::move(out), old.across(), old.place());
}

Scalar kept_here(Builder& k, const Scalar& x) { return k.ptx("mov.b32 %0, %1;", {f32}, {x})[0]; }

WarpTile joined_parts(const std::deque<Accumulator>& sums, const Tile& tile, int part_m,
                      int parts_n) {
  const WarpTile first = sums.front();
  WarpPlace place = first.place();
  place.rows = tile.m, place.cols = tile.n, place.row_step = part_m;
  std::vector<Fragment> fragments;  // of each warp, a row of a part
  for (const Accumulator& sum : sums) {
    const WarpTile part = sum;
    fragments.insert(fragments.end(), part.fragments().begin(), part.fragments().end());
  }
  return WarpTile(std::move(fragments), first.across() * parts_n, std::move(place));
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

bool is_scaled_gemm(Builder& k, const ScaledGemm& options) {
  const Tile& tile = options.tile;
  bool good = is_scaled_product(k, options.m, options.n, options.k, 8, tile);
  good &= k.require(options.c == bf16 || options.c == f16 || options.c == f32,
                    fmt::format("type of C: expected bf16, f16 or f32, found {}", name(options.c)));
  good &= k.require(!options.share_a || options.cluster > 1,
                    "share_a: expected a cluster of two CTAs or more, which share A");
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
