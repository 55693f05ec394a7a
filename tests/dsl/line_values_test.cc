// SPDX-License-Identifier: Apache-2.0
// Values of a tile's rows and columns in memory, and where rows of fragments begin, on the emulator
// with all checks.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

struct Shape {
  const char* target;
  Tile tile;
  int producers;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"sm_80", {.m = 32, .n = 16, .k = 16, .warps_m = 1, .warps_n = 1}, 0},
      {"sm_80", {.m = 64, .n = 32, .k = 16, .warps_m = 2, .warps_n = 2}, 0},
      {"sm_90a", {.m = 64, .n = 32, .k = 16, .warps_m = 4, .warps_n = 1}, 1},
      {"sm_90a", {.m = 128, .n = 16, .k = 16, .warps_m = 4, .warps_n = 1}, 1}};
  return all;
}

// Runs `body`, of the consumers, with a product of zeros: a tile of a shape that the target chose.
template <typename T>
std::vector<T> results(const Shape& shape, Type type, std::size_t size,
                       const std::function<void(Builder&, Global, WarpTile)>& body) {
  const Tile& tile = shape.tile;
  const KernelOptions options{.block = tile.threads(), .producers = shape.producers};
  const Kernel values = kernel("values", options, [&](Builder& k) {
    auto a = k.global("a", f16, row_major(tile.m, tile.k));
    auto b = k.global("b", f16, row_major(tile.k, tile.n));
    auto to = k.global("to", type, row_major(1, size));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sa = k.shared("sa", f16, mma.shared_a(1)),
         sb = k.shared("sb", f16, mma.shared_b(1, Major::row));
    const auto all = [&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = 1}, 1,
          [&](Scalar, Scalar stage) { k.copy(a, sa[stage]), k.copy(b, sb[stage]); },
          [&](Scalar, Scalar stage) { sum = mma(sum, sa[stage], sb[stage]); });
      body(k, to, sum);
    };
    if (shape.producers) k.roles(all);
    else all();
  });
  Device device = test::open_engine({.hardware = shape.target, .checks = Checks::all});
  const std::vector<host::f16> zeros_a(static_cast<std::size_t>(tile.m * tile.k)),
      zeros_b(static_cast<std::size_t>(tile.k * tile.n));
  std::vector<T> got(size, T(-1));
  const auto done = run(device, values, {1}, in(zeros_a), in(zeros_b), in_out(got));
  EXPECT_TRUE(done) << done.diags().text();
  return got;
}

TEST(LineValues, AreStoredOnceByTheirOwner) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << shape.target << " " << shape.tile.m);
    if (!test::engine_runs(*Target::parse(shape.target))) continue;
    const auto m = static_cast<std::size_t>(shape.tile.m),
               n = static_cast<std::size_t>(shape.tile.n);
    const auto got = results<
        std::uint32_t>(shape, u32, m + n, [&](Builder& k, Global to, WarpTile tile) {
      k.store(to.window({0, 0}, {1, m}).tile({0, 0}, {1, m}), row_places(tile), tile);
      k.store(to.window({0, m}, {1, n}).transposed().tile({0, 0}, {n, 1}), col_places(tile), tile);
    });
    for (std::size_t i = 0; i < m; ++i) EXPECT_EQ(got[i], i);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(got[m + i], i);
  }
}

TEST(LineValues, BeyondTheEdgeAreLeftOut) {
  const Shape& shape = shapes()[0];
  const auto got = results<float>(shape, f32, 40, [&](Builder& k, Global to, WarpTile tile) {
    k.store(to.tile({0, 1}, {1, 32}), row_sum(tile), tile);
  });
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i < 32 ? -1 : 0) << i;
}

// row() and col() are where the elements are of which place() says the rest.
TEST(LineValues, RowsOfFragmentsBeginWhereTheirElementsAre) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << shape.target << " " << shape.tile.m);
    if (!test::engine_runs(*Target::parse(shape.target))) continue;
    const auto size = static_cast<std::size_t>(shape.tile.m * shape.tile.n);
    const auto got =
        results<std::uint32_t>(shape, u32, size, [&](Builder& k, Global to, WarpTile tile) {
          const auto places = [&](int i, int j, int e) {
            const ElementPlace at = k.place(tile.fragment(i, j).kind(), e);
            return (tile.row(i) + at.row) * shape.tile.n + tile.col(j) + at.col;
          };
          int next = 0;
          for_each(tile, [&](Scalar, ElementPlace at) {
            const int e = next % 4, j = next / 4 % tile.across(), i = next / 4 / tile.across();
            ++next;
            k.write(to, 0, at.row * shape.tile.n + at.col, places(i, j, e));
          });
        });
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(got[i], i);
  }
}

TEST(LineValues, OfAnAccumulatorAreThoseOfItsTile) {
  test::expect_told(
      [](Builder& k) {
        auto mma = k.tiled_mma(m16n8k16(f16, f16, f32),
                               {.m = 64, .n = 32, .k = 16, .warps_m = 2, .warps_n = 1});
        auto sum = mma.accumulator();
        const WarpTile tile = sum;
        k.require(sum.down() == 2 && sum.across() == 4 && sum.place().rows == 64, "its size");
        k.require(sum.col(3).constant() == 24 && tile.col(3).constant() == 24, "its columns");
        k.require(sum.row(0).multiple() == 32 && tile.row(1).multiple() == 16, "its rows");
        sum.row(2);
        sum.col(-1);
        k.require(false, "the end");
      },
      {"row of fragments out of bounds: the tile has 2 rows of them per warp, found number 2",
       "column of fragments out of bounds: the tile has 4 columns of them per warp, found number "
       "-1",
       "the end"});
}

TEST(LineValues, ThatDoNotFitAreTold) {
  const auto with = [](const std::function<void(Builder&, WarpTile, Global)>& body) {
    return [=](Builder& k) {
      auto mma = k.tiled_mma(m16n8k16(f16, f16, f32),
                             {.m = 64, .n = 32, .k = 16, .warps_m = 2, .warps_n = 1});
      body(k, mma.accumulator(), k.global("to", f32, row_major(1, 64)));
    };
  };
  test::expect_told(with([](Builder& k, WarpTile x, Global to) { k.store(to, RowValues(3), x); }),
                    {"wrong number of row values: the tile has 4 rows per lane, found 3"});
  test::expect_told(with([](Builder& k, WarpTile x, Global to) { k.store(to, col_sum(x), x); }),
                    {"expected a matrix of 32 x 1 or 1 x 32 elements, one for each column"});
  test::expect_told(with([](Builder& k, WarpTile x, Global to) { k.store(to, row_places(x), x); }),
                    {"to has elements of f32, the value is u32"});
}

}  // namespace
}  // namespace tartan
