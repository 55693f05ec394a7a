// SPDX-License-Identifier: Apache-2.0
// Stages that are filled part by part: by TMA where a part begins with the swizzle. On the emulator
// with all checks, against loops in C++.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <random>

#include "tests/support/engine.h"

namespace tartan {
namespace {

constexpr int m = 64, n = 64, depth = 256, rows_of_page = 16, pages = 24;

// C = A * B^T, where A's 64 rows are four pages of 16 rows each, by a table: paged K, say. B's
// k-tile comes as `b_parts` parts along k. `whole`: lines lie in shared memory as a whole, not
// panel by panel.
Kernel paged(Tile tile, int producers, int rows, int b_parts, bool whole) {
  return kernel("paged", {.block = tile.threads(), .producers = producers}, [=](Builder& k) {
    auto A = k.global("A", f16, row_major(pages * rows_of_page, depth));
    auto B = k.global("B", f16, col_major(depth, n));
    auto table = k.global("table", s32, row_major(1, m / rows));
    auto C = k.global("C", f32, row_major(m, n));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    RingLayout ring_a = mma.shared_a(2), ring_b = mma.shared_b(2);
    if (whole) {
      ring_a.layout = row_major(m, tile.k).swizzled({3, 3, 3});
      ring_b.layout = col_major(tile.k, n).swizzled({3, 3, 3});
    }
    auto sA = k.shared("sA", f16, ring_a), sB = k.shared("sB", f16, ring_b);
    k.roles([&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = 2}, depth / tile.k,
          [&](Scalar t, Scalar stage) {
            for (int i = 0; i < m / rows; ++i) {
              auto page = k.convert(k.read(table, 0, i), u32);
              k.copy(A.window({page * rows, 0}, {rows, depth}).tile({0, t}, {rows, tile.k}),
                     sA[stage].tile({i, 0}, {rows, tile.k}));
            }
            for (int i = 0; i < b_parts; ++i)
              k.copy(B.tile({t * b_parts + i, 0}, {tile.k / b_parts, n}),
                     sB[stage].tile({i, 0}, {tile.k / b_parts, n}));
          },
          [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
      k.store(C, sum);
    });
  });
}

// How often the text starts a TMA load.
int loads(const std::string& ptx) {
  int out = 0;
  for (auto at = ptx.find("d.shared::cluster.global.mbarrier"); at != std::string::npos;
       at = ptx.find("d.shared::cluster.global.mbarrier", at + 1))
    ++out;
  return out;
}

void expect_paged(const char* target, const Tile& tile, int producers, int rows, int b_parts,
                  int expected_loads, bool whole = false) {
  SCOPED_TRACE(fmt::format("{} k {} producers {} pages of {} rows, B in {}, whole {}", target,
                           tile.k, producers, rows, b_parts, whole));
  std::mt19937 random(11);
  const auto numbers = [&](int count) {
    std::vector<host::f16> out;
    for (int i = 0; i < count; ++i) out.push_back(host::f16(static_cast<double>(random() % 9) - 4));
    return out;
  };
  const auto a = numbers(pages * rows_of_page * depth), b = numbers(n * depth);
  std::vector<std::int32_t> table;
  for (int i = 0; i < m / rows; ++i)
    table.push_back(static_cast<int>(random() % (pages * rows_of_page / rows)));
  std::vector<float> c(m * n);
  const auto compiled =
      compile(paged(tile, producers, rows, b_parts, whole), Target::parse(target)->arch);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(loads(compiled->ptx), expected_loads) << explain(compiled->choices);
  Device device = test::open_engine({.hardware = target, .checks = Checks::all});
  const auto done = run(device, *compiled, {1}, in(a), in(b), in(table), out(c));
  ASSERT_TRUE(done) << done.diags().text();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      const int row = table[static_cast<std::size_t>(i / rows)] * rows + i % rows;
      for (int t = 0; t < depth; ++t)
        sum += static_cast<double>(a[static_cast<std::size_t>(row * depth + t)]) *
               static_cast<double>(b[static_cast<std::size_t>(j * depth + t)]);
      ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], sum) << i << ' ' << j;
    }
}

TEST(StageParts, AreFilledByTma) {
  const Tile groups{.m = m, .n = n, .k = 64, .warps_m = 4, .warps_n = 1},
      wide{.m = m, .n = n, .k = 128, .warps_m = 4, .warps_n = 1},
      narrow{.m = m, .n = n, .k = 32, .warps_m = 2, .warps_n = 2};
  expect_paged("sm_90a", groups, 4, 16, 1, 4 + 1);
  // Two panels of 64 elements along k: a part has a box of each, and B two parts of one panel.
  expect_paged("sm_90a", wide, 4, 16, 2, 4 * 2 + 2);
  expect_paged("sm_90a", wide, 4, 32, 1, 2 * 2 + 2);
  // Rows of 64 bytes, for mma.sync.
  expect_paged("sm_90a", narrow, 1, 16, 1, 4 + 1);
  // Four rows are half of the swizzle's period: the threads copy every other part.
  expect_paged("sm_90a", groups, 4, 4, 1, 8 + 1);
  // Half of a panel is not contiguous.
  expect_paged("sm_90a", groups, 4, 16, 2, 4);
  for (const int producers : {0, 1}) {
    expect_paged("sm_80", groups, producers, 16, 2, 0);
    expect_paged("sm_80", narrow, producers, 16, 1, 0);
  }
}

// Lines longer than the swizzle's span, which mma.sync reads: a box has all panels of its lines.
TEST(StageParts, OfWholeLines) {
  const Tile tile{.m = m, .n = n, .k = 128, .warps_m = 2, .warps_n = 2};
  expect_paged("sm_90a", tile, 1, 16, 1, 4 + 1, true);
  expect_paged("sm_90a", tile, 1, 32, 1, 2 + 1, true);
  // Four lines of 256 bytes are one period of the swizzle, two are half of one: see above.
  expect_paged("sm_90a", tile, 1, 4, 1, 16 + 1, true);
  expect_paged("sm_90a", tile, 1, 2, 1, 16 + 1, true);
  // A part of the lines does not begin with a line.
  expect_paged("sm_90a", tile, 1, 16, 2, 4, true);
  expect_paged("sm_80", tile, 1, 16, 1, 0, true);
}

}  // namespace
}  // namespace tartan
