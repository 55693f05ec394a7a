// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/block_scaled.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

using kernels::BlockScaled;

void add_block_scaled(KernelRegistry& registry) {
  registry.add({"block_scaled", "block-scaled GEMM of e4m3 to e2m1, one scale per block along k",
                add_options<BlockScaled>(registry, "block_scaled"),
                [&registry](const Request& request) -> Result<Described> {
                  OptionReader reader(registry, request);
                  BlockScaled options;
                  reader.read(options);
                  reader.check(options.m, options.n, options.k, options.a, options.b, options.c);
                  const auto read = reader.result(options);
                  if (!read) return read.diags();
                  if (!gives_schedule<BlockScaled>(request)) options = tuned(options, request.gpu);
                  const auto grid = [=](int m, int n, int multiprocessors) {
                    return options.grid_x(m, n, multiprocessors);
                  };
                  return Described{kernels::block_scaled(options),
                                   Dim3{grid(options.m, options.n, request.gpu.multiprocessors())},
                                   [=](const LaunchSizes& sizes) {
                                     return LaunchGrid{grid(size_of(sizes, "m", options.m),
                                                            size_of(sizes, "n", options.n),
                                                            sizes.multiprocessors)};
                                   }};
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
