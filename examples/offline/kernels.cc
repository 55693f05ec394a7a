// SPDX-License-Identifier: Apache-2.0
// The generator of examples/offline: it runs when the example is built, and writes the kernels
// below for each target.
#include <tartan/tartan.h>

using namespace tartan;

namespace {

constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};

// C = A * B of any size. On sm_90a TMA and wgmma, on sm_80 cp.async and mma.sync.
Kernel product() {
  const KernelOptions options{.block = tile.threads(), .producers = 4};
  return kernel("product", options, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32, 8), depth = k.param("depth", s32, 8);
    auto A = k.global("A", f16, row_major(m, depth));
    auto B = k.global("B", f16, row_major(depth, n));
    auto C = k.global("C", f32, row_major(m, n));
    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(stages, Major::row));
    auto sB = k.shared("sB", f16, mma.shared_b(stages, Major::row));
    k.roles([&] {
      k.each_tile(m, n, tile, [&](Scalar row, Scalar col) {
        auto sum = mma.accumulator();
        auto fill = [&](Scalar t, Scalar stage) {
          k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
          k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
        };
        auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
        k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);
        k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
      });
    });
  });
}

// x *= factor.
Kernel scale() {
  return kernel("scale", {.block = 256}, [](Builder& k) {
    auto count = k.param("count", s32);
    auto factor = k.param("factor", f32);
    auto x = k.global("x", f32, row_major(1, count));
    auto i = k.block_x() * 256 + k.thread();
    k.when(i < count, [&] { k.write(x, 0, i, k.read(x, 0, i) * factor); });
  });
}

}  // namespace

int main(int argc, char** argv) { return offline_main(argc, argv, {product(), scale()}); }
