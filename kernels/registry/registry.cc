// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/common/gpus.h"
#include "kernels/registry/families.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

bool takes(const BuiltinKernel& kernel, const std::string& option) {
  return std::ranges::find(kernel.options, option) != kernel.options.end();
}

}  // namespace

std::vector<WorkBuffer> Described::work(const Compiled& compiled, const LaunchSizes& sizes,
                                        const Dim3& launch) const {
  std::vector<WorkBuffer> out = work_of ? work_of(sizes, launch) : std::vector<WorkBuffer>{};
  std::erase_if(out, [&](const WorkBuffer& each) {
    return std::ranges::find(compiled.params, each.param, &CompiledParam::name) ==
           compiled.params.end();
  });
  return out;
}

KernelRegistry::KernelRegistry() {
  add_gemm(*this);
  add_block_scaled(*this);
  add_scaled_gemm(*this);
  add_k_grouped_gemm(*this);
  add_mixed_gemm(*this);
  add_attention(*this);
  add_delta_rule(*this);
  add_wmma_gemm(*this);
  add_transpose(*this);
  add_gate(*this);
  add_small_products(*this);
  add_one_mma(*this);
}

void KernelRegistry::add_option(Option option, OptionValue usual) {
  std::visit([&](auto& value) { option.value = &value; }, values_.emplace_back(std::move(usual)));
  options_.push_back(std::move(option));
}

const Option* KernelRegistry::find_option(std::string_view name) const {
  const auto at = std::ranges::find(options_, name, &Option::name);
  return at == options_.end() ? nullptr : &*at;
}

const BuiltinKernel* KernelRegistry::find(std::string_view name) const {
  const auto at = std::ranges::find(kernels_, name, &BuiltinKernel::name);
  return at == kernels_.end() ? nullptr : &*at;
}

Result<kernels::Gpu> KernelRegistry::gpu(const std::optional<Target>& target) const {
  const int multiprocessors = value<int>("multiprocessors");
  if (multiprocessors < 0)
    return {"usage"_rule, fmt::format("--multiprocessors {}: expected a number of at least 1, or 0 "
                                      "for those of the GPU",
                                      multiprocessors)};
  const std::string& name = value<std::string>("gpu");
  const auto gpu = name.empty()
                       ? Result<kernels::Gpu>(kernels::Gpu(target.value_or(Target::of({80, 0}))))
                   : target ? kernels::Gpu::find(name, *target)
                            : kernels::Gpu::find(name);
  if (!gpu || multiprocessors == 0) return gpu;
  return kernels::detail::GpuAccess::part(*gpu, multiprocessors);
}

Result<Described> KernelRegistry::describe(const BuiltinKernel& kernel, const Request& request,
                                           std::string_view prefix) const {
  const Diags refused = refused_options(kernel, request.given, prefix);
  if (!refused.ok()) return refused;
  const Diags clusters = refused_clusters(request, prefix);
  if (!clusters.ok()) return clusters;
  return kernel.describe(request);
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
    if (!has(name)) continue;  // a command's option, not a kernel's
    out.report("usage"_rule, {},
               fmt::format("{}{}: unsupported by kernel {}; {} {} it", prefix, name, kernel.name,
                           fmt::join(takers, ", "), takers.size() == 1 ? "supports" : "support"));
  }
  return out;
}

Diags KernelRegistry::refused_clusters(const Request& request, std::string_view prefix) const {
  Diags out;
  const Arch arch = request.gpu.target().arch;
  if (arch.has(Feature::clusters)) return out;
  for (const Option& each : options_) {
    const auto value = std::get_if<int*>(&each.value);
    if (each.name.starts_with("cluster") && value && **value > 1 && request.gives(each.name))
      out.report("usage"_rule, {},
                 fmt::format("{}{} {}: clusters require sm_90, the target is {}; leave it out",
                             prefix, each.name, **value, arch.text()));
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

}  // namespace tartan::TARTAN_ABI::builtins
