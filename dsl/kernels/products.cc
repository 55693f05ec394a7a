// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "dsl/kernels/kernels.h"

namespace tartan::kernels {
namespace {

Layout stored(Major major, int rows, int cols) {
  return major == Major::row ? row_major(rows, cols) : col_major(rows, cols);
}

}  // namespace

Kernel one_mma() {
  return kernel("one_mma", {.block = 32}, [](Builder& k) {
    auto a = k.global("A", f16, row_major(16, 16));
    auto b = k.global("B", f16, col_major(16, 8));
    auto d = k.global("D", f32, row_major(16, 8));
    auto sa = k.shared("sa", f16, a.layout());
    auto sb = k.shared("sb", f16, b.layout());
    k.copy(a, sa);
    k.copy(b, sb);
    k.barrier();
    auto fa = k.load(operand_a(m16n8k16, f16), sa);
    auto fb = k.load(operand_b(m16n8k16, f16), sb);
    k.store(d, k.mma(fa, fb, zero(f32)));
  });
}

Kernel stored_mma(Major a_major, Major b_major) {
  const std::string name =
      fmt::format("mma_{}{}", a_major == Major::col ? 'n' : 't', b_major == Major::col ? 'n' : 't');
  return kernel(name, {.block = 32}, [=](Builder& k) {
    auto a = k.global("A", f16, stored(a_major, 16, 16));
    auto b = k.global("B", f16, stored(b_major, 16, 8));
    auto d = k.global("D", f32, row_major(16, 8));
    auto sa = k.shared("sa", f16, a.layout());
    auto sb = k.shared("sb", f16, b.layout());
    k.copy(a, sa);
    k.copy(b, sb);
    k.barrier();
    auto fa = k.load(operand_a(m16n8k16, f16), sa);
    auto fb = k.load(operand_b(m16n8k16, f16), sb);
    k.store(d, k.mma(fa, fb, zero(f32)));
  });
}

Kernel gemm(const Gemm& size) {
  return kernel("gemm", {.block = 128}, [=](Builder& k) {
    constexpr int tile_m = 64, tile_n = 64, tile_k = 32;  // of a block of 2 x 2 warps, 32x32 each
    auto a = k.global("A", f16, row_major(size.m, size.k));
    auto b = k.global("B", f16, col_major(size.k, size.n));
    auto c = k.global("C", f32, row_major(size.m, size.n));
    // Lines of 40 elements: 80 bytes, so that eight neighbouring lines start in eight different
    // groups of banks.
    auto sa = k.shared("sA", f16, row_major(tile_m, tile_k, tile_k + 8));
    auto sb = k.shared("sB", f16, col_major(tile_k, tile_n, tile_k + 8));
    const Scalar warp_m = k.warp() / 2, warp_n = k.warp() % 2;

    std::vector<FragmentVariable> acc;
    for (int i = 0; i < 2 * 4; ++i) acc.push_back(k.variable(operand_c(m16n8k16, f32)));
    k.loop(0, size.k / tile_k, 1, [&](Scalar t) {
      k.copy(a.tile(tile_m, tile_k, k.block_y(), t), sa);
      k.copy(b.tile(tile_k, tile_n, t, k.block_x()), sb);
      k.barrier();
      for (int step = 0; step < tile_k / 16; ++step) {
        std::vector<Fragment> fa, fb;
        for (int i = 0; i < 2; ++i)
          fa.push_back(k.load(operand_a(m16n8k16, f16), sa.tile(16, 16, warp_m * 2 + i, step)));
        for (int j = 0; j < 4; ++j)
          fb.push_back(k.load(operand_b(m16n8k16, f16), sb.tile(16, 8, step, warp_n * 4 + j)));
        for (int i = 0; i < 2; ++i)
          for (int j = 0; j < 4; ++j) acc[i * 4 + j] = k.mma(fa[i], fb[j], acc[i * 4 + j]);
      }
      k.barrier();
    });
    auto mine = c.tile(tile_m, tile_n, k.block_y(), k.block_x()).tile(32, 32, warp_m, warp_n);
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j) k.store(mine.tile(16, 8, i, j), acc[i * 4 + j]);
  });
}

Kernel one_wmma(Major a_major, Major b_major) {
  const std::string name = fmt::format("wmma_{}_{}", tartan::name(a_major), tartan::name(b_major));
  return kernel(name, {.block = 32}, [=](Builder& k) {
    auto a = k.global("A", f16, stored(a_major, 16, 16));
    auto b = k.global("B", f16, stored(b_major, 16, 16));
    auto d = k.global("D", f32, row_major(16, 16));
    auto fa = k.load(operand_a(wmma_m16n16k16, f16), a);
    auto fb = k.load(operand_b(wmma_m16n16k16, f16), b);
    k.store(d, k.mma(fa, fb, zero(f32)));
  });
}

}  // namespace tartan::kernels
