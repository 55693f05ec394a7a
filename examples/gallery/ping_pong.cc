// SPDX-License-Identifier: Apache-2.0
// GEMM in ping-pong: two warpgroups compute tiles of their own, one below the other, in turn. While
// one stores its tile, the other one multiplies, so that the tensor cores do not wait for stores.
//
//   A   m x depth      bf16, row-major
//   B   depth x n      bf16, column-major
//   C   m x n          bf16, row-major
//
// warpgroups() describes a body for each: its tile, its accumulator, its epilogue. In the products
// they take turns (PipelineOptions::turns), so that each has the tensor cores for itself and their
// epilogues fall apart. Both have one ring, which the producers fill for the next turn while one
// multiplies. The kernel is persistent: each CTA computes every gridDim.x-th pair of tiles.
#include "gallery.h"

using namespace tartan;

namespace {

constexpr int groups = 2, stages = 4;
constexpr Tile tile{.m = 64, .n = 128, .k = 64, .warps_m = 4, .warps_n = 1, .products = groups};

Kernel ping_pong() {
  return kernel("ping_pong", {.block = tile.threads(), .producers = 4}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32, 8), depth = k.param("depth", s32, 8);
    auto A = k.global("A", bf16, row_major(m, depth));
    auto B = k.global("B", bf16, col_major(depth, n));
    auto C = k.global("C", bf16, row_major(m, n));

    auto mma = k.tiled_mma(k.best_mma(bf16, bf16, f32), tile);
    auto sA = k.shared("sA", bf16, mma.shared_a(stages));
    auto sB = k.shared("sB", bf16, mma.shared_b(stages));
    auto across = ceil_div(n, tile.n), pairs = ceil_div(m, groups * tile.m) * across;

    k.roles([&] {
      k.loop(k.block_x(), pairs, k.blocks_x(), [&](Scalar pair) {
        k.warpgroups([&](int w) {
          auto row = pair / across * groups + w, col = pair % across;
          auto fill = [&](Scalar t, Scalar stage) {
            k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
            k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
          };
          auto sum = mma.accumulator();
          auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
          k.pipeline({.stages = stages, .turns = true}, ceil_div(depth, tile.k), fill, use);
          k.store(C.tile({row, col}, {tile.m, tile.n}), convert(sum, bf16));
        });
      });
    });
  });
}

void run_size(gallery::Session& session, int m, int n, int depth, unsigned ctas) {
  const auto a = gallery::numbers<host::bf16>(m * depth, 1),
             b = gallery::numbers<host::bf16>(depth * n, 2);
  std::vector<host::bf16> c(m * n);
  session.run(ping_pong(), {ctas}, m, n, depth, in(a), in(b), out(c));
  session.expect("a product", c,
                 reference::product(reference::row_major(std::span(a), m, depth),
                                    reference::col_major(std::span(b), depth, n)),
                 n, {.relative = 0x1p-8, .absolute = 0x1p-14});
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    run_size(session, 300, 264, 200, 2);
    run_size(session, 8, 8, 8, 1);
  });
}
