// SPDX-License-Identifier: Apache-2.0
// Which tile of scaled_gemm is the fastest for given sizes: a cost in cycles of a multiprocessor,
// with the rates that an H100 showed.
#include <algorithm>

#include "dsl/kernels/gemm_tiles.h"
#include "dsl/kernels/integers.h"
#include "dsl/kernels/scaled_products.h"
#include "tartan/dsl/kernels/scaled_gemm.h"

namespace tartan::inline TARTAN_ABI::kernels {
namespace {

// How much longer than its wgmma alone a k-tile took: the promotion that nothing hides. Three
// warpgroups hide each other's better than two. Of equal costs the first shape wins: where B's
// bytes bind, two k-tiles in a stage were faster (64 and 128 rows: by 5 to 18 %), and four by 1 to
// 3 % more if a column of tiles is one tile and three such stages fit.
struct Shape {
  int m, warps_m, parts_n, blocks_k;
  double slowdown;
  double start = 1500;  // cycles of a tile beside its k-tiles and C
};
// Three warpgroups whose first k-tile has code of its own begin sooner.
constexpr Shape shapes[] = {{64, 4, 1, 4, 1.70},        {64, 4, 1, 2, 1.70},  {64, 4, 1, 1, 1.90},
                            {128, 8, 1, 2, 1.36},       {128, 8, 1, 1, 1.55}, {128, 8, 2, 1, 1.31},
                            {192, 12, 1, 1, 1.31, 700}, {256, 8, 1, 1, 1.27}};
constexpr double dense = 1.25;        // the slowdown of two parts of a dense tile
constexpr double narrow = 0.25;       // more, for each time that 128 is wider than a product
constexpr double two_blocks = 1.30;   // a tile whose columns have scales of two blocks
constexpr double odd_columns = 1.18;  // more time for B, where 128 is no multiple of the width
constexpr double alone = 1.04;        // without a cluster
constexpr double copied_bytes = 57;   // a cycle, into one multiprocessor
constexpr double memory_bytes = 14;   // a cycle, of B's that nobody else reads
constexpr double stored_bytes = 2.5;  // a cycle, of each warp

struct Size {
  int m, n, k, groups;
};

double cost(const ScaledGemm& options, const Shape& shape, const Size& size) {
  const Tile& tile = options.tile;
  const double width = static_cast<double>(tile.n) / shape.parts_n;
  const std::int64_t down = quotient_up(std::max(size.m, 1), tile.m),
                     across = quotient_up(size.n, tile.n);
  const double multiply =
      double{1} * tile.m * tile.n / 32 *
      (shape.parts_n > 1 && options.grouping == Grouping::none ? dense : shape.slowdown) *
      (1 + narrow * (128 / width - 1)) * (128 % (tile.n / shape.parts_n) ? two_blocks : 1) *
      (options.cluster > 1 ? 1 : alone);
  const double load = 128.0 * (tile.m + tile.n),
               only_b =
                   128.0 * tile.n / static_cast<double>(down) * (128 % tile.n ? odd_columns : 1);
  const double each = std::max({multiply, load / copied_bytes, only_b / memory_bytes});
  const double store = double{2} * tile.m * tile.n / (stored_bytes * tile.warps_m);
  const unsigned grid =
      options.grouping == Grouping::masked
          ? static_cast<unsigned>(h100_multiprocessors / options.cluster * options.cluster)
          : options.grid_x(size.m, size.n, h100_multiprocessors);
  return static_cast<double>(quotient_up(down * across * size.groups, grid)) *
         (static_cast<double>(quotient_up(size.k, 128)) * each + store + shape.start);
}

// Masked groups have about as many rows as expected, some more and some less.
double expected_cost(const ScaledGemm& options, const Shape& shape, const Size& size) {
  if (options.grouping != Grouping::masked) return cost(options, shape, size);
  double out = 0;
  for (const int quarters : {3, 4, 4, 5}) {
    const auto m = static_cast<int>(std::int64_t{size.m} * quarters / 4);
    out += cost(options, shape, {m, size.n, size.k, size.groups});
  }
  return out;
}

int stages_of(const ScaledGemm& options) {
  const Tile& tile = options.tile;
  constexpr int most = 8, bytes = 227 * 1024;
  // Two boxes of each warp for C, where there are two parts. They were 0.4 to 1.6 % faster than
  // one, and than all of C beside three stages.
  const int stage = options.blocks_k * (128 * (tile.m + tile.n) + 4 * tile.m),
            staging = tile.warps_m * 2048 * options.parts_n + (options.parts_n > 1 ? 1 : 3) * 1024;
  return std::clamp((bytes - staging) / stage, 2, most);
}

}  // namespace

unsigned ScaledGemm::grid_x(int rows, int cols, int multiprocessors, int groups) const {
  const bool wide = detail::shares_a(*this);
  const std::int64_t together = std::max(cluster, 1),
                     down = quotient_up(rows, std::max(tile.m, 1) * (wide ? 1 : together)),
                     across = quotient_up(cols, std::max(tile.n, 1) * (wide ? together : 1)),
                     all = down * across * groups,
                     most = detail::clustered_multiprocessors(multiprocessors, cluster) / together,
                     waves = std::max<std::int64_t>(quotient_up(all, most), 1);
  return static_cast<unsigned>(std::max<std::int64_t>(quotient_up(all, waves), 1) * together);
}

ScaledGemm tuned(const ScaledGemm& options, const Target& target, int groups) {
  ScaledGemm out = options;
  if (target.arch.text() != "sm_90a") {
    out.tile = {.m = 64, .n = 64, .k = 128, .warps_m = 4, .warps_n = 1};
    out.parts_n = 1, out.cluster = 1, out.stages = target.arch.sm >= 90 ? 4 : 3;
    return out;
  }
  const int m = options.m ? options.m : 4096, n = options.n ? options.n : 4096,
            k = options.k ? options.k : 4096;
  double least = 0;
  for (const Shape& shape : shapes) {
    if (options.grouping == Grouping::contiguous && 128 % shape.m) continue;
    if (m <= (options.grouping == Grouping::none ? 128 : 64) && shape.m > 64) continue;
    // Beside 256 x 128: 1 to 2 % faster with 4096 rows and more, 1 % slower with 1024 and 2048.
    if (shape.parts_n > 1 && options.grouping == Grouping::none && m <= 2048) continue;
    if (shape.blocks_k > 2 && (m > shape.m || options.grouping != Grouping::none)) continue;
    for (int width = 16; width <= 128; width += 8)
      for (const int cluster : {1, 2}) {
        ScaledGemm each = options;
        each.tile = {.m = shape.m,
                     .n = width * shape.parts_n,
                     .k = 128,
                     .warps_m = shape.warps_m,
                     .warps_n = 1};
        each.parts_n = shape.parts_n, each.cluster = cluster, each.blocks_k = shape.blocks_k;
        each.overlap = shape.blocks_k > 1;
        each.share_a = cluster > 1 && (shape.m >= 128 || options.grouping != Grouping::none);
        if (cluster > 1 && (m < 512 || width % 16)) continue;
        if (shape.parts_n > 1 && width < 128) continue;
        each.stages = stages_of(each);
        if (shape.blocks_k > 2 && each.stages < 3) continue;
        const double cycles = expected_cost(each, shape, {m, n, k, std::max(groups, 1)});
        if (least > 0 && cycles >= least) continue;
        least = cycles, out = each;
      }
  }
  return out;
}

}  // namespace tartan::inline TARTAN_ABI::kernels
