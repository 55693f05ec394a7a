// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/gate.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

using kernels::Gate;

void add_gate(KernelRegistry& registry) {
  registry.add({"gate", "activation(gate) * up, elementwise", add_options<Gate>(registry, "gate"),
                [&registry](const Request& request) -> Result<Described> {
                  const auto options = read_options<Gate>(registry, request);
                  if (!options) return options.diags();
                  const int each = kernels::gate_elements(options->type);
                  return Described{
                      .kernel = kernels::gate(*options), .grid_of = [=](const LaunchSizes& sizes) {
                        const std::int64_t blocks = (sizes.of("count") + each - 1) / each;
                        return LaunchGrid{static_cast<std::uint32_t>(blocks)};
                      }};
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
