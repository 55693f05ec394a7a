// SPDX-License-Identifier: Apache-2.0
// Lesson 9: the same product for Hopper. Producer warps fill a ring of shared memory while the
// consumer warps multiply, tile of C after tile of C; two CTAs with vertically adjacent tiles read
// B once. One description serves every target: sm_90a gets TMA and wgmma, sm_80 cp.async and
// mma.sync, and sm_75 plain copies.
//
// The rules (tartan/dsl/tiled_mma.h has all of wgmma's, and explain() says which one is not met):
//   - wgmma: best_mma()'s kind, producers, m = 16 * warps_m, warps_n = 1, warps_m = 4, 8, ..
//   - k.roles(): memory and parameters are declared outside, each pipeline has rings of its own,
//     indexed by `stage`
//   - a cluster: all its CTAs fill equally many stages, with the same tile of what they multicast;
//     the grid is a whole number of clusters
//   - edges: copies and stores of tiles respect them, the index of a read() is clamped by hand
//   - rows and columns of tiles and elements are u32
#include "lesson.h"

using namespace tartan;

namespace {

constexpr int m = 200, n = 136, depth = 136;
constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
constexpr int cluster = 2, blocks = 4;  // fewer than there are tiles: each computes several

// C = A * B + bias, one bias per column.
Kernel product() {
  const KernelOptions options{.block = tile.threads(), .producers = 4, .cluster = cluster};
  return kernel("product", options, [](Builder& k) {
    auto A = k.global("A", f16, row_major(m, depth));
    auto B = k.global("B", f16, row_major(depth, n));
    auto bias = k.global("bias", f16, row_major(1, n));
    auto C = k.global("C", f32, row_major(m, n));

    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(stages, Major::row));
    auto sB = k.shared("sB", f16, mma.shared_b(stages, Major::row));

    k.roles([&] {
      k.each_tile(m, n, tile, [&](Scalar row, Scalar col) {
        auto fill = [&](Scalar t, Scalar stage) {
          k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);  // a row of tiles for each block,
          k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage],
                 {.multicast = Among::cluster});  // one column for both
        };
        auto sum = mma.accumulator();
        auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
        k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);

        auto biased = [&](Scalar x, ElementPlace at) {
          auto column = minimum(col * tile.n + at.col, n - 1);
          return x + k.convert(k.read(bias, 0, column), f32);
        };
        k.store(C.tile({row, col}, {tile.m, tile.n}), sum, biased);
      });
    });
  });
}

// What was chosen for a target, whatever device there is here: of these choices.
void print_choices(const char* target, std::initializer_list<const char*> choices) {
  std::printf("%s\n", target);
  for (const Choice& choice : lesson::must(compile(product(), *Arch::parse(target))).choices)
    for (const char* what : choices)
      if (choice.what.starts_with(what))
        std::printf("  %s: %s\n", choice.what.c_str(), choice.taken.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  print_choices("sm_90a", {"roles", "tile of", "copy A", "copy B"});
  print_choices("sm_80", {"roles", "product", "load", "copy A", "copy B"});

  std::vector<std::uint16_t> a, b, bias;
  for (int i = 0; i < m * depth; ++i) a.push_back(lesson::half(i % 11 - 5));
  for (int i = 0; i < depth * n; ++i) b.push_back(lesson::half(i % 7 - 3));
  for (int j = 0; j < n; ++j) bias.push_back(lesson::half(j % 5 - 2));
  const auto c = lesson::run<float>(device, product(), m * n, {a, b, bias}, {blocks});

  int mismatches = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = lesson::value(bias[j]);
      for (int x = 0; x < depth; ++x)
        sum += lesson::value(a[i * depth + x]) * lesson::value(b[x * n + j]);
      mismatches += c[i * n + j] != sum;
    }
  std::printf("%d x %d x %d: mismatches %d of %d\n", m, n, depth, mismatches, m * n);
  return mismatches != 0;
}
