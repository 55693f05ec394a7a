// SPDX-License-Identifier: Apache-2.0
// GEMM in fp8 with fine scales, as DeepSeek-V3 trains: C = (A o SA) * (B o SB).
//
//   A    m x depth                 e4m3, row-major
//   B    n x depth                 e4m3, row-major: used as its transpose
//   SA   m x depth / 128           f32: one scale for 1 x 128 elements of A
//   SB   n / 128 x depth / 128     f32: one scale for 128 x 128 elements of B
//   C    m x n                     bf16, row-major
//
// A k-tile is one block of scales. Its product starts from zero, is multiplied by SA's scale of its
// row and SB's scale of its tile, and then added to the sum in f32. This is also how to get f32
// sums on sm_90a, where wgmma accumulates e4m3 in about 14 bits: no more than 128 products are
// added there.
//
// sm_80 has no MMA in e4m3, and no conversion. There the block expands each stage to f16, by
// shifting bits: e4m3 is seeeemmm, f16 is seeeeemmmmmmmmmm, so that moving exponent and mantissa up
// by 7 bits gives the number times 2^-8, subnormals included (NaN, which 0x7f is, becomes a
// number). The factor 2^16 of both operands goes into the scale. C is the same on both.
//
// depth is a multiple of 16. A tile of C is within one block of SB, because 128 is a multiple of
// tile.n.
#include "gallery.h"

using namespace tartan;

namespace {

constexpr int block = 128;  // elements along depth, and columns, that share a scale
constexpr Tile tile{.m = 64, .n = 64, .k = block, .warps_m = 4, .warps_n = 1};

// The f16 with 2^-8 times the value of an e4m3.
Scalar expanded(Builder& k, const Scalar& bits) {
  const Scalar word = k.convert(bits, u32);
  return k.convert(((word & 0x80) << 8) | ((word & 0x7f) << 7), u16);
}

Kernel fp8_gemm() {
  return kernel("fp8_gemm", {.block = tile.threads(), .producers = 4}, [](Builder& k) {
    const bool has_fp8 = k.has("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3") ||
                         k.has("tcgen05.mma.cta_group::1.kind::f8f6f4");
    const Type type = has_fp8 ? Type::e4m3 : u8, product = has_fp8 ? Type::e4m3 : f16;
    auto m = k.param("m", s32), n = k.param("n", s32), depth = k.param("depth", s32, 16);
    auto A = k.global("A", type, row_major(m, depth));
    auto B = k.global("B", type, row_major(n, depth)).transposed();
    auto SA = k.global("SA", f32, row_major(m, ceil_div(depth, block)));
    auto SB = k.global("SB", f32, row_major(ceil_div(n, block), ceil_div(depth, block)));
    auto C = k.global("C", bf16, row_major(m, n));

    const int stages = has_fp8 ? 3 : 2;
    auto mma = k.tiled_mma(k.best_mma(product, product, f32), tile);
    const RingLayout bytes_a{row_major(tile.m, tile.k), stages};
    const RingLayout bytes_b{col_major(tile.k, tile.n), stages};
    auto sA = k.shared("sA", type, has_fp8 ? mma.shared_a(stages, Major::row) : bytes_a);
    auto sB = k.shared("sB", type, has_fp8 ? mma.shared_b(stages, Major::col) : bytes_b);
    Ring wideA, wideB;
    if (!has_fp8) {
      wideA = k.shared("wideA", f16, mma.shared_a(1, Major::row));
      wideB = k.shared("wideB", f16, mma.shared_b(1, Major::col));
    }
    auto [row, col] = k.block_tile(m, n, tile);

    k.roles([&, row = row, col = col] {
      auto sum = mma.accumulator();
      auto fill = [&](Scalar t, Scalar stage) {
        k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
        k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
      };
      auto expand = [&](Scalar stage) {
        k.loop(k.thread(), tile.m * tile.k, tile.threads(), [&](Scalar i) {
          auto x = i / tile.k, y = i % tile.k;  // tile.m is tile.n
          k.write(wideA[0], x, y, expanded(k, k.read(sA[stage], x, y)));
          k.write(wideB[0], y, x, expanded(k, k.read(sB[stage], y, x)));
        });
        k.barrier();
      };
      auto use = [&](Scalar t, Scalar stage) {
        if (!has_fp8) expand(stage);
        const WarpTile part = has_fp8 ? mma(mma.accumulator(), sA[stage], sB[stage])
                                      : mma(mma.accumulator(), wideA[0], wideB[0]);
        auto of_tile = k.read(SB, col * tile.n / block, t) * k.constant(f32, has_fp8 ? 1 : 65536);
        RowValues scales;
        for (const Scalar& i : row_places(part)) {
          auto last = k.convert(m, u32) - 1;
          scales.push_back(k.read(SA, minimum(row * tile.m + i, last), t) * of_tile);
        }
        sum += map_rows(part, scales, [](Scalar x, Scalar s) { return x * s; });
        if (!has_fp8) k.barrier();  // the next stage overwrites what slower warps still read
      };
      k.pipeline({.stages = stages}, ceil_div(depth, block), fill, use);
      k.store(C.tile({row, col}, {tile.m, tile.n}), convert(sum, bf16));
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    for (const auto& [m, n, depth] : {std::tuple{64, 64, 128}, {100, 200, 272}, {3, 136, 144}}) {
      const auto a = gallery::numbers<host::e4m3>(m * depth, 1),
                 b = gallery::numbers<host::e4m3>(n * depth, 2);
      const int blocks = (depth + block - 1) / block, columns = (n + block - 1) / block;
      const auto sa = gallery::numbers<float>(m * blocks, 3),
                 sb = gallery::numbers<float>(columns * blocks, 4);
      std::vector<double> wide_a, wide_b, expected;
      for (int i = 0; i < m * depth; ++i)
        wide_a.push_back(a[i] * sa[i / depth * blocks + i % depth / block]);
      for (int j = 0; j < n * depth; ++j)
        wide_b.push_back(b[j] * sb[j / depth / block * blocks + j % depth / block]);
      expected = reference::product(reference::row_major(wide_a, m, depth),
                                    reference::col_major(wide_b, depth, n));
      std::vector<host::bf16> c(m * n);
      const auto bytes = [](const auto& v) { return in(std::as_bytes(std::span(v))); };
      session.run(fp8_gemm(), {tile.blocks(m, n)}, m, n, depth, bytes(a), bytes(b), in(sa), in(sb),
                  out(c));
      // Sums of at most 272 products of up to 1, the parts of 128 in 14 bits.
      session.expect("fp8 GEMM", c, expected, n, {.relative = 0x1p-8, .absolute = 0x1p-5});
    }
  });
}
