// SPDX-License-Identifier: Apache-2.0
// A product with a 2:4 sparse A: C = A * B, where each four neighbours of a row of A have at most
// two that are not zero.
//
//   A  m x depth / 2               f16, row-major: the two elements of each four that are kept
//   E  m / 16 x depth / 2          u32: which two they were, as kernels::compress() writes it
//   B  depth x n                   f16, row-major
//   C  m x n                       f32, row-major
//
// best_mma() gives the sparse kind: its A has half of the columns, and the metadata beside it. A
// stage is a matrix of A, one of metadata and one of B, each in its ring. metadata_tile() is the
// layout of a stage's metadata; shared_a() and shared_b() make rings, so this one is made with
// RingLayout. Threads read the metadata themselves, for mma.sp and wgmma alike.
//
// depth is a multiple of 32, the k of one instruction, and n of 8. m is any number.
#include "gallery.h"

#include <tartan/kernels/sparse.h>

using namespace tartan;

namespace {

constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};

Kernel sparse_product() {
  return kernel("sparse_product", {.block = tile.threads(), .producers = 4}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("n", s32, 8), depth = k.param("depth", s32, 32);
    auto A = k.global("A", f16, row_major(m, depth / 2));
    auto E = k.global("E", u32, row_major(ceil_div(m, 16), depth / 2));
    auto B = k.global("B", f16, row_major(depth, n));
    auto C = k.global("C", f32, row_major(m, n));

    constexpr int stages = 3;
    // wgmma has sparse forms from PTX 8.2 on: for a kernel that asks compile() takes that version.
    k.has("wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16");
    const MmaOptions sparse_a{.sparsity = isa::Sparsity::sp_ordered_metadata};
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32, sparse_a), tile);
    const Layout words = mma.metadata_tile();  // of u32: a row for each 16 rows of A
    auto sA = k.shared("sA", f16, mma.shared_a(stages));
    auto sE = k.shared("sE", u32, RingLayout{words, stages});
    auto sB = k.shared("sB", f16, mma.shared_b(stages, Major::row));
    auto [row, col] = k.block_tile(m, n, tile);

    k.roles([&, row = row, col = col] {
      auto sum = mma.accumulator();
      auto fill = [&](Scalar t, Scalar stage) {
        k.copy(A.tile({row, t}, {tile.m, tile.k / 2}), sA[stage]);
        k.copy(E.tile({row, t}, {words.rows, words.cols}), sE[stage]);
        k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
      };
      auto use = [&](Scalar, Scalar stage) {
        mma.add(sum, {sA[stage], {.metadata = sE[stage]}}, sB[stage]);
      };
      k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);
      k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
    });
  });
}

// Another two of each four are zeros, from group to group.
void prune(std::vector<host::f16>& a) {
  constexpr int dropped[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (std::size_t group = 0; group < a.size() / 4; ++group)
    for (const int each : dropped[group % 6]) a[4 * group + each] = host::f16(0.0);
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    for (const auto& [m, n, depth] : {std::tuple{64, 64, 64}, {100, 136, 96}, {1, 8, 224}}) {
      auto a = gallery::numbers<host::f16>(m * depth, 1);
      prune(a);
      const auto b = gallery::numbers<host::f16>(depth * n, 2);
      const auto kept =
          gallery::must(kernels::compress(std::as_bytes(std::span(a)), m, depth, f16));
      std::vector<float> c(m * n);
      session.run(sparse_product(), {tile.blocks(m, n)}, m, n, depth, in(kept.values),
                  in(kept.metadata), in(b), out(c));

      // Sums of so few products of eighths are exact in f32.
      const auto expected =
          reference::product(reference::row_major(a, m, depth), reference::row_major(b, depth, n));
      session.expect("sparse product", c, expected, n, {});
    }
  });
}
