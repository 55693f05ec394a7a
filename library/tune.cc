// SPDX-License-Identifier: Apache-2.0
#include "tartan/tune.h"

#include <fmt/format.h>

#include "dsl/kernels/gemm_candidates.h"
#include "library/tune_bench.h"
#include "tartan/version.h"

namespace tartan::inline TARTAN_ABI::kernels {
namespace {

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
  if (!detail::find_gpu(device.arch()))
    report(fmt::format("{}: expected sm_80 or later", device.arch().text()));
  return out;
}

// The model's best that fit into the workspace. The first is what tuned() chooses.
std::vector<Gemm> chosen(const Gemm& product, const Target& target, const TuneBudget& budget) {
  const detail::GpuRow& gpu = *detail::find_gpu(target.arch);
  std::vector<Gemm> out{tuned(product, target, budget.workspace)};
  const auto same = [](const Gemm& a, const Gemm& b) {
    return detail::text_of(a) == detail::text_of(b);
  };
  for (const detail::Candidate& each :
       detail::ranked(product, target, gpu, budget.workspace > 0, 100000)) {
    if (std::ssize(out) >= budget.candidates) break;
    if (workspace_bytes(each.options) <= budget.workspace && !same(each.options, out[0]))
      out.push_back(each.options);
  }
  return out;
}

}  // namespace

TunedOn tuned_on(const Device& device) {
  const std::string name = device.name();  // "NVIDIA H100 80GB HBM3 (sm_90), driver 13.0"
  return {name.substr(0, name.find(" (")), device.assembler(),
          fmt::format("{}, {}", version(), code_generator())};
}

Gemm tuned(const Gemm& product, const Device& device, const Tuning& tuning,
           std::int64_t workspace) {
  const Target target = Target::of(device.arch());
  const auto found = tuning.find(product, target, tuned_on(device), workspace);
  return found ? *found : tuned(product, target, workspace);
}

Result<TuneResult> tune(const Device& device, const Gemm& product, const TuneBudget& budget) {
  if (const Diags diags = wrong(device, product, budget); !diags.ok()) return diags;
  if (device.emulated())
    return {"no-device"_rule,
            "tune measures on a GPU, and this device is the emulator: NVIDIA's driver and a GPU "
            "are needed; Device::open(\"cuda\") says which of them is missing"};
  auto cache = budget.cache ? Result<Cache>(*budget.cache) : Cache::open();
  if (!cache) return cache.diags();
  const Target target = Target::of(device.arch());
  auto bench = detail::DeviceBench::make(device, product, *detail::find_gpu(target.arch), *cache);
  if (!bench) return bench.diags();
  auto found = detail::search(**bench, chosen(product, target, budget), budget.seconds);
  if (!found) return found.diags();
  TuneResult out;
  out.trials = std::move(found->trials);
  const Trial& best = out.trials[found->best];
  out.best = {tuned_on(device), target.arch.text(), best.options, best.us};
  out.seconds = (*bench)->seconds();
  return out;
}

}  // namespace tartan::inline TARTAN_ABI::kernels
