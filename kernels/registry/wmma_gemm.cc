// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/wmma_gemm.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

void add_wmma_gemm(KernelRegistry& registry) {
  registry.add({"wmma_gemm",
                "GEMM of f16 through wmma.m16n16k16, sizes as parameters",
                {"multiple", "multiple-c", "a-major", "b-major"},
                [&registry](const Request& request) -> Result<Described> {
                  const auto read = read_options<kernels::Gemm>(registry, request);
                  if (!read) return read.diags();
                  const kernels::WmmaGemm options{.a_major = read->a_major,
                                                  .b_major = read->b_major,
                                                  .multiple = read->multiple,
                                                  .multiple_c = read->multiple_c};
                  return Described{
                      .kernel = kernels::wmma_gemm(options),
                      .grid_of = [=](const LaunchSizes& sizes) {
                        return LaunchGrid{wmma_tile(options).blocks(sizes.of("m"), sizes.of("n"))};
                      }};
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
