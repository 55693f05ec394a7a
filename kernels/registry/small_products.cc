// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/small_products.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::SmallProducts;

// "32x16x64"
Result<std::array<int, 3>> read_sizes(const std::string& word) {
  std::array<int, 3> out{};
  const char *at = word.data(), *const end = at + word.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, out[i]);
    const bool last = i + 1 == out.size();
    if (error != std::errc() || (last ? next != end : next == end || *next != 'x'))
      return {"usage"_rule, fmt::format("--size {}: expected MxNxK, such as 32x32x32", word)};
    at = last ? next : next + 1;
  }
  return out;
}

}  // namespace

void add_small_products(KernelRegistry& registry, const SharedProductWords& words) {
  const auto size = std::make_shared<std::string>("32x32x32");
  registry.add_option(
      {.name = "size",
       .value = size.get(),
       .help = "MxNxK of each product, multiples of 16 up to 64; f64: multiples of 8",
       .group = "Options of small_products (and --type, --c, --a-major, --b-major)",
       .shows_default = true});
  registry.add(
      {"small_products",
       "batch of products of up to 64 x 64 x 64, of one to eight warps each",
       {"type", "c", "a-major", "b-major", "size", "gpu", "multiprocessors"},
       [=](const Request& request) -> Result<Described> {
         const auto read = read_gemm(*words);
         if (!read) return read.diags();
         const auto sizes = read_sizes(*size);
         if (!sizes) return sizes.diags();
         SmallProducts with{.m = (*sizes)[0], .n = (*sizes)[1], .k = (*sizes)[2], .type = read->a};
         with.c = read->c, with.a_major = read->a_major, with.b_major = read->b_major;
         with = tuned(with, request.gpu);
         return Described{.kernel = kernels::small_products(with),
                          .grid_of = [=](const LaunchSizes& launch) {
                            return LaunchGrid{with.blocks(static_cast<int>(launch.of("batch")))};
                          }};
       }});
}

}  // namespace tartan::TARTAN_ABI::builtins
