// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/attention.h"

#include "library/kernels/families.h"

namespace tartan::inline TARTAN_ABI::builtins {

void add_attention(KernelRegistry& registry, const SharedProductWords& words) {
  const char* const group = "Options of attention (and --type)";
  const auto options = std::make_shared<kernels::Attention>();
  registry.add_option({.name = "head-dim",
                       .value = &options->head_dim,
                       .help = "Head dimension, a multiple of 16",
                       .group = group,
                       .shows_default = true});
  registry.add_option(
      {.name = "causal",
       .value = &options->causal,
       .help = "Causal mask, bottom-right aligned: the last query attends to all keys",
       .group = group});
  registry.add(
      {"attention",
       "softmax(scale * Q * K^T) * V",
       {"type", "head-dim", "causal"},
       [=](const Target& target) -> Result<Described> {
         const auto type = read_type(*words);
         if (!type) return type.diags();
         kernels::Attention attention = *options;
         attention.type = *type;
         attention = tuned(attention, target);
         return Described{
             .kernel = kernels::attention(attention), .grid_of = [=](const LaunchSizes& sizes) {
               const auto queries = static_cast<int>(sizes.of("queries"));
               const auto heads = sizes.of("heads");
               return LaunchGrid{attention.blocks(queries), static_cast<std::uint32_t>(heads), {}};
             }};
       }});
}

}  // namespace tartan::inline TARTAN_ABI::builtins
