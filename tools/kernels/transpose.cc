// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/transpose.h"

#include "tools/kernels/families.h"

namespace tartan::tools {

void add_transpose(KernelRegistry& registry, const SharedProductWords& words) {
  registry.add({"transpose",
                "transpose of 16-bit elements through ldmatrix.trans",
                {"--multiple"},
                [=](const Target&) -> Result<Described> {
                  const auto read = read_gemm(*words);
                  if (!read) return read.diags();
                  return Described{kernels::transpose(read->multiple)};
                }});
}

}  // namespace tartan::tools
