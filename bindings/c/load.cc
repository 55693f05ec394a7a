// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/load.h"

#include <future>
#include <vector>

#include "bindings/c/cache.h"
#ifdef TARTAN_LLVM
#include "tartan/load.h"
#endif

namespace tartan::TARTAN_ABI::c {

Result<LoadedKernel> loaded(Device& device, const std::string& ptx, const std::string& name,
                            StepTimes& times) {
  const StepClock clock(times);
  const auto module = device.load(ptx, name);
  if (!module) return module.diags();
  return module->kernel(name);
}

#ifdef TARTAN_LLVM

Result<Compiled> compiled(const Kernel& kernel, Arch arch) {
  const auto cache = used_cache();
  return cache ? compile(kernel, arch, *cache) : compile(kernel, arch);
}

Result<LoadedKernel> loaded(Device& device, const Compiled& compiled, StepTimes& times) {
  const auto cache = used_cache();
  if (!cache) return loaded(device, compiled.ptx, compiled.name, times);
  const auto ready = Loader(device, *cache).load(compiled);
  if (!ready) return ready.diags();
  times = (*ready)->times;
  return (*ready)->kernel;
}

namespace {

Result<LoadedVariant> loaded_variant(Device device, const builtins::Variant& variant, Arch arch) {
  auto with = compiled(variant.kernel, arch);
  if (!with) return builtins::about_kernel(variant.kernel.name(), with.diags());
  StepTimes times;
  auto kernel = loaded(device, *with, times);
  if (!kernel) return kernel.diags();
  return LoadedVariant{*std::move(with), *std::move(kernel)};
}

}  // namespace

Result<std::vector<LoadedVariant>> loaded_variants(const Device& device,
                                                   const tartan_kernel::State& kernel) {
  std::vector<std::future<Result<LoadedVariant>>> each;
  for (const builtins::Variant& variant : kernel.described.variants)
    each.push_back(std::async([&variant, device, arch = kernel.compiled.target.arch] {
      return loaded_variant(device, variant, arch);
    }));
  std::vector<LoadedVariant> out;
  Diags diags;
  for (auto& future : each) {
    auto variant = future.get();
    if (variant) out.push_back(*std::move(variant));
    else diags.append(variant.diags());
  }
  if (!diags.ok()) return diags;
  return out;
}

#endif

}  // namespace tartan::TARTAN_ABI::c
