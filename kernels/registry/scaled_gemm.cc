// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/scaled_gemm.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

using kernels::Grouping;
using kernels::ScaledGemm;

void add_scaled_gemm(KernelRegistry& registry, const SharedProductWords& words) {
  const char* const group =
      "Options of scaled_gemm (and --m, --n, --k, --c, --tile, --warps, --stages, --cluster, "
      "--cluster-splits, --group)";
  const auto own = std::make_shared<ScaledWords>();
  registry.add_option({.name = "grouping",
                       .value = &own->grouping,
                       .help = "Whether rows of A belong to groups with a B each: none, contiguous "
                               "(group_of_row) or masked (rows_of_group)",
                       .group = group,
                       .shows_default = true});
  registry.add_option({.name = "blocks-k",
                       .value = &own->blocks_k,
                       .help =
                           "K-tiles of a stage; with several, one is multiplied while another is "
                           "promoted; default with --tile: 1",
                       .group = group});
  registry.add_option({.name = "share-a",
                       .value = &own->share_a,
                       .help = "CTAs of a cluster share A, not B",
                       .group = group});
  registry.add(
      {"scaled_gemm",
       "fp8 GEMM, a scale for 1x128 of A and 128x128 of B",
       {"m", "n", "k", "c", "tile", "warps", "stages", "cluster", "group", "grouping", "blocks-k",
        "share-a", "cluster-splits", "gpu", "multiprocessors"},
       [=](const Request& request) -> Result<Described> {
         const auto read = read_scaled_gemm(*words, *own, request);
         if (!read) return read.diags();
         const ScaledGemm options = *read;
         const bool masked = options.grouping == Grouping::masked;
         Described out{
             .kernel = kernels::scaled_gemm(options), .grid_of = [=](const LaunchSizes& sizes) {
               return LaunchGrid{options.grid_x(
                   size_of(sizes, "m", options.m), size_of(sizes, "n", options.n),
                   sizes.multiprocessors, masked ? static_cast<int>(sizes.of("groups")) : 1)};
             }};
         constexpr int many = 1 << 16;  // masked: whatever the groups
         if (masked) out.grid = Dim3{options.grid_x(many, many, request.gpu.multiprocessors())};
         else if (options.m && options.n && options.k)
           out.grid = Dim3{options.grid_x(options.m, options.n, request.gpu.multiprocessors())};
         return out;
       }});
  add_k_grouped_gemm(registry, words, own);
}

}  // namespace tartan::TARTAN_ABI::builtins
