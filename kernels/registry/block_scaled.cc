// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/block_scaled.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

void add_block_scaled(KernelRegistry& registry, const std::shared_ptr<ProductWords>& words) {
  const char* const group = "Options of block_scaled (and those of gemm)";
  registry.add_option(
      {.name = "scale",
       .value = &words->scale,
       .help =
           "Type of the scales: ue8m0, one per 32 elements, or ue4m3, one per 16 elements of e2m1",
       .group = group,
       .shows_default = true});
  registry.add_option(
      {.name = "kind",
       .value = &words->kind,
       .help = "mxf8f6f4, mxf4 or mxf4nvf4; default: the kind with the largest shape",
       .group = group});
  registry.add({"block_scaled",
                "block-scaled GEMM of e4m3 to e2m1, one scale per block along k",
                {"m", "n", "k", "multiple", "multiple-c", "type", "a", "b", "c", "tile", "warps",
                 "stages", "epilogue", "scale", "kind"},
                [=](const Request&) -> Result<Described> {
                  const auto read = read_block_scaled(*words);
                  if (!read) return read.diags();
                  const kernels::BlockScaled options = *read;
                  return Described{
                      kernels::block_scaled(options), Dim3{options.blocks(options.m, options.n)},
                      [=](const LaunchSizes& sizes) {
                        return LaunchGrid{options.blocks(size_of(sizes, "m", options.m),
                                                         size_of(sizes, "n", options.n))};
                      }};
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
