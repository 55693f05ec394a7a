// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/k_grouped_gemm.h"

#include "kernels/registry/families.h"
#include "kernels/registry/given.h"

namespace tartan::TARTAN_ABI::builtins {

using kernels::KGroupedGemm;

Result<KGroupedGemm> read_k_grouped_gemm(const KernelRegistry& registry, const Request& request) {
  OptionReader reader(registry, request);
  KGroupedGemm out;
  reader.read(out);
  reader.check(out.m, out.n, out.k, Type::e4m3, Type::e4m3, f32);
  const auto read = reader.result(out);
  return read && !request.gives("tile") ? chosen(out, request) : read;
}

void add_k_grouped_gemm(KernelRegistry& registry) {
  registry.add({"k_grouped_gemm",
                "fp8 GEMM of groups along k, a scale for 128 of each row of A and column of B",
                add_tuned_options<KGroupedGemm>(registry, "k_grouped_gemm", {"products"}),
                [&registry](const Request& request) -> Result<Described> {
                  const auto read = read_k_grouped_gemm(registry, request);
                  if (!read) return read.diags();
                  const KGroupedGemm options = *read;
                  constexpr int many = 1 << 16;  // whatever the groups
                  return Described{
                      .kernel = kernels::k_grouped_gemm(options),
                      .grid = Dim3{options.grid_x(many, many, 1, request.gpu.multiprocessors())},
                      .grid_of = [=](const LaunchSizes& sizes) {
                        return LaunchGrid{options.grid_x(
                            size_of(sizes, "m", options.m), size_of(sizes, "n", options.n),
                            static_cast<int>(sizes.of("groups")), sizes.multiprocessors)};
                      }};
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
