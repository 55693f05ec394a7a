// SPDX-License-Identifier: Apache-2.0
// kernels/registry/families.h - the functions that add kernels to the registry, one per source
// here. Options that several kernels have are those of the first.
#pragma once

#include "kernels/registry/read_options.h"
#include "kernels/registry/registry.h"
#include "kernels/registry/work_space.h"

namespace tartan::TARTAN_ABI::builtins {

/// Its reduction and its sparse form, too, and the options --gpu and --multiprocessors.
void add_gemm(KernelRegistry& registry);
void add_block_scaled(KernelRegistry& registry);
void add_scaled_gemm(KernelRegistry& registry);
void add_k_grouped_gemm(KernelRegistry& registry);
void add_mixed_gemm(KernelRegistry& registry);
/// Its gradients, decode and mla_decode.
void add_attention(KernelRegistry& registry);
/// Its two kernels, and delta_rule_decode.
void add_delta_rule(KernelRegistry& registry);
void add_wmma_gemm(KernelRegistry& registry);
void add_transpose(KernelRegistry& registry);
void add_gate(KernelRegistry& registry);
void add_small_products(KernelRegistry& registry);
void add_one_mma(KernelRegistry& registry);

/// add_options() of a kernel whose other settings are chosen for a GPU.
template <typename Options>
std::vector<std::string> add_tuned_options(KernelRegistry& registry, std::string_view kernel,
                                           std::initializer_list<std::string_view> except = {}) {
  auto out = add_options<Options>(registry, kernel, except);
  out.insert(out.end(), {"gpu", "multiprocessors"});
  return out;
}

/// Adds a kernel whose schedule is chosen for a GPU; `family` heads its options in the help.
/// `variants` are those of the options as they were read.
template <typename Options>
void add_tuned(KernelRegistry& registry, const char* family, const char* name, const char* summary,
               Kernel (*kernel)(const Options&),
               LaunchGrid (*grid)(const Options&, const LaunchSizes&), Options usual = {},
               std::vector<Variant> (*variants)(const Options&, const kernels::Gpu&) = nullptr) {
  registry.add({name, summary, add_tuned_options<Options>(registry, family),
                [=, &registry](const Request& request) -> Result<Described> {
                  const auto read = read_options(registry, request, usual);
                  if (!read) return read.diags();
                  const Options with = tuned(*read, request.gpu);
                  Described out{.kernel = kernel(with), .grid_of = [=](const LaunchSizes& sizes) {
                                  return grid(with, sizes);
                                }};
                  if constexpr (requires { work_of(with); }) out.work_of = work_of(with);
                  if (variants) out.variants = variants(*read, request.gpu);
                  return out;
                }});
}

/// A size of a launch: constant, or if 0 the argument of that parameter.
inline int size_of(const LaunchSizes& sizes, std::string_view param, int constant) {
  return constant ? constant : static_cast<int>(sizes.of(param));
}

}  // namespace tartan::TARTAN_ABI::builtins
