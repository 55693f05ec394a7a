// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/block_scaled.h"

#include "tools/kernels/families.h"

namespace tartan::tools {

void add_block_scaled(KernelRegistry& registry, const std::shared_ptr<ProductWords>& words) {
  const char* const group = "Options of block_scaled (and those of gemm)";
  registry.command()
      .add_option(
          "--scale", words->scale,
          "Type of the scales: ue8m0, one per 32 elements, or ue4m3, one per 16 elements of e2m1")
      ->capture_default_str()
      ->group(group);
  registry.command()
      .add_option("--kind", words->kind,
                  "mxf8f6f4, mxf4 or mxf4nvf4; default: the kind with the largest shape")
      ->group(group);
  registry.add(
      {"block_scaled",
       "block-scaled GEMM of e4m3 to e2m1, one scale per block along k",
       {"--m", "--n", "--k", "--multiple", "--multiple-c", "--type", "--a", "--b", "--c", "--tile",
        "--warps", "--stages", "--epilogue", "--scale", "--kind"},
       [=](const Target&) -> Result<Described> {
         const auto read = read_block_scaled(*words);
         if (!read) return read.diags();
         return Described{kernels::block_scaled(*read), Dim3{read->blocks(read->m, read->n)}};
       }});
}

}  // namespace tartan::tools
