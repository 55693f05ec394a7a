// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/mixed_gemm.h"

#include <fmt/format.h>

#include "kernels/registry/families.h"
#include "kernels/registry/work_space.h"

namespace tartan::TARTAN_ABI::builtins {

void add_mixed_gemm(KernelRegistry& registry, const SharedProductWords& words) {
  const char* const group = "Options of mixed_gemm (and --m, --n, --k, --type)";
  struct Words {
    std::string weight = "u4";
    int scale_group = kernels::MixedGemm{}.group;
    bool zeros = false;
  };
  const auto own = std::make_shared<Words>();
  registry.add_option({.name = "weight",
                       .value = &own->weight,
                       .help = "Type of the weights: u4 or u8",
                       .group = group,
                       .shows_default = true});
  registry.add_option({.name = "scale-group",
                       .value = &own->scale_group,
                       .help = "Weights along k that share a scale: 64 or 128",
                       .group = group,
                       .shows_default = true});
  registry.add_option({.name = "zeros",
                       .value = &own->zeros,
                       .help = "A zero point for each scale; otherwise it is 8, or 128 with u8",
                       .group = group});
  registry.add(
      {"mixed_gemm",
       "X * W with weights of 4 or 8 bits (W4A16, W8A16) and a scale for each group",
       {"m", "n", "k", "type", "weight", "scale-group", "zeros", "gpu", "multiprocessors"},
       [=](const Request& request) -> Result<Described> {
         const auto type = read_type(*words);
         if (!type) return type.diags();
         const bool four = own->weight == "u4";
         if (!four && own->weight != "u8")
           return {"usage"_rule, fmt::format("--weight {}: expected u4 or u8", own->weight)};
         kernels::MixedGemm with{.m = words->m, .n = words->n, .k = words->k};
         with.type = *type, with.weight = four ? Type::u4 : Type::u8;
         with.group = own->scale_group, with.zeros = own->zeros;
         with = tuned(with, request.gpu);
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
