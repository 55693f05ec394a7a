// SPDX-License-Identifier: Apache-2.0
// Which tile of k_grouped_gemm should be the fastest for given sizes: a cost in cycles of a
// multiprocessor, with the rates that an H200 showed for tiles of 256, 192 and 128 rows and 96 to
// 136 columns.
#include <algorithm>

#include "kernels/common/integers.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/tuner/tuned_with.h"
#include "tartan/isa/feature.h"
#include "tartan/kernels/k_grouped_gemm.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

// How much longer than its wgmma alone a k-tile takes, and the widest tile whose sums, product and
// scales fit in registers.
struct Shape {
  int m, warps_m, most_n;
  double slowdown;
};
constexpr Shape shapes[] = {
    {64, 4, 128, 2.10}, {128, 8, 128, 1.65}, {192, 12, 96, 1.72}, {256, 8, 104, 1.64}};
constexpr double narrow = 0.25;       // more, for each time that 96 is wider than a product
constexpr double alone = 1.04;        // without a cluster
constexpr double copied_bytes = 57;   // a cycle, into one multiprocessor
constexpr double start = 500;         // cycles of a tile beside its k-tiles
constexpr double stored_bytes = 2.5;  // a cycle, of each warp

constexpr int most_rows = 16;  // of tiles, which are visited column by column

struct Size {
  int m, n, k, groups, multiprocessors;
};

double cost(const KGroupedGemm& options, double slowdown, const Size& size) {
  const Tile& tile = options.tile;
  const int down = options.share_a ? 1 : options.cluster, across = options.cluster / down;
  const double multiply = double{1} * tile.m * tile.n / 32 * slowdown *
                          (1 + narrow * std::max(96.0 / tile.n - 1, 0.0)) *
                          (options.cluster > 1 ? 1 : alone);
  const double each = std::max(multiply, 132.0 * (tile.m + tile.n) / copied_bytes),
               store = double{4} * tile.m * tile.n / (stored_bytes * tile.warps_m);
  const unsigned grid = options.grid_x(size.m, size.n, size.groups, size.multiprocessors);
  const double steps = static_cast<double>(quotient_up(size.k, 128)) / size.groups;
  const std::int64_t tiles = quotient_up(size.m, tile.m * down) *
                             quotient_up(size.n, tile.n * across) * options.cluster * size.groups;
  return static_cast<double>(quotient_up(tiles, grid)) * (steps * each + store + start);
}

// As many as fit beside room for 32 columns of a warp's part of C, which TMA stores.
int stages_of(const Tile& tile) {
  constexpr int most = 8, bytes = 227 * 1024;
  const int stage = 132 * (tile.m + (tile.n + 31) / 32 * 32),
            staging = tile.warps_m * 2048 + 3 * 1024;
  return std::clamp((bytes - staging) / stage, 2, most);
}

}  // namespace

unsigned KGroupedGemm::grid_x(int rows, int cols, int groups, int multiprocessors) const {
  const std::int64_t together = std::max(cluster, 1), m = std::max(tile.m, 1),
                     n = std::max(tile.n, 1),
                     all = quotient_up(rows, m * (share_a ? 1 : together)) *
                           quotient_up(cols, n * (share_a ? together : 1)) * groups,
                     most = detail::clustered_multiprocessors(multiprocessors, cluster);
  return static_cast<unsigned>(std::clamp<std::int64_t>(all * together, together, most));
}

// The fastest that has what is given.
static std::optional<KGroupedGemm> fastest(const KGroupedGemm& options, const Gpu& gpu, int groups,
                                           const std::function<bool(const KGroupedGemm&)>& hold) {
  KGroupedGemm out = options;
  const Target& target = gpu.target();
  if (target.has(Feature::tensor_memory)) {
    // By tcgen05, not measured: as scaled_gemm(), with registers for scales of columns.
    out.tile = {.m = 256, .n = 32, .k = 128, .warps_m = 8, .warps_n = 1};
    out.cluster = 1, out.share_a = false, out.stages = stages_of(out.tile);
    return hold(out) ? std::optional(out) : std::nullopt;
  }
  if (!target.has(Feature::wgmma)) {
    out.tile = {.m = 64, .n = 64, .k = 128, .warps_m = 4, .warps_n = 1};
    out.cluster = 1, out.share_a = false, out.stages = target.arch.has(Feature::tma) ? 4 : 3;
    return hold(out) ? std::optional(out) : std::nullopt;
  }
  const Size size{.m = options.m ? options.m : 4096,
                  .n = options.n ? options.n : 4096,
                  .k = options.k ? options.k : 4096 * std::max(groups, 1),
                  .groups = std::max(groups, 1),
                  .multiprocessors = gpu.multiprocessors()};
  double least = 0;
  for (const Shape& shape : shapes)
    for (int width = 16; width <= shape.most_n; width += 8)
      for (const int cluster : {1, 2}) {
        const bool shares_a = cluster > 1 && shape.m >= width;
        if (cluster > 1 && (size.m < 512 || (!shares_a && width % 16))) continue;
        KGroupedGemm each = options;
        each.tile = {.m = shape.m, .n = width, .k = 128, .warps_m = shape.warps_m, .warps_n = 1};
        each.cluster = cluster, each.share_a = shares_a;
        each.group = quotient_up(size.m, shape.m) <= most_rows ? most_rows : options.group;
        each.stages = stages_of(each.tile);
        const double cycles = cost(each, shape.slowdown, size);
        if (!hold(each) || (least > 0 && cycles >= least)) continue;
        least = cycles, out = each;
      }
  return least > 0 ? std::optional(out) : std::nullopt;
}

KGroupedGemm tuned(const KGroupedGemm& options, const Gpu& gpu, int groups) {
  const auto any = [](const KGroupedGemm&) { return true; };
  return fastest(options, gpu, groups, any).value_or(options);
}

std::optional<KGroupedGemm> detail::tuned_with(
    const KGroupedGemm& options, const Gpu& gpu, int groups,
    const std::function<bool(const KGroupedGemm&)>& hold) {
  return fastest(options, gpu, groups, hold);
}

}  // namespace tartan::TARTAN_ABI::kernels
