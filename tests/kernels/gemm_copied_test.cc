// SPDX-License-Identifier: Apache-2.0
// GEMM by wgmma whose operands threads copy, since TMA cannot reach rows of an odd number of words:
// a thread waits for its copies to a stage, to fence them, when those to later stages are under
// way.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Product;
using testing_gemm::runs_hopper;
using testing_gemm::target_of;

Gemm copied(int stages) {
  Gemm out{.a = f16, .b = f16, .c = f16};
  out.tile = {.m = 64, .n = 24, .k = 64, .warps_m = 4, .warps_n = 1};
  out.stages = stages, out.producers = 4;
  return out;
}

void expect_product(const Gemm& options, int m, int n, int k, unsigned blocks = 0) {
  SCOPED_TRACE(fmt::format("{} stages, {} x {} x {}", options.stages, m, n, k));
  const auto compiled = testing_gemm::compare_on_hopper(Product(options, m, n, k), blocks);
  ASSERT_TRUE(compiled);
  EXPECT_NE(compiled->ptx.find("wgmma.mma_async"), std::string::npos);
}

// Fewer k-tiles than stages that are under way, as many, and more.
TEST(GemmCopied, AnyNumberOfStagesAndTiles) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int stages : {2, 3, 5, 6, 9})
    for (const int k : {2, 66, 130, 194, 650}) expect_product(copied(stages), 67, 26, k);
}

// The ring goes on where the tile before ended.
TEST(GemmCopied, TileAfterTile) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int stages : {3, 6})
    for (const int k : {62, 126, 330}) {
      Gemm options = copied(stages);
      options.persistent = true;
      expect_product(options, 131, 52, k, 2);
    }
}

TEST(GemmCopied, InTurn) {
  if (!runs_hopper()) GTEST_SKIP();
  Gemm options = copied(6);
  options.persistent = true, options.tile.products = 2;
  for (const int k : {62, 126, 330}) expect_product(options, 131, 52, k, 2);
}

TEST(GemmCopied, InParts) {
  if (!runs_hopper()) GTEST_SKIP();
  Gemm options = copied(6);
  options.cluster_splits = 4;
  expect_product(options, 67, 26, 650);
}

// Columns of A are contiguous.
TEST(GemmCopied, ColumnMajor) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int stages : {3, 6}) {
    Gemm options = copied(stages);
    options.a_major = Major::col;
    expect_product(options, 72, 26, 330);
  }
}

TEST(GemmCopied, CopiesOfLaterStagesAreUnderWay) {
  const auto waits = [](int stages) {
    Gemm options = copied(stages);
    options.m = 67, options.n = 26, options.k = 650;
    const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
    std::string out;
    if (!compiled) return compiled.diags().text();
    const std::string_view word = "cp.async.wait_group";
    for (std::size_t at = 0; (at = compiled->ptx.find(word, at)) != std::string::npos;)
      out += compiled->ptx[compiled->ptx.find_first_of("0123456789", at += word.size())];
    return out;
  };
  EXPECT_EQ(waits(2), "0");
  EXPECT_EQ(waits(3), "10");  // in the loop, and behind it
  EXPECT_EQ(waits(6), "210");
}

}  // namespace
}  // namespace tartan
