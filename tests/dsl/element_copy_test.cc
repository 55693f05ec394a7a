// SPDX-License-Identifier: Apache-2.0
// Copies of rows that no wide access can read, through registers: what they copy, on the emulator
// against a plain loop, and that a thread's loads do not wait for each other.
#include <sstream>

#include "tests/kernels/gemm_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

struct Copied {
  const char* target;
  Type type;
  Major major;        // of the matrix and of the tile in shared memory
  int height, width;  // of the matrix
  int rows, cols;     // of a tile
  int threads, producers = 0;

  Layout layout(int height, int width) const {
    return major == Major::row ? row_major(height, width) : col_major(height, width);
  }
};

// One block copies a tile of the matrix, which may exceed it, to shared memory and then out.
Kernel copying(const Copied& c, int row, int col) {
  return kernel("copying", {.block = c.threads, .producers = c.producers}, [=](Builder& k) {
    auto in = k.global("in", c.type, c.layout(c.height, c.width));
    auto out = k.global("out", c.type, c.layout(c.rows, c.cols));
    auto ring = k.shared("s", c.type, RingLayout{c.layout(c.rows, c.cols), 1});
    k.roles([&] {
      k.pipeline(
          {.stages = 1}, 1,
          [&](Scalar, Scalar s) {
            k.copy(in.tile({row, col}, {c.rows, c.cols}), ring[s]);
          },
          [&](Scalar, Scalar s) { k.copy(ring[s], out); });
    });
  });
}

std::size_t place(const Copied& c, int height, int width, int i, int j) {
  return static_cast<std::size_t>(c.major == Major::row ? i * width + j : j * height + i);
}

void expect_tile(const Copied& c, int row, int col) {
  SCOPED_TRACE(fmt::format("{} {} {} x {}, tile {} x {} at {}, {}", c.target, name(c.type),
                           c.height, c.width, c.rows, c.cols, row, col));
  std::vector<int> matrix;
  for (int i = 0; i < c.height * c.width; ++i) matrix.push_back(i % 61 + 1);
  const testing_gemm::Launch launch{
      {1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& kept) {
        kept.push_back(testing_gemm::buffer_of(device, testing_numbers::encode(c.type, matrix)));
        arguments.add(kept.back());
        Buffer out = testing_gemm::buffer_of(
            device, testing_numbers::encode(
                        c.type, std::vector<int>(static_cast<std::size_t>(c.rows * c.cols), 77)));
        arguments.add(out);
        return out;
      }};
  const auto got = testing_numbers::decode(
      c.type, testing_gemm::run(copying(c, row, col), testing_gemm::target_of(c.target), launch));
  ASSERT_EQ(got.size(), static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.cols));
  int wrong = 0;
  for (int i = 0; i < c.rows; ++i)
    for (int j = 0; j < c.cols; ++j) {
      const int y = row * c.rows + i, x = col * c.cols + j;
      const int expected =
          y < c.height && x < c.width ? matrix[place(c, c.height, c.width, y, x)] : 0;
      const double found = got[place(c, c.rows, c.cols, i, j)];
      if (found != expected && wrong++ == 0)
        ADD_FAILURE() << fmt::format("({}, {}): expected {}, got {}", i, j, expected, found);
    }
  EXPECT_EQ(wrong, 0);
}

// Unrolled, in a loop, with a rest, by few threads that compute nothing.
TEST(ElementCopy, CopiesWhatIsInside) {
  for (const char* target : {"sm_75", "sm_80", "sm_90a"})
    for (const Major major : {Major::row, Major::col})
      for (const auto& [type, size] :
           {std::pair{f16, 53}, {Type::u8, 53}, {Type::u8, 54}, {Type::s8, 51}})
        for (const auto& [rows, cols, threads] :
             {std::tuple{16, 32, 64}, {48, 32, 32}, {40, 48, 96}})
          for (const auto& [row, col] : {std::pair{0, 0}, {1, 1}})
            expect_tile({target, type, major, size, size, rows, cols, threads}, row, col);
  for (const int producers : {1, 4})
    for (const Type type : {f16, Type::u8})
      expect_tile({"sm_90a", type, Major::row, 53, 53, 48, 32, 128, producers}, 1, 1);
}

// The most loads from global memory in the text with no store to shared memory between.
int most_loads(const std::string& ptx) {
  std::istringstream lines(ptx);
  int out = 0, now = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("ld.global") != line.npos) out = std::max(out, ++now);
    if (line.find("st.shared") != line.npos || line.find(" bra") != line.npos) now = 0;
  }
  return out;
}

struct Odd {
  Tile tile;
  int producers, loads;  // in flight
};
constexpr Odd odd[] = {
    // Of half lines: see GemmLines for whole ones.
    {{.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2}, 0, 16},
    {{.m = 128, .n = 256, .k = 32, .warps_m = 2, .warps_n = 4}, 0, 16},
    {{.m = 16, .n = 64, .k = 32, .warps_m = 1, .warps_n = 4}, 0, 16},
    // Of producers that keep 24 registers; of those whose consumers need none of theirs.
    {{.m = 64, .n = 256, .k = 64, .warps_m = 4, .warps_n = 1}, 8, 8},
    {{.m = 128, .n = 128, .k = 64, .warps_m = 8, .warps_n = 1}, 8, 16},
};

TEST(ElementCopy, LoadsABatchBeforeItStores) {
  const Target target = testing_gemm::target_of("sm_90a");
  for (const Type type : {f16, Type::s8})
    for (const Odd& each : odd) {
      kernels::Gemm options{.m = 0, .n = 0, .k = 0, .a = type, .b = type};
      if (type == Type::s8) options.accumulator = options.c = s32;
      options.multiple = options.multiple_c = 1;
      options.tile = each.tile, options.producers = each.producers;
      options.tile.k *= 16 / bits(type);
      SCOPED_TRACE(fmt::format("{} {} x {}", name(type), each.tile.m, each.tile.n));
      const auto compiled = compile(kernels::gemm(options), target);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      EXPECT_EQ(most_loads(compiled->ptx), each.loads);
      if (each.producers && test::has_assembler())
        test::expect_good_registers(compiled->ptx, "sm_90a", testing::TempDir() + "element_copy");
    }
}

}  // namespace
}  // namespace tartan
