// SPDX-License-Identifier: Apache-2.0
// Tiles that reach beyond a matrix whose rows and columns outside may be any: copies by TMA repeat
// lines of the matrix there, all others fill with zeros.
#include <set>

#include "tests/dsl/refusals.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Product;

constexpr int tile_rows = 16, tile_cols = 32, width = 64;

// Row r of a matrix of `height` rows; no two are alike.
std::vector<double> row_of(int r) {
  std::vector<double> out;
  for (int c = 0; c < width; ++c) out.push_back(r * 8 % 61 + r + c % 7);
  return out;
}

// Copies the tile of row `row` to shared memory and from there to the output, which has no edge.
// With `columns`, everything is transposed. `place`: the row where it is no parameter's.
Kernel copied(int height, bool any, bool columns, int producers,
              const std::optional<int>& place = {}) {
  return kernel("copied", {.block = 64, .producers = producers}, [=](Builder& k) {
    const Scalar given = k.param("row", s32), row = place ? Scalar(*place) : given;
    Global in = k.global("in", f16, row_major(height, width));
    Global out = k.global("out", f16, row_major(tile_rows, tile_cols));
    if (columns) {
      in = in.transposed(), out = out.transposed();
      if (any) in = in.any_cols_outside();
    } else if (any) {
      in = in.any_rows_outside();
    }
    const Layout layout =
        columns ? col_major(tile_cols, tile_rows) : row_major(tile_rows, tile_cols);
    const auto ring = k.shared("s", f16, RingLayout{layout, 1});
    const auto tile = [&] {
      return columns ? in.tile({1, row}, {tile_cols, tile_rows})
                     : in.tile({row, 1}, {tile_rows, tile_cols});
    };
    k.roles([&] {
      k.pipeline(
          {.stages = 1}, 1, [&](Scalar, Scalar s) { k.copy(tile(), ring[s]); },
          [&](Scalar, Scalar s) { k.copy(ring[s], out); });
    });
  });
}

std::vector<double> run(const Kernel& kernel, const char* target, int height, int row) {
  std::vector<int> numbers;
  for (int r = 0; r < height; ++r)
    for (const double x : row_of(r)) numbers.push_back(static_cast<int>(x));
  const testing_gemm::Launch launch{
      {1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& kept) {
        arguments.add(std::int32_t{row});
        kept.push_back(testing_gemm::buffer_of(device, testing_numbers::encode(f16, numbers)));
        arguments.add(kept.back());
        Buffer out = testing_gemm::buffer_of(
            device, testing_numbers::encode(f16, std::vector<int>(tile_rows * tile_cols, 77)));
        arguments.add(out);
        return out;
      }};
  return testing_numbers::decode(
      f16, testing_gemm::run(kernel, testing_gemm::target_of(target), launch));
}

// The second 32 columns of a row of the matrix.
std::vector<double> right_half(int r) {
  const auto row = row_of(r);
  return {row.begin() + tile_cols, row.end()};
}

TEST(RowsOutside, RepeatThoseInside) {
  const std::vector<double> zeros(tile_cols, 0);
  for (const bool columns : {false, true})
    for (const auto& [height, row] :
         {std::pair{40, 2}, {40, 1}, {48, 2}, {36, 2}, {33, 2}, {47, 2}, {5, 0}, {24, 1}})
      for (const bool any : {false, true}) {
        SCOPED_TRACE(
            fmt::format("{} of {} rows, {}{}", row, height, any, columns ? ", columns" : ""));
        const auto got = run(copied(height, any, columns, 4), "sm_90a", height, row);
        ASSERT_EQ(got.size(), std::size_t{tile_rows} * tile_cols);
        // Boxes end at multiples of eight lines, and zeros fill what of them is outside.
        const int whole_boxes = (height + 7) / 8 * 8;
        std::set<std::vector<double>> all;
        for (int r = 0; r < height; ++r) all.insert(right_half(r));
        for (int i = 0; i < tile_rows; ++i) {
          const std::vector<double> line(got.begin() + i * tile_cols,
                                         got.begin() + (i + 1) * tile_cols);
          const int r = row * tile_rows + i;
          if (r < height) {
            EXPECT_EQ(line, right_half(r)) << r;
          } else if (!any || r < whole_boxes) {
            EXPECT_EQ(line, zeros) << r;
          } else if (height >= 8) {
            EXPECT_TRUE(all.contains(line)) << r;
          }
        }
      }
}

TEST(RowsOutside, AreZerosWithoutTma) {
  const std::vector<double> zeros(tile_cols, 0);
  for (const char* target : {"sm_80", "sm_90a"}) {
    const auto got = run(copied(40, true, false, target[3] == '8' ? 1 : 0), target, 40, 2);
    for (int i = 0; i < tile_rows; ++i)
      EXPECT_EQ(std::vector<double>(got.begin() + i * tile_cols, got.begin() + (i + 1) * tile_cols),
                i < 8 ? right_half(32 + i) : zeros);
  }
}

// Where the tile's place is a constant, one of the two ways is left.
TEST(RowsOutside, PlacesMayBeConstants) {
  for (const int row : {0, 1, 2}) {
    const auto got = run(copied(40, true, false, 4, row), "sm_90a", 40, row);
    for (int i = 0; i < std::min(tile_rows, 40 - row * tile_rows); ++i)
      EXPECT_EQ(std::vector<double>(got.begin() + i * tile_cols, got.begin() + (i + 1) * tile_cols),
                right_half(row * tile_rows + i));
  }
}

// The heights of the boxes of a matrix.
std::multiset<int> heights_of(const Compiled& compiled, const std::string& name) {
  std::multiset<int> out;
  for (const CompiledMap& each : compiled.maps)
    if (each.name == name) out.insert(each.box.back());
  return out;
}

Gemm of_edges(int m, int n, int tile_m, int tile_n) {
  Gemm out{.m = m, .n = n, .k = 128, .stages = 2};
  out.tile = {.m = tile_m, .n = tile_n, .k = 64, .warps_m = tile_m / 16, .warps_n = 1};
  out.producers = 4;
  return out;
}

// By hand: 1000 = 7 * 128 + 104, 1128 = 6 * 176 + 72.
TEST(RowsOutside, BoxesEndAtTheEdges) {
  const Target target = testing_gemm::target_of("sm_90a");
  const auto boxes = [&](const Gemm& options, const std::string& name) {
    const auto compiled = compile(kernels::gemm(options), target);
    EXPECT_TRUE(compiled) << compiled.diags().text();
    return compiled ? heights_of(*compiled, name) : std::multiset<int>();
  };
  using Heights = std::multiset<int>;
  EXPECT_EQ(boxes(of_edges(1000, 1128, 128, 176), "A_map"), (Heights{24, 104, 128}));
  EXPECT_EQ(boxes(of_edges(1000, 1128, 128, 176), "B_map"), (Heights{72, 104, 176}));
  EXPECT_EQ(boxes(of_edges(1024, 1056, 128, 176), "A_map"), (Heights{128}));
  EXPECT_EQ(boxes(of_edges(1024, 1056, 128, 176), "B_map"), (Heights{176}));
  EXPECT_EQ(boxes(of_edges(997, 1056, 128, 176), "A_map"), (Heights{24, 104, 128}));
  EXPECT_EQ(boxes(of_edges(1023, 1056, 128, 176), "A_map"), (Heights{128}));
  Gemm shared = of_edges(1000, 1128, 128, 128);
  shared.cluster = 2;  // each CTA loads 64 columns, and a row outside is asked for once
  EXPECT_EQ(boxes(shared, "B_map"), (Heights{64}));
  Gemm swapped = of_edges(72, 1000, 128, 72);
  swapped.swap = true;
  EXPECT_EQ(boxes(swapped, "A_map"), (Heights{72}));
  EXPECT_EQ(boxes(swapped, "B_map"), (Heights{24, 104, 128}));
  Gemm unknown = of_edges(0, 0, 128, 176);
  EXPECT_EQ(boxes(unknown, "B_map"), (Heights{176}));
}

TEST(RowsOutside, ProductsAreTheSame) {
  const Target target = testing_gemm::target_of("sm_90a");
  if (!testing_gemm::runs_on_gpu(target) && testing_gemm::gpu()) GTEST_SKIP();
  for (const int m : {8, 129, 136, 250, 384})
    for (const int n : {8, 72, 136, 184, 360})
      for (const auto& [cluster, columns] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
        for (const Major a_major : {Major::row, Major::col}) {
          if (a_major == Major::col && m % 8) continue;
          SCOPED_TRACE(
              fmt::format("{} x {}, {} x {}, {}", m, n, cluster, columns, a_major == Major::col));
          Gemm options = of_edges(m, n, 128, 128);
          options.a_major = a_major, options.cluster = cluster, options.cluster_columns = columns;
          const Product product(options, m, n, 136, true);
          EXPECT_EQ(product.wrong(testing_gemm::run(kernels::gemm(product.options), target,
                                                    product.launch())),
                    0);
        }
}

}  // namespace
}  // namespace tartan
