// SPDX-License-Identifier: Apache-2.0
// A block-scaled product of the OCP microscaling format MXFP8: C = (A o SA) * (B o SB), where 32
// neighbours along k share a scale, a power of two.
//
//   A   m x depth          e4m3, row-major
//   SA  m x depth / 32     ue8m0, row-major
//   B   depth x n          e4m3, column-major
//   SB  depth / 32 x n     ue8m0, column-major
//   C   m x n              f32, row-major
//
// The scales' type makes best_mma() give a block-scaled kind: the instruction takes them with A
// and B, and nothing is scaled by threads. Such kinds are those of sm_120a, by mma.sync. A stage is
// four matrices in four rings; scales_a() and scales_b() are the layouts of a stage's scales, and
// each product names an operand's elements and its scales together.
//
// depth is a multiple of 128, so that a row's scales are copied four at a time. m and n are any
// numbers.
#include <cmath>

#include "gallery.h"

using namespace tartan;

namespace {

constexpr Tile tile{.m = 64, .n = 64, .k = 128, .warps_m = 2, .warps_n = 2};

Kernel scaled_product() {
  return kernel("scaled_product", {.block = tile.threads()}, [](Builder& k) {
    constexpr int stages = 2;
    const MmaOptions scaled{.scale_type = ue8m0};
    auto mma = k.tiled_mma(k.best_mma(e4m3, e4m3, f32, scaled), tile, scaled);
    const int block = mma.scale_block();  // 32 elements
    auto m = k.param("m", s32), n = k.param("n", s32), depth = k.param("depth", s32, 128);
    auto A = k.global("A", e4m3, row_major(m, depth));
    auto SA = k.global("SA", ue8m0, row_major(m, depth / block));
    auto B = k.global("B", e4m3, col_major(depth, n));
    auto SB = k.global("SB", ue8m0, col_major(depth / block, n));
    auto C = k.global("C", f32, row_major(m, n));

    auto sA = k.shared("sA", e4m3, mma.shared_a(stages));
    auto sB = k.shared("sB", e4m3, mma.shared_b(stages));
    auto sSA = k.shared("sSA", ue8m0, RingLayout{mma.scales_a(), stages});
    auto sSB = k.shared("sSB", ue8m0, RingLayout{mma.scales_b(), stages});
    auto sum = mma.accumulator();
    auto [row, col] = k.block_tile(m, n, tile);
    auto fill = [&, row = row, col = col](Scalar t, Scalar stage) {
      k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
      k.copy(SA.tile({row, t}, {tile.m, tile.k / block}), sSA[stage]);
      k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
      k.copy(SB.tile({t, col}, {tile.k / block, tile.n}), sSB[stage]);
    };
    auto use = [&](Scalar, Scalar stage) {
      mma.add(sum, {sA[stage], {.scales = sSA[stage]}}, {sB[stage], {.scales = sSB[stage]}});
    };
    k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);
    k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
  });
}

// Scales of 1/2, 1 and 2: ue8m0 is an exponent, with a bias of 127.
std::vector<std::byte> scales(std::size_t count, std::size_t step) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::byte>(126 + i * step % 3));
  return out;
}

// Element i of `elements` times the scale of its block.
std::vector<float> times(const std::vector<host::e4m3>& elements,
                         const std::vector<std::byte>& of_blocks) {
  std::vector<float> out;
  for (std::size_t i = 0; i < elements.size(); ++i)
    out.push_back(
        std::ldexp(static_cast<float>(elements[i]), std::to_integer<int>(of_blocks[i / 32]) - 127));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const auto piece = [](gallery::Session& session) {
    for (const auto& [m, n, depth] : {std::tuple{64, 64, 128}, {100, 72, 384}, {1, 8, 256}}) {
      const auto a = gallery::numbers<host::e4m3>(m * depth, 1),
                 b = gallery::numbers<host::e4m3>(depth * n, 2);
      const auto of_a = scales(m * depth / 32, 5), of_b = scales(depth / 32 * n, 7);
      std::vector<float> c(m * n);
      session.run(scaled_product(), {tile.blocks(m, n)}, m, n, depth, in(a), in(of_a), in(b),
                  in(of_b), out(c));

      // Sums of so few products of eighths are exact in f32.
      const auto expected = reference::product(reference::row_major(times(a, of_a), m, depth),
                                               reference::col_major(times(b, of_b), depth, n));
      session.expect("block-scaled product", c, expected, n, {});
    }
  };
  return gallery::main(argc, argv, piece, {"sm_120a"});
}
