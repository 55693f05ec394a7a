// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry/families.h"
#include "tartan/kernels/kernels.h"

namespace tartan::TARTAN_ABI::builtins {

void add_one_mma(KernelRegistry& registry) {
  registry.add(
      {"one_mma", "one mma.m16n8k16, f16 -> f32", {}, [](const Request&) -> Result<Described> {
         return Described{kernels::one_mma(), Dim3{}};
       }});
}

}  // namespace tartan::TARTAN_ABI::builtins
