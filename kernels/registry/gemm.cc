// SPDX-License-Identifier: Apache-2.0
// Matrix products: gemm, its split-K and stream-K reduction, and products with a sparse A.
#include "kernels/gemm/gemm_schedule.h"
#include "kernels/registry/families.h"
#include "kernels/registry/given.h"
#include "kernels/registry/work_space.h"
#include "tartan/kernels/sparse.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::Gemm;
using kernels::GemmLaunch;

std::optional<Dim3> grid_of(const Gemm& gemm, int multiprocessors) {
  if (gemm.batched) return std::nullopt;
  return GemmLaunch::of(gemm, gemm.m, gemm.n, multiprocessors).grid;
}

LaunchGrid launch_grid(const Gemm& gemm, const LaunchSizes& sizes) {
  const int m = size_of(sizes, "m", gemm.m), n = size_of(sizes, "n", gemm.n);
  const Dim3 grid = GemmLaunch::of(gemm, m, n, sizes.multiprocessors).grid;
  LaunchGrid out{grid.x, grid.y};
  if (gemm.batched) out.z.reset();
  return out;
}

LaunchGrid sum_grid(const Gemm& gemm, const LaunchSizes& sizes) {
  const int m = size_of(sizes, "m", gemm.m), n = size_of(sizes, "n", gemm.n);
  return {kernels::detail::sum_grid(gemm, m, n).x};
}

// Options that are no member of Gemm.
std::vector<std::string> add_gemm_options(KernelRegistry& registry) {
  auto out = add_tuned_options<Gemm>(registry, "gemm");
  const auto add = [&](const char* name, OptionValue usual, const std::string& help) {
    const bool shows = std::holds_alternative<int>(usual);
    registry.add_option(
        {.name = name, .help = help, .group = "Options of gemm", .shows_default = shows}, usual);
  };
  add("gpu", "",
      fmt::format("GPU for which the fastest is chosen where options are not given, such as H200: "
                  "{}; default: the usual one of the target, H100 for sm_90a",
                  fmt::join(kernels::Gpu::names(), ", ")));
  add("multiprocessors", 0,
      "So many of the GPU's multiprocessors, such as those of a part of it (MIG); 0: all");
  add("tuning", "",
      "File of `tartan tune`: the fastest tile as measured on --gpu, where it has the product");
  add("workspace", 0,
      "Bytes for partial sums: above 0, split-K is chosen where it is the fastest; C is then the "
      "workspace of gemm_sum");
  out.insert(out.end(), {"tuning", "workspace"});
  return out;
}

}  // namespace

Result<Gemm> read_gemm(const KernelRegistry& registry, const Request& request) {
  OptionReader reader(registry, request);
  Gemm out;
  reader.read(out);
  reader.choose_types(out);
  if (request.gives("bit-op") && out.a != Type::b1)
    reader.wrong("bit-op", registry.value<std::string>("bit-op"),
                 "--type b1, the type that --bit-op applies to");
  reader.check(out.m, out.n, out.k, out.a, out.b, out.c);
  return reader.result(out);
}

void add_gemm(KernelRegistry& registry) {
  std::vector<std::string> options = add_gemm_options(registry);
  registry.add({"gemm", "GEMM in every supported type", options,
                [&registry](const Request& request) -> Result<Described> {
                  const auto full = completed_gemm(registry, request);
                  if (!full) return full.diags();
                  const Gemm gemm = full->gemm;
                  return Described{
                      kernels::gemm(gemm), grid_of(gemm, request.gpu.multiprocessors()),
                      [=](const LaunchSizes& sizes) { return launch_grid(gemm, sizes); },
                      full->warnings, work_of(gemm, "C")};
                }});
  // It takes the options that determine tiles and types.
  std::erase(options, "batched");
  registry.add({"gemm_sum", "reduction of the partial sums of a split-K or stream-K gemm", options,
                [&registry](const Request& request) -> Result<Described> {
                  const auto full = completed_gemm(registry, request);
                  if (!full) return full.diags();
                  const Gemm gemm = full->gemm;
                  return Described{
                      .kernel = kernels::gemm_sum(gemm),
                      .grid_of = [=](const LaunchSizes& sizes) { return sum_grid(gemm, sizes); },
                      .warnings = full->warnings,
                      .work_of = work_of(gemm, "parts")};
                }});
  registry.add(
      {"sparse_gemm", "GEMM with a 2:4 sparse A",
       add_options<Gemm>(registry, "gemm",
                         {"a-major", "bit-op", "products", "swap", "direct", "cluster-columns"}),
       [&registry](const Request& request) -> Result<Described> {
         const auto read = read_gemm(registry, request);
         if (!read) return read.diags();
         const Gemm gemm = *read;
         return Described{
             .kernel = kernels::sparse_gemm(gemm),
             .grid_of = [=](const LaunchSizes& sizes) { return launch_grid(gemm, sizes); }};
       }});
}

}  // namespace tartan::TARTAN_ABI::builtins
