// SPDX-License-Identifier: Apache-2.0
// The configuration for a product: of the cost model.
#include <algorithm>

#include "dsl/kernels/gemm_candidates.h"
#include "tartan/dsl/kernels/tuning.h"

namespace tartan::inline TARTAN_ABI {
namespace detail {

using kernels::Gemm;

std::vector<Candidate> ranked(const Gemm& options, const Target& target, const GpuRow& gpu,
                              bool partial, std::size_t most, const GemmConstants& constants) {
  std::vector<Candidate> out;
  for (const Gemm& each : candidates(options, target, gpu, partial))
    out.push_back({each, gemm_cost(each, target, gpu, constants).cycles});
  std::stable_sort(out.begin(), out.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cycles < b.cycles; });
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace detail

namespace kernels {
namespace {

// The first candidate that is within the model's noise of the cheapest: the candidates begin with
// the tiles that were measured most.
Gemm tuned_by_cost(const Gemm& options, const Target& target, const detail::GpuRow& gpu,
                   std::int64_t workspace) {
  constexpr double noise = 1.01;
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
  // Splits that the kernel adds need a workspace: a product without splits is as good within noise.
  if (out.one_launch) {
    double whole = noise * least;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].splits == 1 && cycles[i] <= whole) whole = cycles[i], out = all[i];
  }
  // Of the largest tiles, a fourth stage helps short sums only, and those of integers.
  const int width = bits(options.a);
  const bool short_sums =
      (options.k > 0 && options.k <= 4096 && width > 8) || (width == 8 && bits(options.c) == 32);
  if (out.persistent && out.tile.m == 128 && out.tile.n == 256 && out.cluster == 1 && !short_sums)
    out.stages = std::min(out.stages, 3);
  return out;
}

}  // namespace

Gemm tuned(const Gemm& options, const Gpu& gpu) { return tuned(options, gpu, 0); }

Gemm tuned(const Gemm& options, const Gpu& gpu, std::int64_t workspace) {
  const int width = bits(options.a);
  const auto row = detail::row_of(gpu);
  if (!row || gpu.target().arch.sm < 80 || width < 8 || width > 32 || options.accumulator == f64)
    return options;
  if (options.m < 0 || options.n < 0 || options.k < 0 || options.cluster < 1 ||
      bits(options.b) == 0 || bits(options.c) == 0)
    return options;  // gemm() reports the error
  // Hours of work for the whole GPU; no count of tiles overflows below that.
  if (double{1} * options.m * options.n * options.k > 0x1p62) return options;
  return tuned_by_cost(options, gpu.target(), *row, workspace);
}

}  // namespace kernels
}  // namespace tartan::inline TARTAN_ABI
