// SPDX-License-Identifier: Apache-2.0
// GEMM of rows that begin at any element: read line by line, and aligned in shared memory. The
// emulator checks races between copies, alignment and products, also in other orders of warps.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Product;
using testing_gemm::runs_hopper;
using testing_gemm::target_of;

Gemm of_lines(Type type, int stages, int lines = 1) {
  Gemm out{.a = type, .b = type};
  if (type == Type::s8) out.accumulator = out.c = s32;
  out.tile = {.m = 32, .n = 16, .k = lines * 1024 / bits(type), .warps_m = 2, .warps_n = 1};
  out.stages = stages;
  return out;
}

// Not in words, nor element by element but at the end of the last row: a load of A and one of B at
// the beginning of a tile, in front of its loop, and in it. Rows shorter than a piece have more.
void expect_lines(const std::string& ptx, int k) {
  EXPECT_NE(ptx.find("cp.async.cg.shared.global"), std::string::npos);
  EXPECT_EQ(ptx.find("cp.async.ca"), std::string::npos);
  if (k < 16) return;
  int loads = 0;
  for (std::size_t at = 0; (at = ptx.find("ld.global", at)) != std::string::npos; ++at) ++loads;
  EXPECT_LE(loads, 6);
}

void expect_product(const Gemm& options, int m, int n, int k, unsigned blocks = 0) {
  SCOPED_TRACE(fmt::format("{}, {} stages of {}: {} x {} x {}", name(options.a), options.stages,
                           options.tile.k, m, n, k));
  const auto compiled = testing_gemm::compare_on_hopper(Product(options, m, n, k, true), blocks);
  ASSERT_TRUE(compiled);
  expect_lines(compiled->ptx, k);
}

// A k that begins rows at every element of a line, less than a k-tile, as many as stages, and more.
TEST(GemmLines, RowsBeginAnywhere) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int stages : {2, 3, 4})
    for (const int k : {1, 7, 63, 65, 129, 193, 331})
      expect_product(of_lines(f16, stages), 35, 19, k);
  for (const int k : {1, 2, 127, 129, 258, 391}) expect_product(of_lines(Type::s8, 3), 35, 19, k);
  for (const int k : {127, 129, 511}) expect_product(of_lines(bf16, 2, 2), 35, 19, k);
}

// Rows and columns that fill their tiles, so that most lines are known to be inside.
TEST(GemmLines, WholeTiles) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int k : {63, 127, 449}) expect_product(of_lines(f16, 3), 64, 32, k);
  expect_product(of_lines(Type::s8, 2), 64, 32, 643);
}

// One text for all sizes, of which some have rows that begin on lines.
TEST(GemmLines, SizesAtRunTime) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int k : {1, 64, 72, 195, 256}) {
    Product product(of_lines(f16, 3), 35, 19, k);
    product.options.multiple = product.options.multiple_c = 1;
    EXPECT_TRUE(testing_gemm::compare_on_hopper(product)) << k;
  }
}

// The ring goes on where the tile before ended.
TEST(GemmLines, TileAfterTile) {
  if (!runs_hopper()) GTEST_SKIP();
  Gemm options = of_lines(f16, 3);
  options.persistent = true;
  for (const int k : {63, 331}) expect_product(options, 99, 40, k, 2);
}

TEST(GemmLines, InParts) {
  if (!runs_hopper()) GTEST_SKIP();
  Gemm options = of_lines(f16, 2);
  options.cluster_splits = 2;
  expect_product(options, 35, 19, 651);
}

TEST(GemmLines, Swapped) {
  if (!runs_hopper()) GTEST_SKIP();
  Gemm options = of_lines(f16, 3);
  options.swap = true;
  expect_product(options, 19, 35, 331);
}

// Matrices of a batch begin anywhere, too.
TEST(GemmLines, Batched) {
  constexpr int m = 5, n = 9, k = 67, gap = 3, count = 3;
  Gemm options = of_lines(Type::s8, 2);
  options.m = m, options.n = n, options.k = k, options.batched = true;
  options.multiple = options.multiple_c = 1;
  std::vector<int> a, b, want;
  for (int i = 0; i < count * (m * k + gap); ++i) a.push_back(i * 7 % 11 - 5);
  for (int i = 0; i < count * (n * k + gap); ++i) b.push_back(i * 3 % 9 - 4);
  for (int z = 0; z < count; ++z)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        int sum = 0;
        for (int x = 0; x < k; ++x)
          sum += a[static_cast<std::size_t>(z * (m * k + gap) + i * k + x)] *
                 b[static_cast<std::size_t>(z * (n * k + gap) + j * k + x)];
        want.push_back(sum);
      }
  const testing_gemm::Launch launch{
      {options.blocks(m, n), 1, count},
      [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
        arguments.add(std::int64_t{m * k + gap}).add(std::int64_t{n * k + gap});
        arguments.add(std::int64_t{m * n});
        for (const auto& each : {a, b}) {
          buffers.push_back(
              testing_gemm::buffer_of(device, testing_numbers::encode(Type::s8, each)));
          arguments.add(buffers.back());
        }
        Buffer out = *device.allocate(want.size() * 4);
        arguments.add(out);
        return out;
      }};
  const Bytes out =
      testing_gemm::run(kernels::gemm(options), testing_gemm::target("sm_80"), launch);
  const auto got = testing_numbers::decode(s32, out);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i], want[i]) << i;
}

// A ring that does not fit: element by element.
TEST(GemmLines, BeyondSharedMemory) {
  Gemm options{.m = 0, .n = 0, .k = 0};
  options.tile = {.m = 128, .n = 256, .k = 64, .warps_m = 2, .warps_n = 4};
  options.multiple = options.multiple_c = 1, options.stages = 3;
  const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->ptx.find("cp.async.cg"), std::string::npos);
}

// What the kernel refuses is reported, and no further call relies on it.
TEST(GemmLines, RefusesWrongTiles) {
  for (const Tile& tile : {Tile{.m = 0, .n = 32, .k = 64}, Tile{.m = 32, .n = -8, .k = 64},
                           Tile{.m = 24, .n = 40, .k = 64, .warps_m = 4, .warps_n = 2}}) {
    Gemm options = of_lines(f16, 3);
    options.k = 331, options.tile = tile;
    const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
    ASSERT_FALSE(compiled);
    EXPECT_FALSE(compiled.diags().text().empty());
  }
}

TEST(GemmLines, OtherTargets) {
  const auto check = [](const char* name, const Gemm& options) {
    const Target target = testing_gemm::target(name);
    if (target.arch.sm < target_of(name).arch.sm) return;  // an older GPU
    const Product product(options, 35, 19, 331, true);
    const auto compiled = compile(kernels::gemm(product.options), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    expect_lines(compiled->ptx, 331);
    EXPECT_EQ(
        product.wrong(testing_gemm::run_on(testing_gemm::emulator(), *compiled, product.launch())),
        0);
  };
  check("sm_80", of_lines(bf16, 3));
  check("sm_86", of_lines(Type::s8, 3));
  Gemm fp8 = of_lines(Type::e4m3, 3);
  fp8.promote = 2;
  check("sm_89", fp8);
}

}  // namespace
}  // namespace tartan
