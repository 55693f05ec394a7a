// SPDX-License-Identifier: Apache-2.0
// Products of few rows whose warps read B straight from global memory.
#include "tests/kernels/gemm_finished.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::every_part;
using testing_gemm::Finished;
using testing_gemm::Product;
using testing_gemm::target_of;

struct Sizes {
  int m, n, k;
};
// Rows of 16, 8 and 4 bytes and of any number of elements; less than a word, than an access, than a
// step; more rows and columns than a tile has, and parts of a tile.
constexpr Sizes all_sizes[] = {{1, 67, 561}, {1, 16, 1},   {3, 5, 2},    {2, 33, 3},
                               {4, 30, 7},   {1, 40, 512}, {2, 24, 132}, {3, 21, 650},
                               {7, 20, 99},  {5, 9, 1029}, {1, 21, 103}};

Gemm direct(int rows, int columns, int warps_n, int warps_k, int accesses) {
  return {.a = bf16,
          .b = bf16,
          .tile = {.m = rows,
                   .n = columns * warps_n,
                   .k = 0,
                   .warps_m = 1,
                   .warps_n = warps_n,
                   .warps_k = warps_k},
          .stages = accesses,
          .direct = true};
}

Gemm of(Gemm options, Type a, Type b) {
  options.a = a, options.b = b;
  if (!info(a).floating) options.accumulator = options.c = s32;
  return options;
}

std::string trace(const Gemm& options, const Sizes& size, bool fixed) {
  const Tile& tile = options.tile;
  return fmt::format("{} and {} to {}, tile {} x {}, warps {} x {}, {} accesses: {} x {} x {}{}",
                     name(options.a), name(options.b), name(options.c), tile.m, tile.n,
                     tile.warps_n, tile.warps_k, options.stages, size.m, size.n, size.k,
                     fixed ? "" : ", at run time");
}

void expect_right(const Gemm& options, const Sizes& size, bool fixed, const char* target) {
  SCOPED_TRACE(trace(options, size, fixed));
  const Finished finished{Product(options, size.m, size.n, size.k, fixed)};
  const Bytes got = testing_gemm::run(kernels::gemm(finished.product.options), target_of(target),
                                      finished.launch());
  EXPECT_EQ(finished.product.wrong(got, [&](int i, int j) { return finished.expected(i, j); }), 0);
}

TEST(GemmDirect, EverySize) {
  for (const Gemm& options : {direct(1, 4, 2, 1, 4), direct(2, 2, 1, 3, 2), direct(4, 8, 1, 2, 1),
                              direct(3, 1, 4, 1, 8), direct(1, 3, 1, 8, 3)})
    for (const Sizes& size : all_sizes)
      for (const bool fixed : {true, false}) expect_right(options, size, fixed, "sm_80");
}

TEST(GemmDirect, EveryType) {
  const Gemm plain = direct(2, 4, 2, 2, 2);
  constexpr Type e4m3 = Type::e4m3, e5m2 = Type::e5m2, u8 = Type::u8;
  for (const Sizes& size : all_sizes)
    for (const bool fixed : {true, false}) {
      expect_right(of(plain, f16, f16), size, fixed, "sm_75");
      expect_right(of(plain, s8, s8), size, fixed, "sm_80");
      expect_right(of(plain, u8, s8), size, fixed, "sm_80");
      expect_right(of(plain, s8, u8), size, fixed, "sm_80");
      expect_right(of(plain, e4m3, e4m3), size, fixed, "sm_89");
      expect_right(of(plain, e5m2, e4m3), size, fixed, "sm_89");
    }
}

TEST(GemmDirect, WholeEpilogue) {
  for (const Type c : {f32, bf16, Type::e4m3})
    for (const int warps_k : {1, 2}) {
      Gemm options = direct(2, 4, 2, warps_k, 2);
      options.epilogue = every_part, options.c = c;
      expect_right(options, {3, 21, 203}, true, "sm_89");
    }
  Gemm options = of(direct(1, 8, 1, 4, 1), s8, s8);
  options.c = s8, options.epilogue = {.row_scales = true, .column_scales = true};
  expect_right(options, {1, 50, 301}, false, "sm_80");
}

// Each product of a batch by itself, and the others' memory beside it.
TEST(GemmDirect, Batches) {
  for (const int k : {128, 100, 37}) {
    Gemm options = direct(2, 4, 2, 2, 2);
    options.batched = true;
    const Product product(options, 2, 19, 3 * k, true);
    Gemm one = product.options;
    one.k = k, one.multiple = testing_gemm::largest_power(k), one.multiple_c = 1;
    testing_gemm::Launch launch = product.launch();
    launch.grid.z = 3;
    launch.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
      for (const int each : {2 * k, 19 * k, 2 * 19}) arguments.add(std::int64_t{each});
      product.add_inputs(device, arguments, buffers);
      Buffer out = *device.allocate(std::size_t{3} * 2 * 19 * 4);
      EXPECT_TRUE(out.fill(0xFF));
      return arguments.add(out), out;
    };
    const Bytes got = testing_gemm::run(kernels::gemm(one), target_of("sm_80"), launch);
    const auto values = testing_numbers::decode(f32, got);
    ASSERT_EQ(values.size(), 3u * 2 * 19);
    for (int z = 0; z < 3; ++z)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 19; ++j) {
          int sum = 0;
          for (int x = 0; x < k; ++x)
            sum += product.a[static_cast<std::size_t>((z * 2 + i) * k + x)] *
                   product.b[static_cast<std::size_t>((z * 19 + j) * k + x)];
          EXPECT_EQ(values[static_cast<std::size_t>((z * 2 + i) * 19 + j)], sum) << z << i << j;
        }
  }
}

void expect_refused(const Gemm& options, const char* part, const char* target = "sm_90a") {
  const auto compiled = compile(kernels::gemm(options), target_of(target));
  ASSERT_FALSE(compiled) << part;
  EXPECT_NE(compiled.diags().text().find(part), std::string::npos) << compiled.diags().text();
}

TEST(GemmDirect, RefusesWhatItDoesNotDo) {
  const auto with = [](auto change) {
    Gemm options = direct(2, 4, 2, 2, 2);
    return change(options), options;
  };
  expect_refused(with([](Gemm& g) { g.a = g.b = f32; }), "A of f32 and B of f32: expected f16");
  expect_refused(with([](Gemm& g) { g.b = f16; }), "A of bf16 and B of f16");
  expect_refused(with([](Gemm& g) { g.accumulator = f16; }), "accumulator = f16: expected f32");
  expect_refused(with([](Gemm& g) { g.a = g.b = Type::e4m3; }), "requires sm_89", "sm_80");
  expect_refused(with([](Gemm& g) { g.b_major = Major::row; }), "B column-major");
  expect_refused(with([](Gemm& g) { g.tile.m = 9; }),
                 "tile.m = 9: expected 1 to 8; the nearest is 8");
  expect_refused(with([](Gemm& g) { g.tile.m = 8, g.tile.n = 16; }),
                 "warps_n = 64: expected 1 to 32");
  expect_refused(with([](Gemm& g) { g.tile.n = 9; }), "multiple of warps_n = 2; the nearest is 10");
  expect_refused(with([](Gemm& g) { g.tile.n = 32; }), "tile.n / warps_n = 16: expected 1 to 8");
  expect_refused(with([](Gemm& g) { g.tile.warps_m = 2; }), "warps_m = 2: expected 1");
  expect_refused(with([](Gemm& g) { g.tile.warps_k = 32; }), "found 2048");
  expect_refused(with([](Gemm& g) { g.tile.k = 64; }), "tile.k = 64: expected 512");
  expect_refused(with([](Gemm& g) { g.stages = 17; }), "stages = 17: expected 1 to 16");
  expect_refused(with([](Gemm& g) { g.splits = 2; }), "direct excludes splits");
  expect_refused(with([](Gemm& g) { g.cluster_splits = 2; }), "direct excludes splits");
  expect_refused(with([](Gemm& g) { g.producers = 1; }), "direct excludes producers");
  expect_refused(with([](Gemm& g) { g.persistent = true; }), "direct excludes producers");
  expect_refused(with([](Gemm& g) { g.swap = true; }), "swap = false");
}

}  // namespace
}  // namespace tartan
