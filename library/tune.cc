// SPDX-License-Identifier: Apache-2.0
#include "tartan/tune.h"

#include <fmt/format.h>

#include <set>
#include <tuple>

#include "kernels/tuner/gemm_candidates.h"
#include "library/tune_bench.h"
#include "tartan/version.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

// "NVIDIA H100 80GB HBM3" of "NVIDIA H100 80GB HBM3 (sm_90), driver 13.0".
std::string name_of(const Device& device) {
  const std::string name = device.name();
  return name.substr(0, name.find(" ("));
}

Diags wrong(const Device& device, const Gemm& product, const TuneBudget& budget) {
  Diags out;
  const auto report = [&](const std::string& message) {
    out.report("kernel-option"_rule, {}, "tune: " + message);
  };
  for (const auto& [name, size] : {std::pair{"m", product.m}, {"n", product.n}, {"k", product.k}})
    if (size < 1)
      report(
          fmt::format("{} = {}: expected a constant of at least 1; the fastest configuration "
                      "depends on it",
                      name, size));
  const int width = bits(product.a);
  if (width < 8 || width > 32 || product.accumulator == f64)
    report(
        fmt::format("{} elements: expected elements of 8 to 32 bits, of which there are "
                    "configurations to choose from",
                    name(product.a)));
  if (product.batched) report("batched = true: expected a single product");
  if (!(budget.seconds > 0)) report(fmt::format("seconds = {}: expected more", budget.seconds));
  if (budget.candidates < 1)
    report(fmt::format("candidates = {}: expected at least 1", budget.candidates));
  if (!isa::find_gpu(device.arch()))
    report(fmt::format("{}: expected sm_80 or later", device.arch().text()));
  return out;
}

// What makes configurations unlike: the model is wrong about all of a kind at once.
auto kind_of(const Gemm& each) {
  const Tile& tile = each.tile;
  return std::tuple(tile.m, tile.n, tile.warps_n, tile.products, each.producers > 0, each.swap,
                    each.direct, each.persistent, each.cluster * each.cluster_columns > 1,
                    each.cluster_splits, each.splits);
}

// Those of the model that fit into the workspace. The first is what tuned() chooses. Then the
// model's best and its best of kinds that are not there yet take turns.
std::vector<Gemm> chosen(const Gemm& product, const Gpu& gpu, const TuneBudget& budget) {
  std::vector<Gemm> out{tuned(product, gpu, budget.workspace)};
  auto all = kernels::detail::ranked(product, gpu.target(), *kernels::detail::row_of(gpu),
                                     budget.workspace > 0, 100000);
  std::erase_if(all, [&](const kernels::detail::Candidate& each) {
    return workspace_bytes(each.options) > budget.workspace;
  });
  std::set kinds{kind_of(out[0])};
  std::set texts{tartan::detail::text_of(out[0])};
  const auto add = [&](const Gemm& each) {
    if (!texts.insert(tartan::detail::text_of(each)).second) return false;
    kinds.insert(kind_of(each)), out.push_back(each);
    return true;
  };
  std::size_t next = 0, other = 0;  // of `all`: the best, the best of another kind
  while (std::ssize(out) < budget.candidates && next < all.size()) {
    while (next < all.size() && !add(all[next].options)) ++next;
    while (other < all.size() && kinds.contains(kind_of(all[other].options))) ++other;
    if (other < all.size() && std::ssize(out) < budget.candidates) add(all[other].options);
  }
  return out;
}

}  // namespace

Gpu Gpu::of(const Device& device) { return of(device, Target::of(device.arch())); }

Gpu Gpu::of(const Device& device, const Target& target) {
  return kernels::detail::GpuAccess::of(name_of(device), device.arch(), target,
                                        device.multiprocessors());
}

TunedOn tuned_on(const Device& device) {
  return {name_of(device), device.assembler(), fmt::format("{}, {}", version(), code_generator())};
}

Gemm tuned(const Gemm& product, const Device& device, const Tuning& tuning,
           std::int64_t workspace) {
  const Gpu gpu = Gpu::of(device);
  const auto found = tuning.find(product, gpu.target(), tuned_on(device), workspace);
  return found ? *found : tuned(product, gpu, workspace);
}

Result<TuneResult> tune(const Device& device, const Gemm& product, const TuneBudget& budget) {
  if (const Diags diags = wrong(device, product, budget); !diags.ok()) return diags;
  if (device.emulated())
    return {"no-device"_rule,
            "tune measures on a GPU, and this device is the emulator: NVIDIA's driver and a GPU "
            "are needed; Device::open(\"cuda\") says which of them is missing"};
  auto cache = budget.cache ? Result<Cache>(*budget.cache) : Cache::open();
  if (!cache) return cache.diags();
  const Gpu gpu = Gpu::of(device);
  const isa::GpuRow row = *kernels::detail::row_of(gpu);
  auto bench = tartan::detail::DeviceBench::make(device, product, row, *cache);
  if (!bench) return bench.diags();
  auto found = tartan::detail::search(**bench, chosen(product, gpu, budget), budget.seconds);
  if (!found) return found.diags();
  TuneResult out;
  out.trials = std::move(found->trials);
  const Trial& best = out.trials[found->best];
  out.best = {tuned_on(device), gpu.target().arch.text(), best.options, best.us};
  out.seconds = (*bench)->seconds();
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
