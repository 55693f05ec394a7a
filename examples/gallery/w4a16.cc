// SPDX-License-Identifier: Apache-2.0
// W4A16: Y = X * W with weights of four bits, which become f16 in registers.
//
//   X   m x depth             activations, f16, row-major
//   Q   n x depth / 8         u32: eight neighbours along depth in a word, the first one lowest
//   S   n x depth / 64        scales, f16: one for 64 weights of a column of W
//   Y   m x n                 f16, row-major
//   W[x][j] = (Q[j][x] - 8) * S[j][x / 64], rounded to f16
//
// Operand A of an MMA may come from registers, with wgmma too, but B may not. So the kernel
// computes the transposed product: Y^T = W^T * X^T, with W^T (n x depth) as A. map() says which row
// and column each element is that a lane holds of A, and the lane takes its four bits from the
// words of Q in shared memory. A k-tile is one group of scales: a lane needs one for each of its
// rows.
//
// X is declared row-major and used as its transpose, which costs nothing. Y^T is stored as it is:
// neighbours in a lane are a row of Y apart, so that each store has 16 bits.
//
// depth is a multiple of 32, so that rows of Q begin at multiples of 16 bytes; n and m are any
// numbers. The last group of scales may be a part of one.
#include <cmath>

#include "gallery.h"

using namespace tartan;

namespace {

constexpr int group = 64;  // weights that share a scale
constexpr Tile tile{.m = 64, .n = 64, .k = group, .warps_m = 4, .warps_n = 1};

Kernel w4a16() {
  return kernel("w4a16", {.block = tile.threads(), .producers = 4}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32), depth = k.param("depth", s32, 32);
    auto X = k.global("X", f16, row_major(m, depth)).transposed();
    auto Q = k.global("Q", u32, row_major(n, depth / 8));
    auto S = k.global("S", f16, row_major(n, ceil_div(depth, group)));
    auto Y = k.global("Y", f16, row_major(m, n)).transposed();

    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sQ = k.shared("sQ", u32, RingLayout{row_major(tile.m, tile.k / 8), stages});
    auto sX = k.shared("sX", f16, mma.shared_b(stages, Major::col));
    auto [row, col] = k.block_tile(n, m, tile);

    k.roles([&, row = row, col = col] {
      auto sum = mma.accumulator();
      const WarpTile part = mma.variable_a();  // which fragments of A this warp has, and where
      auto fill = [&](Scalar t, Scalar stage) {
        k.copy(Q.tile({row, t}, {tile.m, tile.k / 8}), sQ[stage]);
        k.copy(X.tile({t, col}, {tile.k, tile.n}), sX[stage]);
      };
      // Element (i, x) of the stage's part of W^T.
      auto weight = [&](Scalar t, Scalar stage, Scalar i, Scalar x) {
        const Scalar word = k.read(sQ[stage], i, x / 8);
        const Scalar four = (word >> (x % 8 * 4)) & 15;
        const Scalar scale = k.read(S, minimum(row * tile.m + i, k.convert(n, u32) - 1), t);
        return k.convert(k.convert(k.convert(four, s32) - 8, f32) * k.convert(scale, f32), f16);
      };
      auto use = [&](Scalar t, Scalar stage) {
        const auto here = [&](Scalar, ElementPlace at) { return weight(t, stage, at.row, at.col); };
        mma.add(sum, map(part, here), sX[stage]);
      };
      k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);
      k.store(Y.tile({row, col}, {tile.m, tile.n}), convert(sum, f16));
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    for (const auto& [m, n, depth] : {std::tuple{64, 64, 128}, {5, 100, 96}, {70, 129, 160}}) {
      const auto x = gallery::numbers<host::f16>(m * depth, 1);
      const int groups = (depth + group - 1) / group;
      auto s = gallery::numbers<host::f16>(n * groups, 2);
      std::vector<std::uint32_t> q(n * depth / 8);
      std::mt19937 random(3);
      for (std::uint32_t& word : q) word = random();
      std::vector<host::f16> w, y(m * n);  // w: W^T
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < depth; ++i) {
          const int four = static_cast<int>(q[(j * depth + i) / 8] >> i % 8 * 4 & 15) - 8;
          w.push_back(host::f16(four * static_cast<double>(s[j * groups + i / group])));
        }
      session.run(w4a16(), {tile.blocks(n, m)}, m, n, depth, in(x), in(q), in(s), out(y));
      const auto expected =
          reference::product(reference::row_major(x, m, depth), reference::col_major(w, depth, n));
      session.expect("W4A16", y, expected, n, {.relative = 0x1p-11, .absolute = 0x1p-14});
    }
  });
}
