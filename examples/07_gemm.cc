// SPDX-License-Identifier: Apache-2.0
// Lesson 7: a whole matrix product.
#include "lesson.h"

using namespace tartan;

Kernel product(int m, int n, int depth) {
  const Tile tile{.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};
  return kernel("product", {.block = tile.threads()}, [=](Builder& k) {
    auto A = k.global("A", f16, row_major(m, depth));
    auto B = k.global("B", f16, row_major(depth, n));
    auto C = k.global("C", f32, row_major(m, n));

    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(stages, Major::row));
    auto sB = k.shared("sB", f16, mma.shared_b(stages, Major::row));
    auto sum = mma.accumulator();

    auto [row, col] = k.block_tile(m, n, tile);
    auto fill = [&, row = row, col = col](Scalar t, Scalar stage) {
      k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
      k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
    };
    auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
    k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);
    k.store(C.tile({row, col}, {tile.m, tile.n}), relu(sum));
  });
}

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  constexpr int m = 200, n = 136, depth = 72;
  std::vector<std::uint16_t> a, b;
  for (int i = 0; i < m * depth; ++i) a.push_back(lesson::half(i % 11 - 5));
  for (int i = 0; i < depth * n; ++i) b.push_back(lesson::half(i % 7 - 3));
  const Dim3 grid{(m + 63) / 64 * ((n + 63) / 64)};
  const auto c = lesson::run<float>(device, product(m, n, depth), m * n, {a, b}, grid);

  int mismatches = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int x = 0; x < depth; ++x)
        sum += lesson::value(a[i * depth + x]) * lesson::value(b[x * n + j]);
      mismatches += c[i * n + j] != (sum > 0 ? sum : 0);
    }
  std::printf("%d x %d x %d: mismatches %d of %d\n", m, n, depth, mismatches, m * n);
  return mismatches != 0;
}
