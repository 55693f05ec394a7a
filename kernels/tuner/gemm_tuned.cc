// SPDX-License-Identifier: Apache-2.0
// The configuration for a product: of the cost model.
#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/gemm/gemm_schedule.h"
#include "kernels/tuner/gemm_candidates.h"
#include "kernels/tuner/gemm_tensor.h"
#include "kernels/tuner/tuned_with.h"
#include "tartan/isa/feature.h"
#include "tartan/kernels/tuning.h"

namespace tartan::TARTAN_ABI::kernels {
namespace detail {

std::vector<Candidate> ranked(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
                              bool partial, std::size_t most, const GemmConstants& constants) {
  std::vector<Candidate> out;
  for (const Gemm& each : candidates(options, target, gpu, partial))
    out.push_back({each, gemm_cost(each, target, gpu, constants).cycles});
  std::stable_sort(out.begin(), out.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cycles < b.cycles; });
  if (out.size() > most) out.resize(most);
  return out;
}

namespace {

// With what is given put there, those that run.
std::vector<Gemm> changed(std::vector<Gemm> all, const GivenSettings& given, const Target& target) {
  for (Gemm& each : all) given.put(each);
  std::erase_if(all, [&](const Gemm& each) {
    return !given.hold(each) || !kernels::detail::is_one_way(each) || !runs(each, target);
  });
  return all;
}

// Of the products by tcgen05, the first in which what is given holds.
std::optional<Gemm> tuned_by_rule(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
                                  const GivenSettings& given) {
  if (!target.has(Feature::tensor_memory)) return std::nullopt;
  for (const Gemm& each : tensor_candidates(options, target, gpu))
    if (given.hold(each)) return each;
  return std::nullopt;
}

// The first candidate that is within the model's noise of the cheapest: the candidates begin with
// the tiles that were measured most.
std::optional<Gemm> tuned_by_cost(const Gemm& options, const Target& target, const isa::GpuRow& gpu,
                                  std::int64_t workspace, const GivenSettings& given) {
  constexpr double noise = 1.01;
  if (const auto out = tuned_by_rule(options, target, gpu, given)) return out;
  // Where lanes can read columns straight, sums by a second launch were slower each time.
  const bool partial = workspace > 0 && direct_candidates(options, target).empty();
  auto all = candidates(options, target, gpu, partial);
  if (workspace_bytes(options) == 0)  // else the caller splits the product
    std::erase_if(all, [&](const Gemm& each) { return workspace_bytes(each) > workspace; });
  if (all.empty()) return options;
  std::vector<Gemm> holding;
  std::ranges::copy_if(all, std::back_inserter(holding), given.hold);
  all = holding.empty() ? changed(std::move(all), given, target) : std::move(holding);
  if (all.empty()) return std::nullopt;
  std::vector<double> cycles;
  for (const Gemm& each : all) cycles.push_back(gemm_cost(each, target, gpu).cycles);
  const double least = *std::min_element(cycles.begin(), cycles.end());
  const auto near = [&](double each) { return each <= noise * least; };
  Gemm out = all[static_cast<std::size_t>(std::find_if(cycles.begin(), cycles.end(), near) -
                                          cycles.begin())];
  // Of the largest tiles, a fourth stage helps short sums only, and those of integers.
  const bool bytes = bits(options.a) == 8, integers = !info(options.a).floating;
  const bool four = bytes ? integers || bits(options.c) == 32 : options.k > 0 && options.k <= 4096;
  if (out.persistent && out.tile.m == 128 && out.tile.n == 256 && out.cluster == 1 && !four) {
    Gemm fewer = out;
    fewer.stages = std::min(out.stages, 3);
    if (given.hold(fewer)) out = fewer;
  }
  return out;
}

}  // namespace

std::optional<Gemm> tuned_with(const Gemm& options, const Gpu& gpu, std::int64_t workspace,
                               const GivenSettings& given) {
  const int width = bits(options.a);
  const auto row = row_of(gpu);
  if (!row || !gpu.target().has(Feature::async_copy) || width < 8 || width > 32 ||
      options.accumulator == f64)
    return options;
  if (options.m < 0 || options.n < 0 || options.k < 0 || options.cluster < 1 ||
      bits(options.b) == 0 || bits(options.c) == 0)
    return options;  // gemm() reports the error
  // Hours of work for the whole GPU; no count of tiles overflows below that.
  if (double{1} * options.m * options.n * options.k > 0x1p62) return options;
  return tuned_by_cost(options, gpu.target(), *row, workspace, given);
}

}  // namespace detail

Gemm tuned(const Gemm& options, const Gpu& gpu) { return tuned(options, gpu, 0); }

Gemm tuned(const Gemm& options, const Gpu& gpu, std::int64_t workspace) {
  return detail::tuned_with(options, gpu, workspace, {}).value_or(options);
}

}  // namespace tartan::TARTAN_ABI::kernels
