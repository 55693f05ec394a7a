// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/k_grouped_gemm.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

using kernels::KGroupedGemm;

void add_k_grouped_gemm(KernelRegistry& registry, const SharedProductWords& words,
                        const std::shared_ptr<const ScaledWords>& scaled) {
  const auto accumulate = std::make_shared<bool>(false);
  registry.add_option({.name = "accumulate",
                       .value = accumulate.get(),
                       .help = "Adds the products to what C has",
                       .group = "Options of k_grouped_gemm (and --m, --n, --k, --tile, --warps, "
                                "--stages, --cluster, --group, --share-a)"});
  registry.add({"k_grouped_gemm",
                "fp8 GEMM of groups along k, a scale for 128 of each row of A and column of B",
                {"m", "n", "k", "tile", "warps", "stages", "cluster", "group", "share-a",
                 "accumulate", "gpu", "multiprocessors"},
                [=](const Request& request) -> Result<Described> {
                  const auto read = read_k_grouped_gemm(*words, *scaled, *accumulate, request);
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
