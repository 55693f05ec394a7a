// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/mixed_gemm.h"

#include "kernels/registry/families.h"
#include "kernels/registry/work_space.h"

namespace tartan::TARTAN_ABI::builtins {

using kernels::MixedGemm;

void add_mixed_gemm(KernelRegistry& registry) {
  registry.add({"mixed_gemm",
                "X * W with weights of 4 or 8 bits (W4A16, W8A16) and a scale for each group",
                add_tuned_options<MixedGemm>(registry, "mixed_gemm"),
                [&registry](const Request& request) -> Result<Described> {
                  const auto read = read_options<MixedGemm>(registry, request, {.type = f16});
                  if (!read) return read.diags();
                  const MixedGemm with = tuned(*read, request.gpu);
                  Described out{.kernel = kernels::mixed_gemm(with),
                                .grid_of =
                                    [=](const LaunchSizes& sizes) {
                                      return LaunchGrid{with.blocks(size_of(sizes, "m", with.m),
                                                                    size_of(sizes, "n", with.n),
                                                                    sizes.multiprocessors)};
                                    },
                                .work_of = work_of(with)};
                  // Otherwise the grid says how large P is.
                  if (!with.sums_in_memory() && with.m > 0 && with.n > 0)
                    out.grid = Dim3{with.blocks(with.m, with.n, request.gpu.multiprocessors())};
                  return out;
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
