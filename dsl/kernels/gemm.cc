// SPDX-License-Identifier: Apache-2.0
#include "dsl/kernels/kernels.h"
#include "dsl/math.h"

namespace tartan::kernels {
namespace {

Scalar size(Builder& k, const char* name, int fixed, int multiple) {
  return fixed ? Scalar(fixed) : k.param(name, s32, multiple);
}

}  // namespace

Kernel gemm(const Gemm& options) {
  const Tile tile = options.tile;
  return kernel("gemm", {.block = tile.threads()}, [=](Builder& k) {
    auto m = size(k, "m", options.m, options.a_major == Major::col ? options.multiple : 1);
    auto n = size(k, "n", options.n, options.multiple);
    auto kk = size(k, "k", options.k, options.multiple);
    auto A = k.global("A", options.a, stored(options.a_major, m, kk));
    auto B = k.global("B", options.b, stored(options.b_major, kk, n));
    auto C = k.global("C", options.c, row_major(m, n));

    auto mma = k.tiled_mma(k.best_mma(options.a, options.b, options.accumulator), tile);
    auto sA = k.shared("sA", options.a, mma.shared_a(options.stages, options.a_major));
    auto sB = k.shared("sB", options.b, mma.shared_b(options.stages, options.b_major));
    auto sum = mma.accumulator();

    auto [row, col] = k.block_tile(m, n, tile);
    k.pipeline(
        options.stages, ceil_div(kk, tile.k),
        [&, row = row, col = col](Scalar t, Scalar stage) {
          k.copy(A.tile(tile.m, tile.k, row, t), sA[stage]);
          k.copy(B.tile(tile.k, tile.n, t, col), sB[stage]);
        },
        [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
    k.store(C.tile(tile.m, tile.n, row, col), convert(sum, options.c));
  });
}

}  // namespace tartan::kernels
