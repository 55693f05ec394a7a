// SPDX-License-Identifier: Apache-2.0
#include "library/kernels/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "library/kernels/families.h"

namespace tartan::inline TARTAN_ABI::builtins {
namespace {

bool takes(const BuiltinKernel& kernel, const std::string& option) {
  return std::ranges::find(kernel.options, option) != kernel.options.end();
}

}  // namespace

KernelRegistry::KernelRegistry() {
  const auto words = std::make_shared<ProductWords>();
  gpu_name_ = &words->gpu;
  add_product_options(*this, *words);
  add_gemm(*this, words);
  add_block_scaled(*this, words);
  add_scaled_gemm(*this, words);
  add_mixed_gemm(*this, words);
  add_attention(*this, words);
  add_wmma_gemm(*this, words);
  add_transpose(*this, words);
  add_gate(*this, words);
  add_small_products(*this, words);
  add_lessons(*this);
}

const BuiltinKernel* KernelRegistry::find(std::string_view name) const {
  const auto at = std::ranges::find(kernels_, name, &BuiltinKernel::name);
  return at == kernels_.end() ? nullptr : &*at;
}

Result<kernels::Gpu> KernelRegistry::gpu(const std::optional<Target>& target) const {
  if (gpu_name_->empty()) return kernels::Gpu(target.value_or(Target::of({80, 0})));
  return target ? kernels::Gpu::find(*gpu_name_, *target) : kernels::Gpu::find(*gpu_name_);
}

Diags KernelRegistry::refused_options(const BuiltinKernel& kernel,
                                      std::span<const std::string> given,
                                      std::string_view prefix) const {
  Diags out;
  for (const std::string& name : given) {
    if (takes(kernel, name)) continue;
    std::vector<std::string_view> takers;
    for (const BuiltinKernel& each : kernels_)
      if (takes(each, name)) takers.push_back(each.name);
    if (takers.empty()) continue;  // a command's option, not a kernel's
    out.report("usage"_rule, {},
               fmt::format("{}{}: unsupported by kernel {}; {} {} it", prefix, name, kernel.name,
                           fmt::join(takers, ", "), takers.size() == 1 ? "supports" : "support"));
  }
  return out;
}

Diags about_kernel(const std::string& kernel, const Diags& diags) {
  Diags out;
  for (Diag diag : diags) {
    diag.place = {};
    diag.source.clear();
    diag.message = fmt::format("{}: {}", kernel, diag.message);
    out.add(std::move(diag));
  }
  return out;
}

}  // namespace tartan::inline TARTAN_ABI::builtins
