// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/gate.h"

#include <fmt/format.h>

#include "tools/kernels/families.h"

namespace tartan::tools {
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
  registry.command()
      .add_option("--activation", *activation, "Of the gate: relu, gelu, silu or sigmoid")
      ->capture_default_str()
      ->group("Options of gate (and --type)");
  registry.add({"gate",
                "activation(gate) * up, elementwise",
                {"--type", "--activation"},
                [=](const Target&) -> Result<Described> {
                  const auto type = read_type(*words);
                  const auto of = read_activation(*activation);
                  if (!type) return type.diags();
                  if (!of) return of.diags();
                  return Described{kernels::gate({.activation = *of, .type = *type})};
                }});
}

}  // namespace tartan::tools
