// SPDX-License-Identifier: Apache-2.0
// Which tile of scaled_gemm is the fastest for given sizes: a cost in cycles of a multiprocessor,
// with the rates that an H100 showed, and the bandwidth of the GPU.
#include <algorithm>

#include "kernels/common/gpus.h"
#include "kernels/common/integers.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/scaled/scaled_products.h"
#include "kernels/tuner/tuned_with.h"
#include "tartan/isa/feature.h"
#include "tartan/kernels/scaled_gemm.h"

namespace tartan::TARTAN_ABI::kernels {
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
constexpr double dense = 1.25;          // the slowdown of two parts of a dense tile
constexpr double narrow = 0.25;         // more, for each time that 128 is wider than a product
constexpr double two_blocks = 1.30;     // a tile whose columns have scales of two blocks
constexpr double odd_columns = 1.18;    // more time for B, where 128 is no multiple of the width
constexpr double alone = 1.04;          // without a cluster
constexpr double copied_bytes = 57;     // a cycle, into one multiprocessor
constexpr double memory_share = 0.968;  // of the bandwidth, for B's bytes that nobody else reads
constexpr double stored_bytes = 2.5;    // a cycle, of each warp

// Clusters that divide k, of tiles of few columns. (64 columns took twice as long as 32, 132 CTAs
// with half of the k-tiles of 128 x 2112 x 7168 1.2 times as long as as many with all of them.)
constexpr int widest_split = 32, fewest_steps = 4;         // of a CTA
constexpr double exchange = 1600, exchange_of_each = 300;  // cycles, of a cluster and of its CTAs
constexpr int few_steps =
    16;  // with up to so many, two k-tiles in a stage: the first one is sooner

struct Size {
  int m, n, k, groups;
};

// The fastest for GPUs with these rates.
struct Chooser {
  int multiprocessors;
  double memory_bytes;  // a cycle, of each multiprocessor

  double cost(const ScaledGemm& options, const Shape& shape, const Size& size) const;
  double split_cost(const ScaledGemm& options, const Shape& shape, const Size& size) const;
  double expected_cost(const ScaledGemm& options, const Shape& shape, const Size& size) const;
};

double multiply_cycles(const ScaledGemm& options, const Shape& shape) {
  const Tile& tile = options.tile;
  const double width = static_cast<double>(tile.n) / shape.parts_n;
  return double{1} * tile.m * tile.n / 32 *
         (shape.parts_n > 1 && options.grouping == Grouping::none ? dense : shape.slowdown) *
         (1 + narrow * (128 / width - 1)) * (128 % (tile.n / shape.parts_n) ? two_blocks : 1) *
         (options.cluster > 1 ? 1 : alone);
}

double store_cycles(const Tile& tile) {
  return double{2} * tile.m * tile.n / (stored_bytes * tile.warps_m);
}

double Chooser::cost(const ScaledGemm& options, const Shape& shape, const Size& size) const {
  const Tile& tile = options.tile;
  const std::int64_t down = quotient_up(std::max(size.m, 1), tile.m),
                     across = quotient_up(size.n, tile.n);
  const double load = 128.0 * (tile.m + tile.n),
               only_b =
                   128.0 * tile.n / static_cast<double>(down) * (128 % tile.n ? odd_columns : 1);
  const double each =
      std::max({multiply_cycles(options, shape), load / copied_bytes, only_b / memory_bytes});
  const unsigned grid = options.grouping == Grouping::masked
                            ? static_cast<unsigned>(detail::clustered_multiprocessors(
                                  multiprocessors, options.cluster))
                            : options.grid_x(size.m, size.n, multiprocessors);
  return static_cast<double>(quotient_up(down * across * size.groups, grid)) *
         (static_cast<double>(quotient_up(size.k, 128)) * each + store_cycles(tile) + shape.start);
}

// Of clusters that divide k. Fewer CTAs than multiprocessors share the bandwidth.
double Chooser::split_cost(const ScaledGemm& options, const Shape& shape, const Size& size) const {
  const Tile& tile = options.tile;
  const int splits = options.cluster_splits;
  const std::int64_t down = quotient_up(std::max(size.m, 1), tile.m),
                     ctas = down * quotient_up(size.n, tile.n) * splits,
                     room = std::max(detail::clustered_multiprocessors(multiprocessors, splits), 1),
                     steps = quotient_up(quotient_up(size.k, 128), splits);
  const double load = 128.0 * (tile.m + tile.n),
               only_b = 128.0 * tile.n / static_cast<double>(down) *
                        (128 % tile.n ? odd_columns : 1) *
                        std::min(static_cast<double>(ctas) / multiprocessors, 1.0);
  const double each =
      std::max({multiply_cycles(options, shape), load / copied_bytes, only_b / memory_bytes});
  return static_cast<double>(quotient_up(ctas, room)) *
         (static_cast<double>(steps) * each + store_cycles(tile) + shape.start + exchange +
          exchange_of_each * splits);
}

// Masked groups have about as many rows as expected, some more and some less.
double Chooser::expected_cost(const ScaledGemm& options, const Shape& shape,
                              const Size& size) const {
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
  if (cluster_splits > 1) {
    constexpr std::int64_t most = 0xFFFFFFFF;
    const std::int64_t tiles =
        quotient_up(rows, std::max(tile.m, 1)) * quotient_up(cols, std::max(tile.n, 1));
    return static_cast<unsigned>(std::clamp<std::int64_t>(tiles, 1, most / 8) * cluster_splits);
  }
  const bool wide = detail::shares_a(*this);
  const std::int64_t together = std::max(cluster, 1),
                     down = quotient_up(rows, std::max(tile.m, 1) * (wide ? 1 : together)),
                     across = quotient_up(cols, std::max(tile.n, 1) * (wide ? together : 1)),
                     all = down * across * groups,
                     most = detail::clustered_multiprocessors(multiprocessors, cluster) / together,
                     waves = std::max<std::int64_t>(quotient_up(all, most), 1);
  return static_cast<unsigned>(std::max<std::int64_t>(quotient_up(all, waves), 1) * together);
}

namespace {

// By tcgen05, not measured. A warpgroup multiplies 128 rows; the promotion of one runs while the
// other multiplies, so that a tile of two is taken as soon as they fill the GPU. 64 columns: the
// sum and the product of a thread's rows are in registers at the same time.
ScaledGemm tuned_by_rule(ScaledGemm out, const Gpu& gpu) {
  constexpr int columns = 64, of_two = 256;
  const int m = out.m ? out.m : 4096, n = out.n ? out.n : 4096;
  const bool whole_groups = out.grouping != Grouping::contiguous;  // of 128 rows, which B follows
  const bool two = whole_groups && m > of_two / 2 &&
                   quotient_up(m, of_two) * quotient_up(n, columns) >= gpu.multiprocessors();
  out.tile = {
      .m = two ? of_two : of_two / 2, .n = columns, .k = 128, .warps_m = two ? 8 : 4, .warps_n = 1};
  out.parts_n = out.blocks_k = 1, out.overlap = false;
  out.cluster = out.cluster_splits = 1, out.share_a = false;
  out.stages = stages_of(out);
  return out;
}

// The fastest that has what is given.
std::optional<ScaledGemm> fastest(const ScaledGemm& options, const Gpu& gpu, int groups,
                                  const std::function<bool(const ScaledGemm&)>& hold) {
  ScaledGemm out = options;
  const Target& target = gpu.target();
  if (target.has(Feature::tensor_memory)) {
    out = tuned_by_rule(out, gpu);
    return hold(out) ? std::optional(out) : std::nullopt;
  }
  if (!target.has(Feature::wgmma)) {
    out.tile = {.m = 64, .n = 64, .k = 128, .warps_m = 4, .warps_n = 1};
    out.parts_n = 1, out.cluster = out.cluster_splits = 1,
    out.stages = target.arch.has(Feature::tma) ? 4 : 3;
    return hold(out) ? std::optional(out) : std::nullopt;
  }
  const int m = options.m ? options.m : 4096, n = options.n ? options.n : 4096,
            k = options.k ? options.k : 4096;
  const Size size{m, n, k, std::max(groups, 1)};
  const Chooser chooser{gpu.multiprocessors(),
                        memory_share * detail::row_of(gpu)->memory_of_each()};
  double least = 0;
  const auto consider = [&](const ScaledGemm& each, double cycles) {
    if (hold(each) && (least == 0 || cycles < least)) least = cycles, out = each;
  };
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
        each.cluster_splits = 1;
        each.share_a = cluster > 1 && (shape.m >= 128 || options.grouping != Grouping::none);
        if (cluster > 1 && (m < 512 || width % 16)) continue;
        if (shape.parts_n > 1 && width < 128) continue;
        each.stages = stages_of(each);
        if (shape.blocks_k > 2 && each.stages < 3) continue;
        consider(each, chooser.expected_cost(each, shape, size));
      }
  }
  // Few tiles: several CTAs for each.
  const std::int64_t steps = quotient_up(k, 128);
  for (const Shape& shape : shapes)
    for (const int splits : {2, 4, 8}) {
      const bool fits = options.grouping == Grouping::none && options.m > 0 && m <= 128 &&
                        shape.m == 64 && steps >= fewest_steps * splits &&
                        shape.blocks_k == (steps <= few_steps * splits ? 2 : 4);
      for (int width = 16; fits && width <= widest_split; width += 8) {
        ScaledGemm each = options;
        each.tile = {.m = shape.m, .n = width, .k = 128, .warps_m = shape.warps_m, .warps_n = 1};
        each.parts_n = each.cluster = 1, each.blocks_k = shape.blocks_k, each.overlap = true;
        each.share_a = false, each.stages = stages_of(each), each.cluster_splits = splits;
        consider(each, chooser.split_cost(each, shape, size));
      }
    }
  return least > 0 ? std::optional(out) : std::nullopt;
}

}  // namespace

ScaledGemm tuned(const ScaledGemm& options, const Gpu& gpu, int groups) {
  const auto any = [](const ScaledGemm&) { return true; };
  return fastest(options, gpu, groups, any).value_or(options);
}

std::optional<ScaledGemm> detail::tuned_with(const ScaledGemm& options, const Gpu& gpu, int groups,
                                             const std::function<bool(const ScaledGemm&)>& hold) {
  return fastest(options, gpu, groups, hold);
}

}  // namespace tartan::TARTAN_ABI::kernels
