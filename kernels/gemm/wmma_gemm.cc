// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/wmma_gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int across = 2, down = 2;  // warps of a block
constexpr int each = 2;              // fragments of a warp, in both directions

// Rows padded by one 16-byte chunk: wmma.load's rows then start in different banks.
Layout padded(Major major, int rows, int cols, Type type) {
  const int line = major == Major::row ? cols : rows, chunk = std::max(128 / bits(type), 1);
  const int stride = (line + chunk - 1) / chunk * chunk + 2 * chunk;
  return major == Major::row ? row_major(rows, cols, stride) : col_major(rows, cols, stride);
}

}  // namespace

Tile wmma_tile(const WmmaGemm& options) {
  const Shape& shape = options.shape.shape;
  return {.m = shape.m * down * each,
          .n = shape.n * across * each,
          .k = std::max<int>(shape.k, 256 / std::max(bits(options.a), 1)),
          .warps_m = down,
          .warps_n = across};
}

Kernel wmma_gemm(const WmmaGemm& options) {
  const Tile tile = wmma_tile(options);
  return kernel("wmma_gemm", {.block = tile.threads()}, [=](Builder& k) {
    const auto m = k.param("m", s32, options.a_major == Major::col ? options.multiple : 1),
               n = k.param(
                   "n", s32,
                   detail::common_multiple(options.multiple_c,
                                           options.b_major == Major::row ? options.multiple : 1)),
               depth = k.param("k", s32,
                               options.a_major == Major::row || options.b_major == Major::col
                                   ? options.multiple
                                   : 1);
    auto A = k.global("A", options.a, stored(options.a_major, m, depth));
    auto B = k.global("B", options.b, stored(options.b_major, depth, n));
    auto C = k.global("C", options.c, row_major(m, n));
    auto sA = k.shared("sA", options.a, padded(options.a_major, tile.m, tile.k, options.a));
    auto sB = k.shared("sB", options.b, padded(options.b_major, tile.k, tile.n, options.b));
    auto sC = k.shared("sC", options.c, padded(Major::row, tile.m, tile.n, options.c));

    const Shape& shape = options.shape.shape;
    const FragmentKind kind_a = operand_a(options.shape, options.a, options.a_major),
                       kind_b = operand_b(options.shape, options.b, options.b_major),
                       kind_c = operand_c(options.shape, options.c);
    std::vector<FragmentVariable> sums;
    for (int i = 0; i < each * each; ++i) sums.push_back(k.variable(kind_c));
    auto [row, col] = k.block_tile(m, n, tile);
    const auto warp_m = k.warp() / across * each, warp_n = k.warp() % across * each;
    const auto multiply = [&](Scalar, Scalar) {
      for (int step = 0; step < tile.k / shape.k; ++step) {
        std::vector<Fragment> a, b;
        for (int i = 0; i < each; ++i) {
          a.push_back(k.load(kind_a, sA.tile({warp_m + i, step}, {shape.m, shape.k})));
          b.push_back(k.load(kind_b, sB.tile({step, warp_n + i}, {shape.k, shape.n})));
        }
        for (std::size_t i = 0; i < each; ++i)
          for (std::size_t j = 0; j < each; ++j)
            sums[i * each + j] = k.mma(a[i], b[j], sums[i * each + j], options.with);
      }
    };
    k.pipeline(
        {.stages = 1}, ceil_div(depth, tile.k),
        [&, row = row, col = col](Scalar t, Scalar) {
          k.copy(A.tile({row, t}, {tile.m, tile.k}), sA);
          k.copy(B.tile({t, col}, {tile.k, tile.n}), sB);
        },
        multiply);
    for (int i = 0; i < each; ++i)
      for (int j = 0; j < each; ++j) {
        const Scalar col = warp_n + j, row = warp_m + i;
        k.store(sC.tile({row, col}, {shape.m, shape.n}),
                static_cast<Fragment>(sums[static_cast<std::size_t>(i * each + j)]));
      }
    k.barrier();
    k.copy(sC, C.tile({row, col}, {tile.m, tile.n}));
  });
}

}  // namespace tartan::TARTAN_ABI::kernels
