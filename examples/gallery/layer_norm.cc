// SPDX-License-Identifier: Apache-2.0
// A product with layer norm: Y = (C - mean) / sqrt(variance + epsilon) * gamma + beta, by rows of
// C = X * W, which are wider than a CTA's tile.
//
//   X             m x depth       f16, row-major
//   W             depth x n       f16, row-major
//   gamma, beta   1 x n           f32
//   Y             m x n           f16, row-major
//
// A cluster computes 64 rows of C; its CTAs take the tiles in turn (sm_80 has no clusters: there,
// one CTA takes all). Each computes its tiles twice: the first pass only adds up each row and its
// squares, the second normalizes and stores. So C never goes to memory, for twice the arithmetic.
// Between the passes the CTAs add their sums through distributed shared memory. Rows of no more
// tiles than the cluster has CTAs need one pass: the accumulators are still there when the sums are
// known.
//
// Both passes are one loop around one pipeline: the ring goes on from tile to tile, and producers
// load the next tile while the epilogue of the last one runs.
//
// C has zeros beyond its edge, since copies fill with zeros what is beyond the edge of X and W:
// they do not change the sums.
#include <cmath>

#include "gallery.h"

using namespace tartan;

namespace {

constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
constexpr double epsilon = 1e-5;

KernelOptions options(const Target& target) {
  return {
      .block = tile.threads(), .producers = 4, .cluster = target.has(Feature::clusters) ? 4 : 1};
}

Kernel layer_norm() {
  return kernel("layer_norm", options, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32, 8), depth = k.param("depth", s32, 8);
    auto X = k.global("X", f16, row_major(m, depth)), W = k.global("W", f16, row_major(depth, n));
    auto gamma = k.global("gamma", f32, row_major(1, n));
    auto beta = k.global("beta", f32, row_major(1, n));
    auto Y = k.global("Y", f16, row_major(m, n));

    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sX = k.shared("sX", f16, mma.shared_a(stages, Major::row));
    auto sW = k.shared("sW", f16, mma.shared_b(stages, Major::row));
    auto ctas = k.cluster_size();
    auto row = k.block_x() / ctas, tiles = k.convert(ceil_div(n, tile.n * ctas), u32);  // of a CTA
    auto passes = select(tiles == 1, 1, tiles * 2);

    k.roles([&] {
      auto zero = k.constant(f32, 0), one = k.constant(f32, 1);
      auto sum = mma.row_variable(zero), squares = mma.row_variable(zero);
      k.loop(0, passes, 1, [&](Scalar pass) {
        auto col = pass % tiles * ctas + k.cluster_rank();
        auto c = mma.accumulator();
        auto fill = [&](Scalar t, Scalar stage) {
          k.copy(X.tile({row, t}, {tile.m, tile.k}), sX[stage]);
          k.copy(W.tile({t, col}, {tile.k, tile.n}), sW[stage]);
        };
        auto use = [&](Scalar, Scalar stage) { mma.add(c, sX[stage], sW[stage]); };
        k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);

        k.when(pass < tiles, [&] {
          sum = map(sum, row_sum(c), plus);
          squares =
              map(squares, row_sum(map(c, [](Scalar x, ElementPlace) { return x * x; })), plus);
        });
        k.when(pass == tiles - 1, [&] {
          sum = cluster_sum(sum);
          squares = cluster_sum(squares);
        });
        k.when(pass + tiles >= passes, [&] {
          const RowValues sums = sum, of_squares = squares;
          const Scalar each = one * reciprocal(k.convert(n, f32));
          RowValues mean, scale;
          for (std::size_t i = 0; i < sums.size(); ++i) {
            mean.push_back(sums[i] * each);
            auto variance = maximum(of_squares[i] * each - mean[i] * mean[i], zero);
            scale.push_back(rsqrt(variance + k.constant(f32, epsilon)));
          }
          auto normal = map_rows(map_rows(c, mean, [](Scalar x, Scalar y) { return x - y; }), scale,
                                 [](Scalar x, Scalar y) { return x * y; });
          auto y = map(normal, [&](Scalar x, ElementPlace at) {
            auto j = minimum(col * tile.n + at.col, k.convert(n, u32) - 1);
            return fma(x, k.read(gamma, 0, j), k.read(beta, 0, j));
          });
          k.store(Y.tile({row, col}, {tile.m, tile.n}), convert(y, f16));
        });
      });
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    const int ctas = options(Target::of(session.arch())).cluster;
    for (const auto& [m, n, depth] : {std::tuple{64, 256, 64}, {70, 328, 72}, {1, 8, 8}}) {
      const auto x = gallery::numbers<host::f16>(m * depth, 1),
                 w = gallery::numbers<host::f16>(depth * n, 2);
      const auto gamma = gallery::numbers<float>(n, 3), beta = gallery::numbers<float>(n, 4);
      std::vector<host::f16> y(m * n);
      session.run(layer_norm(), {tile.blocks(m, 1) * ctas}, m, n, depth, in(x), in(w), in(gamma),
                  in(beta), out(y));

      auto expected =
          reference::product(reference::row_major(x, m, depth), reference::row_major(w, depth, n));
      for (int i = 0; i < m; ++i) {
        double mean = 0, variance = 0;
        for (int j = 0; j < n; ++j) mean += expected[i * n + j] / n;
        for (int j = 0; j < n; ++j) variance += std::pow(expected[i * n + j] - mean, 2) / n;
        for (int j = 0; j < n; ++j) {
          double& each = expected[i * n + j];
          each = (each - mean) / std::sqrt(variance + epsilon) * gamma[j] + beta[j];
        }
      }
      session.expect("layer norm", y, expected, n, {.relative = 0x1p-10, .absolute = 0x1p-10});
    }
  });
}
