// SPDX-License-Identifier: Apache-2.0
// The configuration for a product: of the cost model where it was fitted, else by its size.
#include <algorithm>

#include "dsl/kernels/gemm_candidates.h"
#include "tartan/dsl/kernels/tuning.h"

namespace tartan::inline TARTAN_ABI::kernels {
namespace {

constexpr int line_bytes = 128;  // that a stage has along k

// For mma.sync, ldmatrix and cp.async: the largest tile of which there are at least `tiles`.
Gemm tuned_for_threads(const Gemm& options, const Target& target) {
  Gemm out = options;
  const int line = 8 * line_bytes / bits(options.a);  // elements
  struct Way {
    Tile tile;
    int stages;
    unsigned tiles;
  };
  const Way ways[] = {
      {{.m = 128, .n = 256, .k = line, .warps_m = 2, .warps_n = 4}, 3, 2 * h100_multiprocessors},
      {{.m = 128, .n = 128, .k = line, .warps_m = 2, .warps_n = 2}, 3, h100_multiprocessors},
      {{.m = 64, .n = 64, .k = line, .warps_m = 2, .warps_n = 2}, 4, h100_multiprocessors},
      {{.m = 32, .n = 64, .k = 2 * line, .warps_m = 2, .warps_n = 2}, 4, 0}};
  // There, mma.sync multiplies fp8 as f16, and the converted operands need registers too.
  const bool converts = bits(options.a) == 8 && info(options.a).floating && target.arch.sm >= 90 &&
                        target.arch.sm < 120;
  const ArchRow* arch = find_arch(target.arch);
  for (Way way : ways) {
    if (converts && way.tile.m == 128) way.tile.n = 128, way.tile.warps_n = 4;
    out.tile = way.tile, out.stages = way.stages;
    const int bytes = way.stages * (way.tile.m + way.tile.n) * way.tile.k * bits(options.a) / 8;
    const bool unknown = options.m == 0 || options.n == 0;
    if (arch && bytes <= arch->shared_bytes &&
        (unknown || out.blocks(options.m, options.n) >= way.tiles))
      break;
  }
  return out;
}

// Few rows: the bandwidth of B is the limit.
constexpr int few_rows = 32;
Gemm tuned_for_rows(const Gemm& options, const Target& target) {
  Gemm out = options;
  const int line = 8 * line_bytes / bits(options.a);
  out.tile = {
      .m = options.m <= 16 ? 16 : few_rows, .n = 64, .k = 2 * line, .warps_m = 1, .warps_n = 4};
  const int stage_bytes = (out.tile.m + out.tile.n) * 2 * line_bytes;
  const ArchRow* arch = find_arch(target.arch);
  out.stages = std::clamp((arch ? arch->shared_bytes : 0) / stage_bytes, 2, 8);
  return out;
}

// The first candidate that is within the model's noise of the cheapest: the candidates begin with
// the tiles that were measured most.
Gemm tuned_by_cost(const Gemm& options, const Target& target, std::int64_t workspace) {
  constexpr double noise = 1.01;
  const detail::GpuRow& gpu = *detail::find_gpu(target.arch);
  auto all = detail::candidates(options, target, gpu, workspace > 0);
  if (workspace_bytes(options) == 0)  // else the caller splits the product
    std::erase_if(all, [&](const Gemm& each) { return workspace_bytes(each) > workspace; });
  std::vector<double> cycles;
  for (const Gemm& each : all) cycles.push_back(detail::gemm_cost(each, target, gpu).cycles);
  if (all.empty()) return options;
  const double least = *std::min_element(cycles.begin(), cycles.end());
  const auto near = [&](double each) { return each <= noise * least; };
  Gemm out = all[static_cast<std::size_t>(std::find_if(cycles.begin(), cycles.end(), near) -
                                          cycles.begin())];
  // Of the largest tiles, a fourth stage helps short sums only, and those of integers.
  const int width = bits(options.a);
  const bool short_sums =
      (options.k > 0 && options.k <= 4096 && width > 8) || (width == 8 && bits(options.c) == 32);
  if (out.persistent && out.tile.m == 128 && out.tile.n == 256 && out.cluster == 1 && !short_sums)
    out.stages = std::min(out.stages, 3);
  return out;
}

}  // namespace

Gemm tuned(const Gemm& options, const Target& target) { return tuned(options, target, 0); }

Gemm tuned(const Gemm& options, const Target& target, std::int64_t workspace) {
  const int width = bits(options.a);
  if (target.arch.sm < 80 || width < 8 || width > 32 || options.accumulator == f64) return options;
  if (options.m < 0 || options.n < 0 || options.k < 0 || options.cluster < 1 ||
      bits(options.b) == 0 || bits(options.c) == 0)
    return options;  // gemm() reports the error
  // Hours of work for the whole GPU; no count of tiles overflows below that.
  if (double{1} * options.m * options.n * options.k > 0x1p62) return options;
  if (target.arch.text() == "sm_90a") return tuned_by_cost(options, target, workspace);
  if (options.m && options.m <= few_rows) return tuned_for_rows(options, target);
  return tuned_for_threads(options, target);
}

}  // namespace tartan::inline TARTAN_ABI::kernels
