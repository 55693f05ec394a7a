// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/small_products.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

using kernels::SmallProducts;

void add_small_products(KernelRegistry& registry) {
  registry.add(
      {"small_products", "batch of products of up to 64 x 64 x 64, of one to eight warps each",
       add_tuned_options<SmallProducts>(registry, "small_products"),
       [&registry](const Request& request) -> Result<Described> {
         auto read = read_options<SmallProducts>(registry, request);
         if (!read) return read.diags();
         if (!request.gives("c")) read->c = usual_accumulator(read->type);
         const SmallProducts with = tuned(*read, request.gpu);
         return Described{.kernel = kernels::small_products(with),
                          .grid_of = [=](const LaunchSizes& launch) {
                            return LaunchGrid{with.blocks(static_cast<int>(launch.of("batch")))};
                          }};
       }});
}

}  // namespace tartan::TARTAN_ABI::builtins
