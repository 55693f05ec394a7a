// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/transpose.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

void add_transpose(KernelRegistry& registry) {
  registry.add({"transpose",
                "transpose of 16-bit elements through ldmatrix.trans",
                {"multiple"},
                [&registry](const Request& request) -> Result<Described> {
                  const auto read = read_options<kernels::Gemm>(registry, request);
                  if (!read) return read.diags();
                  return Described{
                      .kernel = kernels::transpose(read->multiple),
                      .grid_of = [](const LaunchSizes& sizes) {
                        const auto tiles = [&](const char* param) {
                          return static_cast<std::uint32_t>((sizes.of(param) + 63) / 64);
                        };
                        return LaunchGrid{tiles("cols"), tiles("rows")};
                      }};
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
