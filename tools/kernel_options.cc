// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::tools {
namespace {

struct Option {
  std::string_view name;
  std::vector<std::string_view> kernels;
};

const std::vector<Option>& options() {
  using Kernels = std::vector<std::string_view>;
  // gemm_sum takes what gemm takes: tiles and types follow from all of it.
  const Kernels dense = {"gemm", "gemm_sum"}, divided = {"gemm", "gemm_sum", "sparse_gemm"};
  const auto also = [](Kernels kernels, std::initializer_list<std::string_view> more) {
    kernels.insert(kernels.end(), more);
    return kernels;
  };
  const Kernels products = also(divided, {"block_scaled"});
  static const std::vector<Option> all = {
      {"--m", products},
      {"--n", products},
      {"--k", products},
      {"--multiple", also(products, {"wmma_gemm", "transpose"})},
      {"--multiple-c", also(products, {"wmma_gemm"})},
      {"--type", also(products, {"attention"})},
      {"--a", products},
      {"--b", products},
      {"--accumulator", divided},
      {"--c", products},
      {"--a-major", also(dense, {"wmma_gemm"})},
      {"--b-major", also(divided, {"wmma_gemm"})},
      {"--tile", products},
      {"--warps", products},
      {"--stages", products},
      {"--promote", divided},
      {"--epilogue", products},
      {"--splits", divided},
      {"--stream-blocks", divided},
      {"--producers", divided},
      {"--cluster", divided},
      {"--group", divided},
      {"--bit-op", dense},
      {"--batched", {"gemm", "sparse_gemm"}},
      {"--persistent", {"gemm", "sparse_gemm"}},
      {"--scale", {"block_scaled"}},
      {"--kind", {"block_scaled"}},
      {"--head-dim", {"attention"}},
      {"--causal", {"attention"}},
  };
  return all;
}

bool takes(const Option& option, std::string_view kernel) {
  return std::find(option.kernels.begin(), option.kernels.end(), kernel) != option.kernels.end();
}

}  // namespace

std::vector<std::string_view> options_of(std::string_view kernel) {
  std::vector<std::string_view> out;
  for (const Option& each : options())
    if (takes(each, kernel)) out.push_back(each.name);
  return out;
}

Diags refused_options(std::string_view kernel, const std::vector<std::string>& given) {
  Diags out;
  for (const Option& each : options())
    if (std::find(given.begin(), given.end(), each.name) != given.end() && !takes(each, kernel))
      out.report("usage"_rule, {},
                 fmt::format("{}: unsupported by kernel {}; {} {} it", each.name, kernel,
                             fmt::join(each.kernels, ", "),
                             each.kernels.size() == 1 ? "supports" : "support"));
  return out;
}

}  // namespace tartan::tools
