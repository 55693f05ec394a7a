// SPDX-License-Identifier: Apache-2.0
// How the warps of a CTA divide tiles: warps that share the k-steps, products side by side,
// warpgroups of several wgmma; and rows that are stored by index. On the emulator with all checks,
// against loops in C++.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <random>

#include "tests/support/engine.h"

namespace tartan {
namespace {

template <typename... Arguments>
std::string run_on(const char* target, const Kernel& kernel, unsigned grid,
                   const Arguments&... arguments) {
  Device device = test::open_engine({.hardware = target, .checks = Checks::all});
  const auto compiled = compile(kernel, Target::parse(target)->arch);
  EXPECT_TRUE(compiled) << compiled.diags().text();
  if (!compiled) return {};
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  const auto done = run(device, *compiled, {grid}, arguments...);
  EXPECT_TRUE(done) << done.diags().text();
  return compiled->ptx;
}

template <typename T>
std::vector<T> numbers(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> out;
  for (int i = 0; i < count; ++i)
    out.push_back(T(static_cast<float>(static_cast<int>(random() % 9) - 4)));
  return out;
}

// Row-major A (m x depth) times the transpose of row-major B (n x depth), of matrix `of` of each.
template <typename T>
double element(const std::vector<T>& a, const std::vector<T>& b, int i, int j, int depth) {
  double sum = 0;
  for (int t = 0; t < depth; ++t)
    sum += static_cast<double>(a[static_cast<std::size_t>(i * depth + t)]) *
           static_cast<double>(b[static_cast<std::size_t>(j * depth + t)]);
  return sum;
}

struct Case {
  Tile tile;
  int producers = 0;
  Type type = f16, accumulator = f32;
  bool a_in_registers = false;
};

// C = A * B, and the sums of C's rows and columns within each tile.
Kernel gemm_with(const Case& with) {
  return kernel(
      "tile_warps", {.block = with.tile.threads(), .producers = with.producers}, [=](Builder& k) {
        const Tile& tile = with.tile;
        auto m = k.param("m", s32), n = k.param("n", s32, 16), depth = k.param("depth", s32, 16);
        auto A = k.global("A", with.type, row_major(m, depth)),
             B = k.global("B", with.type, col_major(depth, n)),
             C = k.global("C", with.accumulator, row_major(m, n)),
             rows = k.global("rows", with.accumulator, row_major(ceil_div(n, tile.n), m)),
             cols = k.global("cols", with.accumulator, row_major(ceil_div(m, tile.m), n));
        auto mma = k.tiled_mma(k.best_mma(with.type, with.type, with.accumulator), tile);
        auto sA = k.shared("sA", with.type, mma.shared_a(2)),
             sB = k.shared("sB", with.type, mma.shared_b(2));
        auto [row, col] = k.block_tile(m, n, tile);
        k.roles([&, row = row, col = col] {
          auto sum = mma.accumulator();
          k.pipeline(
              {.stages = 2}, ceil_div(depth, tile.k),
              [&](Scalar t, Scalar stage) {
                k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
                k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
              },
              [&](Scalar, Scalar stage) {
                if (with.a_in_registers) sum = mma(sum, mma.load_a(sA[stage]), sB[stage]);
                else sum = mma(sum, sA[stage], sB[stage]);
              });
          const WarpTile whole = mma.sum(sum);
          const RowValues of_rows = row_sum(whole);
          const ColumnValues of_cols = col_sum(whole);
          const RowValues row_at = row_places(whole);
          const ColumnValues col_at = col_places(whole);
          for (std::size_t i = 0; i < of_rows.size(); ++i)
            k.when((row * tile.m + row_at[i] < k.convert(m, u32)) & (k.lane() % 4 == 0) &
                       (whole.col(0) == 0),
                   [&] { k.write(rows, col, row * tile.m + row_at[i], of_rows[i]); });
          for (std::size_t i = 0; i < of_cols.size(); ++i)
            k.when((col * tile.n + col_at[i] < k.convert(n, u32)) & (k.lane() < 4) &
                       (whole.row(0) == 0),
                   [&] { k.write(cols, row, col * tile.n + col_at[i], of_cols[i]); });
          k.store(C.tile({row, col}, {tile.m, tile.n}), whole);
        });
      });
}

template <typename In, typename Out>
std::string expect_gemm(const char* target, const Case& with, int m, int n, int depth) {
  const Tile& tile = with.tile;
  SCOPED_TRACE(fmt::format("{}: {}x{}x{} warps {}x{}x{} producers {} for {}x{}x{}", target, tile.m,
                           tile.n, tile.k, tile.warps_m, tile.warps_n, tile.warps_k, with.producers,
                           m, n, depth));
  const auto a = numbers<In>(m * depth, 1), b = numbers<In>(n * depth, 2);
  const int down = (m + tile.m - 1) / tile.m, across = (n + tile.n - 1) / tile.n;
  std::vector<Out> c(static_cast<std::size_t>(m * n)), rows(static_cast<std::size_t>(across * m)),
      cols(static_cast<std::size_t>(down * n));
  const std::string ptx = run_on(target, gemm_with(with), tile.blocks(m, n), m, n, depth, in(a),
                                 in(b), out(c), out(rows), out(cols));
  std::vector<double> of_rows(rows.size()), of_cols(cols.size());
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const double x = element(a, b, i, j, depth);
      of_rows[static_cast<std::size_t>(j / tile.n * m + i)] += x;
      of_cols[static_cast<std::size_t>(i / tile.m * n + j)] += x;
      EXPECT_EQ(static_cast<double>(c[static_cast<std::size_t>(i * n + j)]), x) << i << ' ' << j;
      if (testing::Test::HasFailure()) return ptx;
    }
  EXPECT_EQ(std::vector<double>(rows.begin(), rows.end()), of_rows);
  EXPECT_EQ(std::vector<double>(cols.begin(), cols.end()), of_cols);
  return ptx;
}

TEST(TileWarps, DivideTheKSteps) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int producers : {0, 1}) {
      const Case small{{.m = 16, .n = 32, .k = 64, .warps_m = 1, .warps_n = 1, .warps_k = 4},
                       producers};
      expect_gemm<host::f16, float>(target, small, 16, 32, 256);
      expect_gemm<host::f16, float>(target, small, 30, 48, 80);
      const Case several{{.m = 32, .n = 64, .k = 64, .warps_m = 2, .warps_n = 2, .warps_k = 2},
                         producers};
      expect_gemm<host::f16, float>(target, several, 70, 80, 144);
    }
  const Case bytes{
      {.m = 32, .n = 32, .k = 64, .warps_m = 2, .warps_n = 1, .warps_k = 2}, 0, s8, s32};
  expect_gemm<std::int8_t, std::int32_t>("sm_80", bytes, 40, 48, 112);
  const Case registers{
      {.m = 16, .n = 32, .k = 64, .warps_m = 1, .warps_n = 1, .warps_k = 4}, 0, f16, f32, true};
  expect_gemm<host::f16, float>("sm_80", registers, 30, 48, 80);
}

// The parts of a long k are added in the order of the warps: the bits are those of that order.
TEST(TileWarps, AddPartsInTheirOrder) {
  const Tile tile{.m = 16, .n = 32, .k = 64, .warps_m = 1, .warps_n = 1, .warps_k = 4};
  const auto kernel = tartan::kernel("order", {.block = 128}, [=](Builder& k) {
    auto A = k.global("A", f16, row_major(16, 64)), B = k.global("B", f16, col_major(64, 32));
    auto C = k.global("C", f32, row_major(16, 32));
    auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a())[0], sB = k.shared("sB", f16, mma.shared_b())[0];
    k.copy(A, sA), k.copy(B, sB);
    k.barrier();
    auto sum = mma.accumulator();
    sum = mma(sum, sA, sB);
    k.store(C, mma.sum(sum));
  });
  // Each quarter of k has one product, whose sum rounds.
  const float parts[] = {16777216.0F, 1, 1, -16777216.0F};
  std::vector<host::f16> a(16 * 64), b(64 * 32);
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t q = 0; q < 4; ++q) a[i * 64 + 16 * q] = host::f16(parts[q] / 4096);
  for (std::size_t j = 0; j < 32; ++j)
    for (std::size_t q = 0; q < 4; ++q) b[j * 64 + 16 * q] = host::f16(4096.0F);
  std::vector<float> c(16 * 32);
  run_on("sm_80", kernel, 1, in(a), in(b), out(c));
  volatile float sum = 0;
  for (const float part : parts) sum = sum + static_cast<float>(host::f16(part / 4096)) * 4096;
  for (const float each : c) EXPECT_EQ(each, sum);
}

// Each group of warps has operands and a result of its own.
TEST(TileWarps, ComputeProductsSideBySide) {
  const Tile tiles[] = {
      {.m = 16, .n = 32, .k = 16, .warps_m = 1, .warps_n = 1, .products = 4},
      {.m = 32, .n = 16, .k = 32, .warps_m = 2, .warps_n = 1, .products = 3},
      {.m = 16, .n = 32, .k = 64, .warps_m = 1, .warps_n = 2, .warps_k = 2, .products = 2}};
  for (const char* target : {"sm_80", "sm_90a"})
    for (const Tile& tile : tiles) {
      SCOPED_TRACE(fmt::format("{}: {} products of {}x{}x{}", target, tile.products, tile.m, tile.n,
                               tile.k));
      const int depth = 2 * tile.k, all = 2 * tile.products - 1;  // the last CTA has one fewer
      const auto kernel = tartan::kernel("products", {.block = tile.threads()}, [=](Builder& k) {
        auto count = k.param("count", s32);
        auto A = k.global("A", f16, row_major(tile.m, depth)),
             B = k.global("B", f16, col_major(depth, tile.n)),
             C = k.global("C", f32, row_major(tile.m, tile.n));
        auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
        auto sA = k.shared("sA", f16, mma.shared_a(2 * tile.products)),
             sB = k.shared("sB", f16, mma.shared_b(2 * tile.products));
        auto first = k.block_x() * tile.products;
        auto sum = mma.accumulator();
        k.pipeline(
            {.stages = 2}, 2,
            [&](Scalar t, Scalar stage) {
              for (int i = 0; i < tile.products; ++i) {
                auto number = minimum(first + i, k.convert(count, u32) - 1);
                k.copy(A.matrix(number).tile({0, t}, {tile.m, tile.k}),
                       sA[stage * tile.products + i]);
                k.copy(B.matrix(number).tile({t, 0}, {tile.k, tile.n}),
                       sB[stage * tile.products + i]);
              }
            },
            [&](Scalar, Scalar stage) {
              const Scalar own = stage * tile.products + mma.product();
              sum = mma(sum, sA[own], sB[own]);
            });
        const WarpTile whole = mma.sum(sum);
        const Scalar number = first + mma.product();
        k.when(number < k.convert(count, u32), [&] { k.store(C.matrix(number), whole); });
      });
      const auto a = numbers<host::f16>(all * tile.m * depth, 3),
                 b = numbers<host::f16>(all * tile.n * depth, 4);
      std::vector<float> c(static_cast<std::size_t>(all * tile.m * tile.n));
      run_on(target, kernel, 2, all, in(a), in(b), out(c));
      for (int p = 0; p < all; ++p)
        for (int i = 0; i < tile.m; ++i)
          for (int j = 0; j < tile.n; ++j)
            ASSERT_EQ(c[static_cast<std::size_t>((p * tile.m + i) * tile.n + j)],
                      element(a, b, p * tile.m + i, p * tile.n + j, depth));
    }
}

// One warpgroup of 128 or 192 rows: a wgmma for each 64.
TEST(TileWarps, OfAWarpgroupHaveSeveralBlocksOfRows) {
  for (const bool registers : {false, true}) {
    const Case one{
        {.m = 128, .n = 32, .k = 64, .warps_m = 4, .warps_n = 1}, 4, f16, f32, registers};
    const std::string ptx = expect_gemm<host::f16, float>("sm_90a", one, 150, 48, 144);
    EXPECT_NE(ptx.find("wgmma.mma_async.sync.aligned.m64n32k16"), std::string::npos);
    EXPECT_EQ(ptx.find("\tmma.sync"), std::string::npos);
  }
  const Case two{{.m = 256, .n = 16, .k = 64, .warps_m = 8, .warps_n = 1}, 4};
  const std::string ptx = expect_gemm<host::f16, float>("sm_90a", two, 200, 16, 80);
  EXPECT_NE(ptx.find("wgmma"), std::string::npos);
  const Case three{{.m = 192, .n = 16, .k = 64, .warps_m = 4, .warps_n = 1}, 4, s8, s32};
  expect_gemm<std::int8_t, std::int32_t>("sm_90a", three, 192, 16, 80);
}

// Rows by index, out of order, twice none: as pairs, single elements, beyond the columns' edge.
TEST(TileWarps, StoreRowsByIndex) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int n : {64, 52, 45})
      for (const int producers : {0, 4}) {
        SCOPED_TRACE(fmt::format("{} {} columns, {} producers", target, n, producers));
        const Tile tile{.m = 64, .n = 32, .k = 32, .warps_m = 4, .warps_n = 1};
        const auto kernel = tartan::kernel(
            "scatter", {.block = tile.threads(), .producers = producers}, [=](Builder& k) {
              auto A = k.global("A", f16, row_major(64, 32)),
                   B = k.global("B", f16, col_major(32, 64));
              auto index = k.global("index", s32, row_major(1, 64));
              auto C = k.global("C", f32, row_major(80, n)),
                   H = k.global("H", f16, row_major(80, n));
              auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
              auto sA = k.shared("sA", f16, mma.shared_a(1)),
                   sB = k.shared("sB", f16, mma.shared_b(1));
              auto col = k.block_x();
              k.roles([&] {
                auto sum = mma.accumulator();
                k.pipeline(
                    {.stages = 1}, 1,
                    [&](Scalar, Scalar stage) {
                      k.copy(A.tile({0, 0}, {64, 32}), sA[stage]);
                      k.copy(B.tile({0, col}, {32, 32}), sB[stage]);
                    },
                    [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
                const auto row_of = [&](const Scalar& i) { return k.read(index, 0, i); };
                k.store_rows(C.window({0, col * 32}, {80, 32}), sum, row_of);
                k.store_rows(H.window({0, col * 32}, {80, 32}), convert(sum, f16), row_of);
              });
            });
        const auto a = numbers<host::f16>(64 * 32, 5), b = numbers<host::f16>(64 * 32, 6);
        std::vector<std::int32_t> index;
        for (int i = 0; i < 64; ++i)
          index.push_back(i == 3 ? -1 : i == 9 ? 80 : (i * 37 + 5) % 64 + 16);
        std::vector<float> c(static_cast<std::size_t>(80 * n), 7), expected = c;
        std::vector<host::f16> h(c.size(), host::f16(7.0F));
        run_on(target, kernel, 2, in(a), in(b), in(index), in_out(c), in_out(h));
        for (int i = 0; i < 64; ++i)
          for (int j = 0; j < n; ++j)
            if (const int row = index[static_cast<std::size_t>(i)]; row >= 0 && row < 80)
              expected[static_cast<std::size_t>(row * n + j)] =
                  static_cast<float>(element(a, b, i, j, 32));
        EXPECT_EQ(c, expected);
        for (std::size_t i = 0; i < h.size(); ++i)
          ASSERT_EQ(static_cast<float>(h[i]), static_cast<float>(host::f16(expected[i])));
      }
}

// Boxes of other sizes do not share the memory that the first store's are staged in.
TEST(TileWarps, StoreToRowsAndToColumns) {
  constexpr int m = 64, n = 128, depth = 64;
  const Tile tile{.m = m, .n = n, .k = depth, .warps_m = 4, .warps_n = 1};
  for (const bool rows_first : {false, true}) {
    const auto kernel =
        tartan::kernel("both", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
          auto A = k.global("A", f16, row_major(m, depth)),
               B = k.global("B", f16, col_major(depth, n)), C = k.global("C", f16, row_major(m, n)),
               D = k.global("D", f16, col_major(m, n));
          auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
          auto sA = k.shared("sA", f16, mma.shared_a(1)), sB = k.shared("sB", f16, mma.shared_b(1));
          k.roles([&] {
            auto sum = mma.accumulator();
            k.pipeline(
                {.stages = 1}, 1,
                [&](Scalar, Scalar stage) {
                  k.copy(A.tile({0, 0}, {m, depth}), sA[stage]);
                  k.copy(B.tile({0, 0}, {depth, n}), sB[stage]);
                },
                [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
            const WarpTile stored = convert(sum, f16);
            for (const Global& to : rows_first ? std::vector{C, D} : std::vector{D, C})
              k.store(to.tile({0, 0}, {m, n}), stored);
          });
        });
    const auto a = numbers<host::f16>(m * depth, 7), b = numbers<host::f16>(depth * n, 8);
    std::vector<host::f16> c(m * n), d(m * n);
    run_on("sm_90a", kernel, 1, in(a), in(b), out(c), out(d));
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        const auto expected = static_cast<float>(element(a, b, i, j, depth));
        ASSERT_EQ(static_cast<float>(c[static_cast<std::size_t>(i * n + j)]), expected);
        ASSERT_EQ(static_cast<float>(d[static_cast<std::size_t>(j * m + i)]), expected);
      }
  }
}

}  // namespace
}  // namespace tartan
