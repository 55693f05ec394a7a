// SPDX-License-Identifier: Apache-2.0
// Matrix products: gemm, its split-K and stream-K reduction, and products with a sparse A.
#include "tartan/kernels/gemm.h"

#include "kernels/registry/families.h"
#include "kernels/registry/work_space.h"
#include "tartan/kernels/sparse.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::Gemm;

std::optional<Dim3> grid_of(const Gemm& gemm, int multiprocessors) {
  if (gemm.batched) return std::nullopt;
  return Dim3{gemm.grid_x(gemm.m, gemm.n, multiprocessors),
              static_cast<std::uint32_t>(gemm.splits)};
}

LaunchGrid launch_grid(const Gemm& gemm, const LaunchSizes& sizes) {
  const int m = size_of(sizes, "m", gemm.m), n = size_of(sizes, "n", gemm.n);
  LaunchGrid out{gemm.grid_x(m, n, sizes.multiprocessors), static_cast<std::uint32_t>(gemm.splits)};
  if (gemm.batched) out.z.reset();
  return out;
}

// A block for each tile of stream-K, else a thread for each element.
LaunchGrid sum_grid(const Gemm& gemm, const LaunchSizes& sizes) {
  const int m = size_of(sizes, "m", gemm.m), n = size_of(sizes, "n", gemm.n);
  if (gemm.stream_blocks) return {gemm.blocks(m, n)};
  return {static_cast<std::uint32_t>((std::int64_t{m} * n + 255) / 256)};
}

}  // namespace

void add_gemm(KernelRegistry& registry, const SharedProductWords& words) {
  // clang-format off
  const std::vector<std::string> sum_options = {
      "m", "n", "k", "multiple", "multiple-c", "type", "a", "b", "accumulator", "c", "a-major",
      "b-major", "tile", "warps", "stages", "promote", "epilogue", "splits", "stream-blocks",
      "producers", "cluster", "cluster-columns", "group", "bit-op", "tuning", "workspace", "swap",
      "gpu", "multiprocessors", "cluster-splits", "products", "direct", "persistent"};
  // clang-format on
  std::vector<std::string> options = sum_options;
  options.emplace_back("batched");
  registry.add({"gemm", "GEMM in every supported type", options,
                [=](const Request& request) -> Result<Described> {
                  const auto read = read_gemm(*words);
                  if (!read) return read.diags();
                  const auto full = completed(*words, *read, request);
                  if (!full) return full.diags();
                  const Gemm gemm = full->gemm;
                  return Described{
                      kernels::gemm(gemm), grid_of(gemm, request.gpu.multiprocessors()),
                      [=](const LaunchSizes& sizes) { return launch_grid(gemm, sizes); },
                      full->warnings, work_of(gemm, "C")};
                }});
  // It takes the options that determine tiles and types.
  registry.add({"gemm_sum", "reduction of the partial sums of a split-K or stream-K gemm",
                sum_options, [=](const Request& request) -> Result<Described> {
                  const auto read = read_gemm(*words);
                  if (!read) return read.diags();
                  const auto full = completed(*words, *read, request);
                  if (!full) return full.diags();
                  const Gemm gemm = full->gemm;
                  return Described{
                      .kernel = kernels::gemm_sum(gemm),
                      .grid_of = [=](const LaunchSizes& sizes) { return sum_grid(gemm, sizes); },
                      .warnings = full->warnings,
                      .work_of = work_of(gemm, "parts")};
                }});
  std::erase(options, "a-major");
  for (const char* option : {"bit-op", "products", "swap", "direct", "tuning", "workspace", "gpu",
                             "multiprocessors", "cluster-columns"})
    std::erase(options, option);
  registry.add({"sparse_gemm", "GEMM with a 2:4 sparse A", options,
                [=](const Request&) -> Result<Described> {
                  const auto read = read_gemm(*words);
                  if (!read) return read.diags();
                  const Gemm gemm = *read;
                  return Described{.kernel = kernels::sparse_gemm(gemm),
                                   .grid_of = [=](const LaunchSizes& sizes) {
                                     return launch_grid(gemm, sizes);
                                   }};
                }});
}

}  // namespace tartan::TARTAN_ABI::builtins
