// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/gate.h"

#include <fmt/format.h>

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::Activation;

Result<Activation> read_activation(const std::string& word) {
  if (word == "relu") return Activation::relu;
  if (word == "gelu") return Activation::gelu;
  if (word == "silu") return Activation::silu;
  if (word == "sigmoid") return Activation::sigmoid;
  return {"usage"_rule, fmt::format("--activation {}: expected relu, gelu, silu or sigmoid", word)};
}

}  // namespace

void add_gate(KernelRegistry& registry, const SharedProductWords& words) {
  const auto activation = std::make_shared<std::string>("silu");
  registry.add_option({.name = "activation",
                       .value = activation.get(),
                       .help = "Of the gate: relu, gelu, silu or sigmoid",
                       .group = "Options of gate (and --type)",
                       .shows_default = true});
  registry.add({"gate",
                "activation(gate) * up, elementwise",
                {"type", "activation"},
                [=](const Request&) -> Result<Described> {
                  const auto type = read_type(*words);
                  const auto of = read_activation(*activation);
                  if (!type) return type.diags();
                  if (!of) return of.diags();
                  const int each = kernels::gate_elements(*type);
                  return Described{.kernel = kernels::gate({.activation = *of, .type = *type}),
                                   .grid_of = [=](const LaunchSizes& sizes) {
                                     const std::int64_t blocks =
                                         (sizes.of("count") + each - 1) / each;
                                     return LaunchGrid{static_cast<std::uint32_t>(blocks)};
                                   }};
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
