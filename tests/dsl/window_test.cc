// SPDX-License-Identifier: Apache-2.0
// Windows, gathered and scattered rows, masked copies and wide accesses on the emulator, against
// plain loops over the elements.
#include "tests/dsl/refusals.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using testing_gemm::Bytes;
using Matrix = std::vector<int>;  // row-major

constexpr int height = 40, width = 48;  // of the matrix
constexpr int rows = 16, cols = 32;     // of a tile
constexpr int untouched = 77;

Matrix numbered() {
  Matrix out;
  for (int i = 0; i < height * width; ++i) out.push_back(i % 61 + 1);
  return out;
}

struct Route {
  const char* target;
  int producers;
  bool pipelined;
};
constexpr Route routes[] = {
    {"sm_75", 0, false}, {"sm_80", 0, false}, {"sm_80", 0, true},
    {"sm_80", 1, true},  {"sm_90a", 4, true}, {"sm_120a", 1, true},
};

// Runs a kernel of one block on the matrix; `more` adds arguments. The output has `count` elements,
// all `untouched` before.
std::vector<double> run(const Kernel& kernel, const char* target, Type type, int count,
                        const std::vector<Bytes>& buffers, const std::vector<int>& numbers) {
  const testing_gemm::Launch launch{
      {1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& kept) {
        for (const Bytes& each : buffers) {
          kept.push_back(testing_gemm::buffer_of(device, each));
          arguments.add(kept.back());
        }
        Buffer out = testing_gemm::buffer_of(
            device,
            testing_numbers::encode(type, Matrix(static_cast<std::size_t>(count), untouched)));
        arguments.add(out);
        for (const int each : numbers) arguments.add(std::int32_t{each});
        return out;
      }};
  return testing_numbers::decode(
      type, testing_gemm::run(kernel, testing_gemm::target_of(target), launch));
}

// Fills a tile in shared memory along a route, and copies it out.
Kernel filled(const Route& route, Type type,
              const std::function<void(Builder&, const Global&, const Shared&)>& fill,
              const std::function<std::vector<Scalar>(Builder&)>& params = nullptr) {
  return kernel("filled", {.block = 64, .producers = route.producers}, [=](Builder& k) {
    auto in = k.global("in", type, row_major(height, width));
    auto out = k.global("out", type, row_major(rows, cols));
    if (params) params(k);
    auto ring = k.shared("s", type, RingLayout{row_major(rows, cols), 1});
    k.roles([&] {
      if (!route.pipelined) {
        fill(k, in, ring[0]);
        k.barrier();
        k.copy(ring[0], out);
        return;
      }
      k.pipeline(
          {.stages = 1}, 1, [&](Scalar, Scalar s) { fill(k, in, ring[s]); },
          [&](Scalar, Scalar s) { k.copy(ring[s], out); });
    });
  });
}

void expect_tile(const std::vector<double>& got, const std::function<int(int, int)>& expected) {
  ASSERT_EQ(got.size(), std::size_t{rows} * cols);
  int wrong = 0;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j)
      if (const double x = got[static_cast<std::size_t>(i * cols + j)];
          x != expected(i, j) && wrong++ == 0)
        ADD_FAILURE() << fmt::format("({}, {}): expected {}, got {}", i, j, expected(i, j), x);
  EXPECT_EQ(wrong, 0);
}

int at(const Matrix& m, int row, int col) {
  if (row < 0 || col < 0 || row >= height || col >= width) return 0;
  return m[static_cast<std::size_t>(row * width + col)];
}

TEST(Window, BeginsAndEndsAnywhere) {
  const Matrix m = numbered();
  for (const Route& route : routes)
    for (const Type type : {f16, f32, u8})
      for (const auto& [row, col, by] :
           {std::tuple{3, 8, 8}, {-5, 0, 8}, {30, 24, 8}, {-2, -8, 8}, {7, -3, 1}, {33, 41, 1}}) {
        SCOPED_TRACE(fmt::format("{} {} {} {}: {} {}", route.target, route.producers,
                                 route.pipelined, name(type), row, col));
        // Of constant size, at a place that the launch gives.
        Scalar r, c;
        const auto got =
            run(filled(
                    route, type,
                    [&](Builder& k, const Global& in, const Shared& s) {
                      k.copy(in.window({r, c}, {rows, cols}), s);
                    },
                    [&, by = by](Builder& k) {
                      r = k.param("r", s32), c = k.param("c", s32, by);
                      return std::vector<Scalar>{};
                    }),
                route.target, type, rows * cols, {testing_numbers::encode(type, m)}, {row, col});
        expect_tile(got,
                    [&, row = row, col = col](int i, int j) { return at(m, row + i, col + j); });
      }
}

TEST(Window, HasItsOwnLimits) {
  const Matrix m = numbered();
  for (const Route& route : routes)
    for (const auto& [row, col, h, w] : {std::tuple{3, 8, 20, 40},
                                         {-5, 8, 18, 35},
                                         {30, -8, 7, 64},
                                         {5, 16, 0, 16},
                                         {0, 0, 40, 48}}) {
      SCOPED_TRACE(
          fmt::format("{} {}: {} {} {} {}", route.target, route.pipelined, row, col, h, w));
      Scalar r, c, rs, cs;
      // The second tile of the window's first row of tiles.
      const auto got =
          run(filled(
                  route, f16,
                  [&](Builder& k, const Global& in, const Shared& s) {
                    k.copy(in.window({r, c}, {rs, cs}).tile({0, 1}, {rows, cols}), s);
                  },
                  [&](Builder& k) {
                    r = k.param("r", s32), c = k.param("c", s32, 8);
                    rs = k.param("rs", s32), cs = k.param("cs", s32);
                    return std::vector<Scalar>{};
                  }),
              route.target, f16, rows * cols, {testing_numbers::encode(f16, m)}, {row, col, h, w});
      expect_tile(got, [&, row = row, col = col, h = h, w = w](int i, int j) {
        return i < h && cols + j < w ? at(m, row + i, col + cols + j) : 0;
      });
    }
}

TEST(Window, ConstantOrigins) {
  const Matrix m = numbered();
  for (const Route& route : routes)
    for (const auto& [row, col] : {std::pair{-1, -1}, {0, 0}, {30, 40}, {-16, 8}})
      expect_tile(
          run(filled(route, f32,
                     [=, row = row, col = col](Builder& k, const Global& in, const Shared& s) {
                       k.copy(in.window({row, col}, {rows, cols}), s);
                     }),
              route.target, f32, rows * cols, {testing_numbers::encode(f32, m)}, {}),
          [&, row = row, col = col](int i, int j) { return at(m, row + i, col + j); });
}

TEST(Window, OfAWindow) {
  const Matrix m = numbered();
  for (const Route& route : routes)
    expect_tile(run(filled(route, f32,
                           [](Builder& k, const Global& in, const Shared& s) {
                             k.copy(in.window({-2, 4}, {12, 40}).window({1, 8}, {rows, cols}), s);
                           }),
                    route.target, f32, rows * cols, {testing_numbers::encode(f32, m)}, {}),
                [&](int i, int j) { return i + 1 < 12 ? at(m, i - 1, j + 12) : 0; });
}

TEST(Window, TakesTmaOfConstantSize) {
  const auto text = [](bool constant) {
    const auto compiled = compile(
        filled({"sm_90a", 4, true}, f16,
               [=](Builder& k, const Global& in, const Shared& s) {
                 const Scalar n = k.convert(k.block_x(), s32);
                 k.copy(
                     constant
                         ? in.window({n - 1, n * 8}, {rows, cols})
                         : in.window({n - 1, n * 8}, {n + rows, cols}).tile({0, 0}, {rows, cols}),
                     s);
               }),
        *Target::parse("sm_90a"));
    EXPECT_TRUE(compiled) << compiled.diags().text();
    return compiled ? compiled->ptx : "";
  };
  EXPECT_NE(text(true).find("cp.async.bulk.tensor"), std::string::npos);
  EXPECT_EQ(text(false).find("cp.async.bulk.tensor"), std::string::npos);
}

// Stores leave out what is outside the matrix or the window.
TEST(Window, Stores) {
  for (const Route& route : routes)
    for (const Type type : {f16, f32})
      for (const auto& [row, col, h, w] :
           {std::tuple{3, 8, 10, 20}, {-5, -8, 40, 64}, {30, 24, 40, 40}, {-3, 5, 16, 17}}) {
        const auto kernel_of = kernel(
            "stores", {.block = 64, .producers = route.producers},
            [=, row = row, col = col](Builder& k) {
              auto in = k.global("in", type, row_major(rows, cols));
              auto out = k.global("out", type, row_major(height, width));
              const Scalar hs = k.param("h", s32), ws = k.param("w", s32);
              auto ring = k.shared("s", type, RingLayout{row_major(rows, cols), 1});
              k.roles([&] {
                k.pipeline(
                    {.stages = 1}, 1, [&](Scalar, Scalar s) { k.copy(in, ring[s]); },
                    [&](Scalar, Scalar s) {
                      k.copy(ring[s], out.window({row, col}, {hs, ws}).tile({0, 0}, {rows, cols}));
                    });
              });
            });
        SCOPED_TRACE(fmt::format("{} {}: {} {} {} {}", route.target, name(type), row, col, h, w));
        Matrix m(std::size_t{rows} * cols);
        for (std::size_t i = 0; i < m.size(); ++i) m[i] = static_cast<int>(i % 61) + 1;
        const auto got = run(kernel_of, route.target, type, height * width,
                             {testing_numbers::encode(type, m)}, {h, w});
        ASSERT_EQ(got.size(), std::size_t{height} * width);
        int wrong = 0;
        for (int i = 0; i < height; ++i)
          for (int j = 0; j < width; ++j) {
            const int y = i - row, x = j - col;
            const bool inside = y >= 0 && x >= 0 && y < rows && x < cols && y < h && x < w;
            const int expected = inside ? m[static_cast<std::size_t>(y * cols + x)] : untouched;
            if (got[static_cast<std::size_t>(i * width + j)] != expected && wrong++ == 0)
              ADD_FAILURE() << fmt::format("({}, {}): expected {}, got {}", i, j, expected,
                                           got[static_cast<std::size_t>(i * width + j)]);
          }
        EXPECT_EQ(wrong, 0);
      }
}

// Row numbers: repeated, out of order, before and beyond the matrix.
std::vector<int> row_numbers() {
  std::vector<int> out;
  for (int i = 0; i < rows; ++i)
    out.push_back(i % 5 == 3 ? -1 - i : i % 7 == 2 ? height + i : i * 13 % height);
  return out;
}

TEST(CopyRows, Gathers) {
  const Matrix m = numbered();
  const auto index = row_numbers();
  for (const Route& route : routes)
    for (const Type type : {f16, f32, u8})
      for (const int col : {0, 8, 16, 24}) {
        SCOPED_TRACE(
            fmt::format("{} {} {} from {}", route.target, route.pipelined, name(type), col));
        const auto described =
            kernel("gather", {.block = 64, .producers = route.producers}, [=](Builder& k) {
              auto in = k.global("in", type, row_major(height, width));
              auto list = k.global("list", s32, row_major(1, rows));
              auto out = k.global("out", type, row_major(rows, cols));
              auto ring = k.shared("s", type, RingLayout{row_major(rows, cols), 1});
              k.roles([&] {
                k.pipeline(
                    {.stages = 1}, 1,
                    [&](Scalar, Scalar s) {
                      k.copy_rows(in.window({0, col}, {height, cols}), ring[s],
                                  [&](Scalar i) { return k.read(list, 0, i); });
                    },
                    [&](Scalar, Scalar s) { k.copy(ring[s], out); });
              });
            });
        expect_tile(
            run(described, route.target, type, rows * cols,
                {testing_numbers::encode(type, m), testing_numbers::encode(s32, index)}, {}),
            [&](int i, int j) { return at(m, index[static_cast<std::size_t>(i)], col + j); });
      }
}

TEST(CopyRows, Scatters) {
  std::vector<int> index;
  for (int i = 0; i < rows; ++i) index.push_back(i % 5 == 3 ? -1 : i * 11 % (height + 6));
  Matrix m(std::size_t{rows} * cols);
  for (std::size_t i = 0; i < m.size(); ++i) m[i] = static_cast<int>(i % 61) + 1;
  for (const Route& route : routes) {
    SCOPED_TRACE(fmt::format("{} {}", route.target, route.pipelined));
    const auto described = kernel("scatter", {.block = 64}, [=](Builder& k) {
      auto in = k.global("in", f16, row_major(rows, cols));
      auto list = k.global("list", s32, row_major(1, rows));
      auto out = k.global("out", f16, row_major(height, cols));
      auto s = k.shared("s", f16, row_major(rows, cols));
      k.copy(in, s);
      k.barrier();
      k.copy_rows(s, out, [&](Scalar i) { return k.read(list, 0, i); });
    });
    const auto got =
        run(described, route.target, f16, height * cols,
            {testing_numbers::encode(f16, m), testing_numbers::encode(s32, index)}, {});
    Matrix expected(std::size_t{height} * cols, untouched);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j)
        if (const int row = index[static_cast<std::size_t>(i)]; row >= 0 && row < height)
          expected[static_cast<std::size_t>(row * cols + j)] =
              m[static_cast<std::size_t>(i * cols + j)];
    EXPECT_EQ(got, std::vector<double>(expected.begin(), expected.end()));
  }
}

TEST(CopyIf, TakesWhereTheConditionHolds) {
  const Matrix m = numbered();
  for (const Route& route : routes)
    for (const int together : {1, 4, 8})
      for (const Type type : {f16, f32}) {
        SCOPED_TRACE(fmt::format("{} {} {}", route.target, together, name(type)));
        const auto holds = [=](int i, int j) { return i >= j / together * together; };
        expect_tile(run(filled(route, type,
                               [=](Builder& k, const Global& in, const Shared& s) {
                                 k.copy_if(
                                     in.tile({1, 1}, {rows, cols}), s,
                                     [&](Scalar i, Scalar j) { return i >= j; }, together);
                               }),
                        route.target, type, rows * cols, {testing_numbers::encode(type, m)}, {}),
                    [&](int i, int j) { return holds(i, j) ? at(m, rows + i, cols + j) : 0; });
      }
}

TEST(Vectors, AreReadAndWritten) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const Type type : {u8, s8, e4m3, f16, bf16, u16, f32, s32, f64, u64})
      for (const int count : {1, 2, 3, 4, 7, 8, 16, 24})
        for (const bool swizzled : {false, true}) {
          SCOPED_TRACE(fmt::format("{} {} {}", target, name(type), count));
          constexpr int line = 96;
          const auto described = kernel("vectors", {.block = 32}, [=](Builder& k) {
            auto in = k.global("in", type, row_major(32, line));
            auto out = k.global("out", type, row_major(32, line));
            auto layout = row_major(32, 128);
            if (swizzled) layout = layout.swizzled({3, 4, 3});
            auto s = k.shared("s", type, layout);
            const Scalar row = k.thread(), col = k.thread() % 3 * 24;
            k.write_vector(s, row, col, k.read_vector(in, row, col, count));
            k.barrier();
            k.write_vector(out, row, col, k.read_vector(s, row, col, count));
          });
          Matrix m;
          for (int i = 0; i < 32 * line; ++i) m.push_back(i % 7);
          const auto got =
              run(described, target, type, 32 * line, {testing_numbers::encode(type, m)}, {});
          ASSERT_EQ(got.size(), m.size());
          const auto same =
              testing_numbers::decode(type, testing_numbers::encode(type, {untouched}));
          int wrong = 0;
          for (int i = 0; i < 32; ++i)
            for (int j = 0; j < line; ++j) {
              const int first = i % 3 * 24;
              const auto n = static_cast<std::size_t>(i * line + j);
              const double expected = j >= first && j < first + count ? m[n] : same[0];
              wrong += got[n] != expected;
            }
          EXPECT_EQ(wrong, 0);
        }
}

TEST(Vectors, AreWideWhereTheAddressIsAligned) {
  const auto compiled =
      compile(kernel("wide", {.block = 32},
                     [](Builder& k) {
                       auto in = k.global("in", f16, row_major(32, 256));
                       auto out = k.global("out", f16, row_major(32, 256));
                       k.write_vector(out, 0, k.lane() * 8, k.read_vector(in, 0, k.lane() * 8, 8));
                     }),
              *Target::parse("sm_80"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(compiled->ptx.find("ld.global.v4.b32"), std::string::npos);
  EXPECT_NE(compiled->ptx.find("st.global.v4.b32"), std::string::npos);
}

TEST(Window, MistakesNameTheLine) {
  test::expect_told(
      [](Builder& k) {
        auto g = k.global("g", f16, row_major(64, 64));
        auto nested_g = k.global("h", f16, blocked(row_major(8, 8), row_major(8, 8)));
        auto s = k.shared("s", f16, row_major(16, 32));
        g.window({0, 0}, {0, 8});
        g.window({k.read(g, 0, 0), 0}, {8, 8});
        nested_g.window({0, 0}, {8, 8});
        k.copy(g.window({0, 0}, {k.lane(), 32}), s);
        k.copy(g.window({-1, 0}, {24, 32}).tile({0, 0}, {16, 32}), s);
        k.copy_rows(g, s, [](Scalar i) { return i; });
        k.copy_rows(g.window({0, 0}, {64, 32}), s, nullptr);
        k.copy_rows(g.window({0, 0}, {64, 32}), s, [](Scalar i) { return i < 3; });
        k.copy_if(g.tile({0, 0}, {16, 32}), s, [](Scalar i, Scalar) { return i; });
        k.copy_if(
            g.tile({0, 0}, {16, 32}), s, [](Scalar, Scalar) { return 1; }, 0);
        multiple_of(Scalar(12), 8);
        k.read_vector(g, 0, 60, 8);
        k.read_vector(g, 0, 0, 0);
        k.write_vector(g, 0, 0, std::vector<Scalar>{k.lane()});
      },
      {"window of g: expected at least one row, found 0",
       "the window's first row: expected an integer, found a value of type f16",
       "window of h: expected rows and columns that are not nested",
       "copy needs a tile of constant shape", "tiles of 16 rows do not divide the 24 of g",
       "copy_rows: expected a matrix of 32 columns", "copy_rows: expected a function, found none",
       "the row of a copy: expected an integer", "expected a condition of type pred",
       "copy_if: expected a condition for 1 or more elements, found 0",
       "multiple_of: the constant 12 is not a multiple of 8",
       "columns 60 to 67 are out of bounds of g",
       "a vector of g: expected 1 to 128 elements, found 0",
       "element type mismatch: g has elements of f16, the value is u32"});
}

}  // namespace
}  // namespace tartan
