// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/regret_kernels.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <thread>

#include "kernels/common/keys.h"

namespace gpu {

using namespace tartan;

RegretKernels::Key RegretKernels::key(const Product& product, const Config& config) {
  return {product.a, divisors_of(product), config.text + (config.dynamic ? ":dynamic" : "")};
}

RegretKernels::RegretKernels(const Target& target, const std::vector<Drawn>& problems, int share,
                             int shares)
    : target_(target) {
  for (const Drawn& each : problems)
    for (const Config& config : regret_configs(each.product, target)) {
      if (!sensible(config, each.product)) continue;
      auto& kernel = all_[key(each.product, config)];
      if (kernel) continue;
      kernel = std::make_unique<RegretKernel>();
      kernel->config = config, kernel->options = options_of(config, each.product);
      const Divisors divisors = divisors_of(each.product);
      kernel->options.multiple = divisors.operands, kernel->options.multiple_c = divisors.c;
    }
  keep_share(share, shares);
  compile_all();
}

RegretKernels::RegretKernels(const Target& target, const std::vector<kernels::Gemm>& all, int share,
                             int shares)
    : target_(target) {
  for (const kernels::Gemm& each : all) {
    auto& kernel = all_[{each.a, {}, kernels::key_of(each)}];
    if (kernel) continue;
    kernel = std::make_unique<RegretKernel>();
    kernel->options = kernel->config.gemm = each;
    kernel->config.text = config_text(each);
  }
  keep_share(share, shares);
  compile_all();
}

RegretKernel* RegretKernels::of(const kernels::Gemm& options) const {
  const auto found = all_.find({options.a, {}, kernels::key_of(options)});
  return found == all_.end() ? nullptr : found->second.get();
}

void RegretKernels::keep_share(int share, int shares) {
  int number = 0;
  if (shares > 1) std::erase_if(all_, [&](const auto&) { return number++ % shares != share; });
}

void RegretKernels::compile_all() {
  std::vector<RegretKernel*> work;
  for (const auto& [key, kernel] : all_) work.push_back(kernel.get());
  std::atomic<std::size_t> next = 0;
  const auto compile_some = [&] {
    for (std::size_t i; (i = next++) < work.size();) {
      RegretKernel& each = *work[i];
      auto gemm = compile(kernels::gemm(each.options), target_);
      if (!gemm) each.refused = gemm.diags();
      else each.compiled = std::move(*gemm);
      if (!gemm || !each.has_sum()) continue;
      auto sum = compile(kernels::gemm_sum(each.options), target_);
      if (!sum) each.refused = sum.diags();
      else each.sum_compiled = std::move(*sum);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i)
    threads.emplace_back(compile_some);
  compile_some();
  for (std::thread& each : threads) each.join();
  for (const auto& [key, kernel] : all_)
    if (!kernel->refused.ok())
      std::cerr << name(kernel->options.a) << ' ' << kernel->config.text << ":\n"
                << kernel->refused.text();
}

std::vector<RegretKernel*> RegretKernels::of(const Product& product) const {
  std::vector<RegretKernel*> out;
  for (const Config& config : regret_configs(product, target_)) {
    const auto found = all_.find(key(product, config));
    out.push_back(found == all_.end() || !sensible(config, product) ? nullptr
                                                                    : found->second.get());
  }
  return out;
}

bool RegretKernels::load(const Loader& loader, RegretKernel& kernel) {
  const auto loaded = [&](const Compiled& compiled, std::optional<LoadedKernel>& out) {
    if (out || !kernel.refused.ok()) return;
    const auto ready = loader.load(compiled);
    if (ready) out = (*ready)->kernel;
    else kernel.refused = ready.diags();
  };
  const bool before = kernel.refused.ok();
  loaded(kernel.compiled, kernel.kernel);
  if (kernel.has_sum()) loaded(kernel.sum_compiled, kernel.sum);
  if (before && !kernel.refused.ok())
    std::cerr << kernel.config.text << ":\n" << kernel.refused.text();
  return kernel.refused.ok();
}

void RegretKernels::load_all(const Loader& loader) {
  for (const auto& [key, kernel] : all_) (void)load(loader, *kernel);
}

}  // namespace gpu
