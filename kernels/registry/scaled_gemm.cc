// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/scaled_gemm.h"

#include "kernels/registry/families.h"
#include "kernels/registry/given.h"

namespace tartan::TARTAN_ABI::builtins {

using kernels::Grouping;
using kernels::ScaledGemm;

Result<ScaledGemm> read_scaled_gemm(const KernelRegistry& registry, const Request& request) {
  OptionReader reader(registry, request);
  ScaledGemm out;
  reader.read(out);
  out.parts_n = out.tile.n > 160 ? 2 : 1, out.overlap = out.blocks_k > 1;
  reader.check(out.m, out.n, out.k, Type::e4m3, Type::e4m3, out.c);
  const auto read = reader.result(out);
  const auto full = read && !request.gives("tile") ? chosen(out, request) : read;
  if (full && full->cluster > 1 && full->grouping != Grouping::none && request.gives("share-a") &&
      !out.share_a)
    return {"usage"_rule,
            fmt::format("--share-a=false: the CTAs of a cluster share A with --grouping {}, whose "
                        "groups have a B each; leave it out, or take --cluster 1",
                        kernels::detail::word_of(out.grouping))};
  return full;
}

void add_scaled_gemm(KernelRegistry& registry) {
  registry.add(
      {"scaled_gemm", "fp8 GEMM, a scale for 1x128 of A and 128x128 of B",
       add_tuned_options<ScaledGemm>(registry, "scaled_gemm", {"products"}),
       [&registry](const Request& request) -> Result<Described> {
         const auto read = read_scaled_gemm(registry, request);
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
}

}  // namespace tartan::TARTAN_ABI::builtins
