// SPDX-License-Identifier: Apache-2.0
// Rows that begin at any element, in shared memory and as words, against plain loops over the
// elements.
#include "tartan/dsl/line_ring.h"

#include "tests/dsl/refusals.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using Matrix = std::vector<int>;  // row-major

constexpr int tile_rows = 24, untouched = 77;

Matrix numbered(int rows, int cols) {
  Matrix out;
  for (int i = 0; i < rows * cols; ++i) out.push_back(i % 59 + 1);
  return out;
}

std::vector<double> run(const Kernel& kernel, const char* target, Type in_type,
                        const Matrix& matrix, Type out_type, int count,
                        const std::vector<int>& numbers) {
  const testing_gemm::Launch launch{
      {1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& kept) {
        for (const int each : numbers) arguments.add(std::int32_t{each});
        kept.push_back(testing_gemm::buffer_of(device, testing_numbers::encode(in_type, matrix)));
        arguments.add(kept.back());
        Buffer out = testing_gemm::buffer_of(
            device,
            testing_numbers::encode(out_type, Matrix(static_cast<std::size_t>(count), untouched)));
        arguments.add(out);
        return out;
      }};
  return testing_numbers::decode(
      out_type, testing_gemm::run(kernel, testing_gemm::target_of(target), launch));
}

// Copies all k-tiles of the second tile of rows, one below the other, to `out`.
Kernel all_steps(Type type, int rows, int cols, int steps, int stages, bool run_time) {
  return kernel("lines", {.block = 64}, [=](Builder& k) {
    auto in_at = [&](const Scalar& m, const Scalar& n) {
      return k.global("in", type, row_major(m, n));
    };
    const int width = 1024 / bits(type);
    const Scalar m = run_time ? k.param("m", s32) : Scalar(rows),
                 n = run_time ? k.param("n", s32) : Scalar(cols);
    const Global in = in_at(m, n);
    auto out = k.global("out", type, row_major(steps * tile_rows, width));
    LineRing lines(k, "lines", type, tile_rows, width, stages);
    const Shared tile = k.shared("tile", type, row_major(tile_rows, width));
    lines.start(in.tile({1, 0}, {tile_rows, width}));
    lines.begin(0);
    k.pipeline(
        {.stages = stages}, steps, [&](Scalar t, Scalar) { lines.copy(t); },
        [&](Scalar t, Scalar) {
          lines.align(t, tile);
          k.barrier();
          k.copy(tile, out.tile({t, 0}, {tile_rows, width}));
          k.barrier();
        });
  });
}

TEST(LineRing, TilesHaveTheRowsWhereverTheyBegin) {
  for (const Type type : {f16, Type::u8})
    for (const int cols : {75, 128, 193, 321})
      for (const int stages : {1, 2, 4})
        for (const bool run_time : {false, true}) {
          if (cols % (1024 / bits(type)) == 0 && !run_time) continue;  // refused, see below
          SCOPED_TRACE(testing::Message() << name(type) << ", " << cols << " columns, " << stages
                                          << " stages" << (run_time ? ", as a parameter" : ""));
          const int rows = 2 * tile_rows - 5, width = 1024 / bits(type),
                    steps = (cols + width - 1) / width;
          const Matrix in = numbered(rows, cols);
          const auto got = run(all_steps(type, rows, cols, steps, stages, run_time), "sm_80", type,
                               in, type, steps * tile_rows * width,
                               run_time ? std::vector<int>{rows, cols} : std::vector<int>{});
          ASSERT_EQ(got.size(), static_cast<std::size_t>(steps * tile_rows * width));
          for (int t = 0; t < steps; ++t)
            for (int i = 0; i < tile_rows; ++i)
              for (int j = 0; j < width; ++j) {
                const int row = tile_rows + i, col = t * width + j;
                const int expected = row < rows && col < cols ? in[row * cols + col] : 0;
                ASSERT_EQ(got[static_cast<std::size_t>((t * tile_rows + i) * width + j)], expected)
                    << "row " << row << ", column " << col;
              }
        }
}

TEST(LineRing, RefusesRowsThatBeginOnLines) {
  const auto compiled = compile(all_steps(f16, 40, 128, 2, 2, false), *Target::parse("sm_80"));
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.diags().text().find("so they begin on lines; copy() copies them as they are"),
            std::string::npos)
      << compiled.diags().text();
}

TEST(LineRing, RefusesWhatItCannotCopy) {
  const auto wrong = [](const char* target, const std::function<void(Builder&)>& body) {
    return compile(kernel("wrong", {.block = 64}, body), *Target::parse(target));
  };
  test::expect_told(wrong("sm_75", [](Builder& k) { LineRing(k, "s", f16, 16, 64, 2); }),
                    {"cp.async requires sm_80"});
  test::expect_told([](Builder& k) { LineRing(k, "s", f32, 16, 32, 2); },
                    {"expected elements of 8 or 16 bits, found f32"});
  test::expect_told([](Builder& k) { LineRing(k, "s", f16, 16, 48, 2); },
                    {"whole lines of 64 elements of f16, found 16 x 48"});
  test::expect_told([](Builder& k) { LineRing(k, "s", f16, 16, 64, 0); },
                    {"a pipeline of 1 or more stages, found 0"});
  test::expect_told(
      [](Builder& k) {
        LineRing lines(k, "s", f16, 16, 64, 2);
        lines.copy(0);
      },
      {"copy() of lines that have not begun"});
  test::expect_told(
      [](Builder& k) {
        auto in = k.global("in", f16, row_major(64, 75));
        LineRing lines(k, "s", f16, 16, 64, 2);
        lines.start(in.tile({0, 0}, {8, 64}));
      },
      {"start(in): expected a row-major tile of 16 x 64 elements of f16"});
  test::expect_told(
      [](Builder& k) {
        auto in = k.global("in", f16, row_major(64, 75));
        LineRing lines(k, "s", f16, 16, 64, 2);
        auto narrow = k.shared("narrow", f16, row_major(16, 64, 68));
        lines.start(in.tile({0, 0}, {16, 64}));
        lines.begin(0);
        k.barrier();
        lines.align(0, narrow);
      },
      {"align() to narrow: expected a row-major tile of 16 x 64 elements of f16 in whole pieces"});
  test::expect_told(compile(kernel("wrong", {.block = 64, .producers = 1},
                                   [](Builder& k) {
                                     auto in = k.global("in", f16, row_major(64, 75));
                                     LineRing lines(k, "s", f16, 16, 64, 2);
                                     k.roles([&] { lines.start(in.tile({0, 0}, {16, 64})); });
                                   }),
                            *Target::parse("sm_80")),
                    {"start() inside roles()"});
}

// Each thread reads a word of a row of 16-bit or 8-bit elements that begins anywhere, and how many
// elements of the first word are in front of the row.
TEST(Row, IsReadInAlignedWords) {
  for (const Type type : {Type::u16, Type::u8})
    for (const int cols : {37, 40}) {
      SCOPED_TRACE(testing::Message() << name(type) << ", " << cols << " columns");
      constexpr int rows = 5;
      const int each = 32 / bits(type);
      const auto words = kernel("words", {.block = 32}, [=](Builder& k) {
        const Scalar n = k.param("n", s32), row = k.param("row", s32);
        const Global line = k.global("in", type, row_major(rows, n)).row(row);
        auto out = k.global("out", u32, row_major(1, 32));
        const Scalar before = k.convert(line.offset(), u32) % each;
        const Scalar word =
            k.read_if(line.as(u32), 0, k.thread(), k.thread() < (n + before) / each);
        k.write(out, 0, k.thread(), select(k.thread() == 31, before, word));
      });
      const Matrix in = numbered(rows, cols);
      for (int row = 0; row < rows; ++row) {
        const int begin = row * cols, before = begin % each, whole = (cols + before) / each;
        testing_gemm::Launch launch{
            {1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& kept) {
              kept.push_back(testing_gemm::buffer_of(device, testing_numbers::encode(type, in)));
              Buffer out = *device.allocate(32 * 4);
              EXPECT_TRUE(out.fill(0));
              arguments.add(std::int32_t{cols}).add(std::int32_t{row}).add(kept.back()).add(out);
              return out;
            }};
        const auto got = testing_gemm::run(words, testing_gemm::target_of("sm_80"), launch);
        const auto bytes = testing_numbers::encode(type, in);
        ASSERT_EQ(got.size(), 128U);
        for (int i = 0; i < 31; ++i) {
          std::uint32_t word = 0, expected = 0;
          std::memcpy(&word, got.data() + 4 * i, 4);
          const int first = (begin - before) * bits(type) / 8 + 4 * i;
          if (i < whole) std::memcpy(&expected, bytes.data() + first, 4);
          EXPECT_EQ(word, expected) << "row " << row << ", word " << i;
        }
        std::uint32_t found = 0;
        std::memcpy(&found, got.data() + 4 * 31, 4);
        EXPECT_EQ(found, static_cast<std::uint32_t>(before));
      }
    }
}

TEST(Row, RefusesColumnsAndSmallerElements) {
  test::expect_told(
      [](Builder& k) {
        k.global("A", f16, col_major(8, 8)).row(0);
        k.global("B", f32, row_major(8, 8)).row(0).as(f16);
        k.global("C", f16, row_major(8, 8)).as(u32);
      },
      {"row of A: expected a row-major matrix",
       "B of f32 as f16: expected elements of 8 to 64 bits",
       "C as u32: expected one row of contiguous elements"});
}

}  // namespace
}  // namespace tartan
