// SPDX-License-Identifier: Apache-2.0
// Matrix products: gemm, its split-K and stream-K reduction, and products with a sparse A.
#include "tartan/dsl/kernels/gemm.h"

#include "tartan/dsl/kernels/sparse.h"
#include "tools/kernels/families.h"

namespace tartan::tools {
namespace {

using kernels::Gemm;

std::optional<Dim3> grid_of(const Gemm& gemm) {
  if (gemm.batched) return std::nullopt;
  return Dim3{gemm.grid_x(gemm.m, gemm.n, kernels::h100_multiprocessors),
              static_cast<std::uint32_t>(gemm.splits)};
}

}  // namespace

void add_gemm(KernelRegistry& registry, const SharedProductWords& words) {
  const std::vector<std::string> sum_options = {
      "--m",       "--n",        "--k",      "--multiple",      "--multiple-c",
      "--type",    "--a",        "--b",      "--accumulator",   "--c",
      "--a-major", "--b-major",  "--tile",   "--warps",         "--stages",
      "--promote", "--epilogue", "--splits", "--stream-blocks", "--producers",
      "--cluster", "--group",    "--bit-op"};
  std::vector<std::string> options = sum_options;
  options.insert(options.end(), {"--batched", "--persistent"});
  registry.add({"gemm", "GEMM in every supported type", options,
                [=](const Target& target) -> Result<Described> {
                  const auto read = read_gemm(*words);
                  if (!read) return read.diags();
                  const Gemm gemm = completed(*words, *read, target);
                  return Described{kernels::gemm(gemm), grid_of(gemm)};
                }});
  // It takes gemm's options, which determine tiles and types.
  registry.add({"gemm_sum", "reduction of the partial sums of a split-K or stream-K gemm",
                sum_options, [=](const Target& target) -> Result<Described> {
                  const auto read = read_gemm(*words);
                  if (!read) return read.diags();
                  return Described{kernels::gemm_sum(completed(*words, *read, target))};
                }});
  std::erase(options, "--a-major");
  std::erase(options, "--bit-op");
  registry.add(
      {"sparse_gemm", "GEMM with a 2:4 sparse A", options, [=](const Target&) -> Result<Described> {
         const auto read = read_gemm(*words);
         if (!read) return read.diags();
         return Described{kernels::sparse_gemm(*read)};
       }});
}

}  // namespace tartan::tools
