// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/wmma_gemm.h"

#include "tools/kernels/families.h"

namespace tartan::tools {

void add_wmma_gemm(KernelRegistry& registry, const SharedProductWords& words) {
  registry.add({"wmma_gemm",
                "GEMM of f16 through wmma.m16n16k16, sizes as parameters",
                {"--multiple", "--multiple-c", "--a-major", "--b-major"},
                [=](const Target&) -> Result<Described> {
                  const auto read = read_gemm(*words);
                  if (!read) return read.diags();
                  return Described{kernels::wmma_gemm({.a_major = read->a_major,
                                                       .b_major = read->b_major,
                                                       .multiple = read->multiple,
                                                       .multiple_c = read->multiple_c})};
                }});
}

}  // namespace tartan::tools
