// SPDX-License-Identifier: Apache-2.0
// Arithmetic on tiles, and reductions along their rows and columns, on the emulator, against plain
// loops: accumulators of every type, warps that divide rows and columns, and warpgroups.
#include <tuple>

#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using testing_gemm::Launch;
using Matrix = std::vector<double>;  // row-major, rows x cols

constexpr int rows = 64, cols = 64, depth = 32;

std::vector<int> numbers(int count, int seed) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back((i * 7 + i / 5 * seed) % 5 - 2);
  return out;
}

Matrix product(const std::vector<int>& a, const std::vector<int>& b) {
  Matrix out(std::size_t{rows} * cols);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j)
      for (std::size_t x = 0; x < depth; ++x)
        out[i * cols + j] += a[i * depth + x] * b[x * cols + j];
  return out;
}

// What a kernel does with the product of a 64 x 64 tile, and what a loop makes of it.
struct Case {
  std::function<WarpTile(Builder&, TiledMma&, Accumulator&)> tile;
  std::function<double(const Matrix& p, int i, int j)> element;
};

struct Shape {
  const char* target;
  Type input, result;
  int warps_m, warps_n, producers;
};

// Types of accumulators, divisions among warps, and wgmma.
constexpr Shape shapes[] = {
    {"sm_80", f16, f32, 2, 2, 0},   {"sm_80", f16, f32, 4, 1, 0}, {"sm_80", f16, f32, 1, 4, 0},
    {"sm_80", bf16, f32, 2, 4, 0},  {"sm_80", f16, f16, 2, 2, 0}, {"sm_80", s8, s32, 2, 2, 0},
    {"sm_80", f64, f64, 2, 2, 0},   {"sm_75", f16, f32, 2, 2, 0}, {"sm_90a", f16, f32, 4, 1, 4},
    {"sm_90a", f16, f32, 2, 2, 4},  {"sm_90a", s8, s32, 4, 1, 4}, {"sm_90", f64, f64, 1, 2, 0},
    {"sm_120a", f16, f32, 2, 2, 0},
};

Kernel described(const Shape& shape, const Case& test) {
  const Tile tile{
      .m = rows, .n = cols, .k = depth, .warps_m = shape.warps_m, .warps_n = shape.warps_n};
  return kernel("words", {.block = tile.threads(), .producers = shape.producers}, [=](Builder& k) {
    auto A = k.global("A", shape.input, row_major(rows, depth));
    auto B = k.global("B", shape.input, col_major(depth, cols));
    auto C = k.global("C", shape.result, row_major(rows, cols));
    auto mma = k.tiled_mma(k.best_mma(shape.input, shape.input, shape.result), tile);
    auto sA = k.shared("sA", shape.input, mma.shared_a(1));
    auto sB = k.shared("sB", shape.input, mma.shared_b(1));
    k.roles([&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = 1}, 1, [&](Scalar, Scalar s) { k.copy(A, sA[s]), k.copy(B, sB[s]); },
          [&](Scalar, Scalar s) { sum = mma(sum, sA[s], sB[s]); });
      k.store(C, test.tile(k, mma, sum));
    });
  });
}

void expect(const Shape& shape, const Case& test) {
  SCOPED_TRACE(fmt::format("{} {} to {}, {} x {} warps, {} producers", shape.target,
                           name(shape.input), name(shape.result), shape.warps_m, shape.warps_n,
                           shape.producers));
  const auto a = numbers(rows * depth, 1), b = numbers(depth * cols, 2);
  std::vector<int> turned;  // B is column-major
  for (std::size_t j = 0; j < cols; ++j)
    for (std::size_t x = 0; x < depth; ++x) turned.push_back(b[x * cols + j]);
  const Launch launch{{1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
                        for (const auto& each : {a, turned}) {
                          buffers.push_back(testing_gemm::buffer_of(
                              device, testing_numbers::encode(shape.input, each)));
                          arguments.add(buffers.back());
                        }
                        Buffer out =
                            *device.allocate(std::size_t{rows} * cols *
                                             static_cast<std::size_t>(bits(shape.result)) / 8);
                        EXPECT_TRUE(out.fill(0xFF));
                        arguments.add(out);
                        return out;
                      }};
  const auto got = testing_numbers::decode(
      shape.result,
      testing_gemm::run(described(shape, test), testing_gemm::target_of(shape.target), launch));
  const Matrix p = product(a, b);
  ASSERT_EQ(got.size(), p.size());
  int wrong = 0;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) {
      const double expected = test.element(p, i, j);
      const auto at = static_cast<std::size_t>(i * cols + j);
      if (got[at] != expected && wrong++ == 0)
        ADD_FAILURE() << fmt::format("({}, {}): expected {}, got {}", i, j, expected, got[at]);
    }
  EXPECT_EQ(wrong, 0);
}

double at(const Matrix& p, int i, int j) { return p[static_cast<std::size_t>(i * cols + j)]; }
double row_total(const Matrix& p, int i) {
  double out = 0;
  for (int j = 0; j < cols; ++j) out += at(p, i, j);
  return out;
}
double col_total(const Matrix& p, int j) {
  double out = 0;
  for (int i = 0; i < rows; ++i) out += at(p, i, j);
  return out;
}
double row_most(const Matrix& p, int i) {
  double out = at(p, i, 0);
  for (int j = 1; j < cols; ++j) out = std::max(out, at(p, i, j));
  return out;
}
double col_most(const Matrix& p, int j) {
  double out = at(p, 0, j);
  for (int i = 1; i < rows; ++i) out = std::max(out, at(p, i, j));
  return out;
}

Type sum_type(const Accumulator& sum) { return WarpTile(sum).fragment(0, 0).kind().type; }

// f16 represents whole numbers up to 2048: the sums of other types may be larger.
bool is_exact(const Shape& shape) { return shape.result != f16; }

TEST(TileArithmetic, RowsAcrossWarps) {
  for (const Shape& shape : shapes) {
    expect(shape, {[](Builder&, TiledMma&, Accumulator& sum) { return sum - row_maximum(sum); },
                   [](const Matrix& p, int i, int j) { return at(p, i, j) - row_most(p, i); }});
    if (is_exact(shape))
      expect(shape, {[](Builder&, TiledMma&, Accumulator& sum) { return sum + row_sum(sum); },
                     [](const Matrix& p, int i, int j) { return at(p, i, j) + row_total(p, i); }});
  }
}

TEST(TileArithmetic, ColumnsAcrossWarps) {
  for (const Shape& shape : shapes) {
    expect(shape, {[](Builder&, TiledMma&, Accumulator& sum) { return sum - col_maximum(sum); },
                   [](const Matrix& p, int i, int j) { return at(p, i, j) - col_most(p, j); }});
    if (is_exact(shape))
      expect(shape, {[](Builder&, TiledMma&, Accumulator& sum) { return sum + col_sum(sum); },
                     [](const Matrix& p, int i, int j) { return at(p, i, j) + col_total(p, j); }});
  }
}

// Several reductions use the same memory, in a loop too.
TEST(TileArithmetic, ReductionsFollowEachOther) {
  for (const Shape& shape : shapes) {
    if (!is_exact(shape)) continue;
    expect(shape, {[](Builder& k, TiledMma& mma, Accumulator& sum) {
                     auto most = mma.row_variable(k.convert(0, sum_type(sum)));
                     auto total = mma.col_variable(k.convert(0, sum_type(sum)));
                     k.loop(0, 3, 1, [&](Scalar) {
                       most += row_maximum(sum);
                       total += col_sum(sum);
                     });
                     return sum * 2 + most - total;
                   },
                   [](const Matrix& p, int i, int j) {
                     return 2 * at(p, i, j) + 3 * row_most(p, i) - 3 * col_total(p, j);
                   }});
  }
}

TEST(TileArithmetic, TilesAndScalars) {
  for (const Shape& shape : shapes) {
    expect(shape, {[](Builder&, TiledMma&, Accumulator& sum) {
                     sum += sum;
                     sum -= 1;
                     sum *= 2;
                     return 3 - sum + relu(sum);
                   },
                   [](const Matrix& p, int i, int j) {
                     const double x = 2 * (2 * at(p, i, j) - 1);
                     return 3 - x + std::max(x, 0.0);
                   }});
    expect(shape,
           {[](Builder&, TiledMma&, Accumulator& sum) {
              return map(sum, sum * 3, [](Scalar x, Scalar y) { return minimum(x, y); });
            },
            [](const Matrix& p, int i, int j) { return std::min(at(p, i, j), 3 * at(p, i, j)); }});
    if (info(shape.result).floating)
      expect(shape, {[](Builder&, TiledMma&, Accumulator& sum) {
                       return sum * 0.5 / 0.25 + (0.5 - sum) * 2.0;
                     },
                     [](const Matrix&, int, int) { return 1.0; }});
  }
}

TEST(TileArithmetic, PlacesOfRowsAndColumns) {
  for (const Shape& shape : shapes)
    expect(shape, {[&](Builder& k, TiledMma&, Accumulator& sum) {
                     const auto numbered = [&](Scalar x) { return k.convert(x, shape.result); };
                     return sum + map(row_places(sum), numbered) - map(col_places(sum), numbered);
                   },
                   [](const Matrix& p, int i, int j) { return at(p, i, j) + i - j; }});
}

TEST(TileArithmetic, ForEachElement) {
  for (const Shape& shape : shapes)
    expect(shape, {[&](Builder& k, TiledMma&, Accumulator& sum) {
                     auto s = k.variable(k.convert(0, shape.result));
                     for_each(sum, [&](Scalar x, ElementPlace place) {
                       s = select(place.row < 64, s + x, s);
                     });
                     auto none = map(sum, [](Scalar x) { return x - x; });
                     return none + (s - Scalar(s)) + sum;
                   },
                   [](const Matrix& p, int i, int j) { return at(p, i, j); }});
}

// Tiles of other element types at the same places.
TEST(TileArithmetic, MapsTilesOfTwoTypes) {
  expect({"sm_80", f16, f32, 2, 2, 0},
         {[](Builder& k, TiledMma&, Accumulator& sum) {
            const WarpTile halved = convert(sum * 0.5, f16);
            return map(sum, halved, [&](Scalar x, Scalar y) { return x - k.convert(y, f32) * 2; });
          },
          [](const Matrix&, int, int) { return 0.0; }});
}

TEST(TileArithmetic, MistakesNameTheLine) {
  constexpr Tile tile{.m = 64, .n = 64, .k = 16, .warps_m = 2, .warps_n = 2};
  constexpr Tile wide{.m = 64, .n = 128, .k = 16, .warps_m = 2, .warps_n = 2};
  int line = 0;
  const auto body = [&](Builder& k) {
    auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
    auto other = k.tiled_mma(m16n8k16(f16, f16, f32), wide);
    auto sum = mma.accumulator(), large = other.accumulator();
    line = __LINE__ + 1;
    sum = sum + large;
    sum = large;
    sum *= col_sum(large);
    sum = sum - RowValues(3, k.constant(f32, 0));
    sum += k.lane();
    auto most = mma.row_variable(k.constant(f32, 0));
    most = RowValues(3, k.constant(f32, 0));
    auto s = k.shared("s", f16, mma.shared_a())[0];
    std::ignore = row_sum(mma.load_a(s));
    for_each(sum, nullptr);
  };
  const auto compiled = compile(kernel("wrong", {.block = 128}, body), *Target::parse("sm_80"));
  ASSERT_FALSE(compiled);
  struct Told {
    int after;  // lines after the first mistake; -1: on whichever line
    const char* message;
  };
  for (const auto& [after, message] :
       {Told{0,
             "tiles of different shapes: 2 x 4 of C of m16n8k16 (f32) and 2 x 8 of C of m16n8k16"},
        {-1,
         "assignment of another tile: the accumulator has 2 x 4 fragments per warp, the tile 2 x "
         "8"},
        {2, "wrong number of column values"},
        {3, "wrong number of row values: the tile has 4 rows per lane, found 3"},
        {-1, "no such operation on operands of type f32 and u32"},
        {-1, "values of another tile: the variable has 4 per lane, found 3"},
        {8, "a reduction takes accumulators of f16, bf16, f32, f64 or s32, found A of m16n8k16"},
        {9, "for_each: expected a function, found none"}}) {
    bool found = false;
    for (const Diag& diag : compiled.diags())
      found |= diag.message.find(message) != std::string::npos &&
               (after < 0 || diag.place.line == line + after);
    EXPECT_TRUE(found) << message << " is not in\n" << compiled.diags().text();
  }
}

}  // namespace
}  // namespace tartan
