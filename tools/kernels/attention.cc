// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/attention.h"

#include "tools/kernels/families.h"

namespace tartan::tools {

void add_attention(KernelRegistry& registry, const SharedProductWords& words) {
  const char* const group = "Options of attention (and --type)";
  const auto options = std::make_shared<kernels::Attention>();
  registry.command()
      .add_option("--head-dim", options->head_dim, "Head dimension, a multiple of 16")
      ->capture_default_str()
      ->group(group);
  registry.command()
      .add_flag("--causal", options->causal,
                "Causal mask, bottom-right aligned: the last query attends to all keys")
      ->group(group);
  registry.add({"attention",
                "softmax(scale * Q * K^T) * V",
                {"--type", "--head-dim", "--causal"},
                [=](const Target& target) -> Result<Described> {
                  const auto type = read_type(*words);
                  if (!type) return type.diags();
                  kernels::Attention attention = *options;
                  attention.type = *type;
                  return Described{kernels::attention(tuned(attention, target))};
                }});
}

}  // namespace tartan::tools
