// SPDX-License-Identifier: Apache-2.0
// A gated MLP's first half: H = silu(X * G) * (X * U), both products in one kernel.
//
//   X  m x depth        activations, f16, row-major
//   G  depth x n        the gate's weights, f16, row-major
//   U  depth x n        the weights of the upward projection, the same
//   H  m x n            f16, row-major
//
// silu(x) = x / (1 + e^-x). In one kernel X is read once, and neither product goes to memory. A CTA
// has two accumulators for one tile of H. Both products of a k-tile read the same stage of X; on
// sm_90a they are two wgmma in flight at a time. The epilogue joins two accumulators element by
// element: fragments of the same kind have the same element at the same place.
//
// n and depth are multiples of 8, so that rows begin at multiples of 16 bytes: a condition of TMA,
// and of 16-byte cp.async. m is any number.
#include <cmath>

#include "gallery.h"

using namespace tartan;

namespace {

constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};

Scalar silu(Builder& k, const Scalar& x) {
  const Scalar log2_e = k.constant(f32, 1.4426950408889634);
  return x * reciprocal(exp2(k.constant(f32, 0) - x * log2_e) + 1);
}

Kernel gated_mlp() {
  return kernel("gated_mlp", {.block = tile.threads(), .producers = 4}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32, 8), depth = k.param("depth", s32, 8);
    auto X = k.global("X", f16, row_major(m, depth));
    auto G = k.global("G", f16, row_major(depth, n)), U = k.global("U", f16, row_major(depth, n));
    auto H = k.global("H", f16, row_major(m, n));

    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sX = k.shared("sX", f16, mma.shared_a(stages, Major::row));
    auto sG = k.shared("sG", f16, mma.shared_b(stages, Major::row));
    auto sU = k.shared("sU", f16, mma.shared_b(stages, Major::row));
    auto [row, col] = k.block_tile(m, n, tile);

    k.roles([&, row = row, col = col] {
      auto gate = mma.accumulator(), up = mma.accumulator();
      auto fill = [&](Scalar t, Scalar stage) {
        k.copy(X.tile({row, t}, {tile.m, tile.k}), sX[stage]);
        k.copy(G.tile({t, col}, {tile.k, tile.n}), sG[stage]);
        k.copy(U.tile({t, col}, {tile.k, tile.n}), sU[stage]);
      };
      auto use = [&](Scalar, Scalar stage) {
        mma.add(gate, sX[stage], sG[stage]);
        mma.add(up, sX[stage], sU[stage]);
      };
      k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);

      auto h = gallery::joined(k, gate, up, [&](Scalar x, Scalar y) { return silu(k, x) * y; });
      k.store(H.tile({row, col}, {tile.m, tile.n}), convert(h, f16));
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    for (const auto& [m, n, depth] : {std::tuple{64, 64, 64}, {100, 136, 72}, {1, 8, 200}}) {
      const auto x = gallery::numbers<host::f16>(m * depth, 1),
                 g = gallery::numbers<host::f16>(depth * n, 2),
                 u = gallery::numbers<host::f16>(depth * n, 3);
      std::vector<host::f16> h(m * n);
      session.run(gated_mlp(), {tile.blocks(m, n)}, m, n, depth, in(x), in(g), in(u), out(h));

      const auto X = reference::row_major(x, m, depth);
      auto expected = reference::product(X, reference::row_major(g, depth, n));
      const auto ups = reference::product(X, reference::row_major(u, depth, n));
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] *= ups[i] / (1 + std::exp(-expected[i]));
      // H is rounded to f16, and silu's exponential and reciprocal are approximate: 2^-10 is twice
      // what the rounding may change.
      session.expect("gated MLP", h, expected, n, {.relative = 0x1p-10, .absolute = 0x1p-14});
    }
  });
}
