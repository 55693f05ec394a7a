// SPDX-License-Identifier: Apache-2.0
// The arguments of gpu_gemm: sizes, types and configurations.
#include "bench/gpu/gemm_config.h"

#include <gtest/gtest.h>

#include "bench/gpu/cublas_words.h"

namespace {

using namespace tartan;

TEST(GemmConfig, Word) {
  const auto config = gpu::read_config("128x256x64:8x1:3:4:persistent=132");
  ASSERT_TRUE(config);
  const kernels::Gemm& gemm = config->gemm;
  EXPECT_EQ(gemm.tile.m, 128);
  EXPECT_EQ(gemm.tile.n, 256);
  EXPECT_EQ(gemm.tile.k, 64);
  EXPECT_EQ(gemm.tile.warps_m, 8);
  EXPECT_EQ(gemm.tile.warps_n, 1);
  EXPECT_EQ(gemm.stages, 3);
  EXPECT_EQ(gemm.producers, 4);
  EXPECT_TRUE(gemm.persistent);
  EXPECT_EQ(config->blocks, 132);
  EXPECT_EQ(gpu::read_config("64x64x64:2x2:3:producers=1:splits=4")->gemm.producers, 1);
  const auto all = gpu::read_config("64x64x64:2x2:3:4:cluster=2:group=16:sparse");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->gemm.cluster, 2);
  EXPECT_EQ(all->gemm.group, 16);
  EXPECT_TRUE(all->sparse);
}

TEST(GemmConfig, TunedByTheProduct) {
  const auto tuned = gpu::read_config("tuned");
  ASSERT_TRUE(tuned);
  gpu::Product product;
  ASSERT_TRUE(gpu::read_size("4095x4097x4104", product));
  const gpu::Config config = gpu::completed(*tuned, product, *Target::parse("sm_90a"));
  EXPECT_EQ(config.text, "tuned, 256x176x64:8x1:3:4:persistent:group=16:cluster_columns=2");
  EXPECT_EQ(gpu::options_of(config, product).k, 4104);
  EXPECT_EQ(gpu::options_of(config, product).cluster_columns, 2);
  const auto other = gpu::read_config("64x64x64:2x2:3");
  EXPECT_EQ(gpu::completed(*other, product, *Target::parse("sm_90a")).text, other->text);
}

TEST(GemmConfig, RejectsInvalidText) {
  for (const char* word : {"", "128", "128x256:8x1:3", "128x256x64:8x1", "128x256x64:8x1:x",
                           "128x256x64:8x1:0", "128x256x64:8x1:3:4:5", "128x256x64:8x1:3:fast",
                           "128x256x64:8x1:3:splits=", "128x256x64:8x1:3:splits=-1"})
    EXPECT_FALSE(gpu::read_config(word)) << word;
}

TEST(GemmConfig, Products) {
  gpu::Product product;
  EXPECT_TRUE(gpu::read_size("16x8192x4096", product) && gpu::read_type("e4m3xe5m2", product) &&
              gpu::read_majors("cr", product));
  EXPECT_EQ(product.text(), "16x8192x4096 e4m3 x e5m2 to bf16, cr");
  EXPECT_TRUE(gpu::read_size("64", product) && gpu::read_type("s8", product));
  EXPECT_EQ(product.text(), "64x64x64 s8 to s32, cr");
  EXPECT_EQ(product.operations(), 2.0 * 64 * 64 * 64);
  for (const char* word : {"", "16x16", "0", "16x", "x"})
    EXPECT_FALSE(gpu::read_size(word, product)) << word;
  for (const char* word : {"", "f15", "f16x", "xf16"})
    EXPECT_FALSE(gpu::read_type(word, product)) << word;
  for (const char* word : {"", "r", "rx", "rrr"})
    EXPECT_FALSE(gpu::read_majors(word, product)) << word;
}

TEST(GemmConfig, Launches) {
  gpu::Product product;
  ASSERT_TRUE(gpu::read_size("300x256x64", product));
  const auto config = [](const char* rest) {
    return *gpu::read_config(std::string("128x128x64:2x2:3") + rest);
  };
  EXPECT_EQ(gpu::grid_of(config(""), product, 132), (Dim3{6, 1}));
  EXPECT_EQ(gpu::grid_of(config(":splits=4"), product, 132), (Dim3{6, 4}));
  EXPECT_EQ(gpu::grid_of(config(":stream=13"), product, 132), (Dim3{13}));
  EXPECT_EQ(gpu::grid_of(config(":persistent"), product, 132), (Dim3{6}));
  EXPECT_EQ(gpu::grid_of(config(":persistent"), product, 4), (Dim3{3}));
  EXPECT_EQ(gpu::sum_blocks_of(config(""), product), 0u);
  EXPECT_EQ(gpu::sum_blocks_of(config(":splits=4"), product), 300u);
  EXPECT_EQ(gpu::sum_blocks_of(config(":stream=13"), product), 6u);
  EXPECT_EQ(gpu::options_of(config(":dynamic"), product).m, 0);
}

TEST(GemmConfig, UsualOnes) {
  EXPECT_FALSE(gpu::usual_products().empty());
  for (const gpu::Product& product : gpu::usual_products())
    EXPECT_FALSE(gpu::usual_configs(product).empty()) << product.text();
}

// A product as cuBLAS computes it, column-major.
std::vector<int> col_major_product(const kernels::Gemm& product, const std::vector<int>& first,
                                   const std::vector<int>& second) {
  const gpu::Columns one = gpu::first_operand(product), other = gpu::second_operand(product);
  const auto at = [](const std::vector<int>& from, const gpu::Columns& columns, int row, int col) {
    if (columns.transposed) std::swap(row, col);
    return from[static_cast<std::size_t>(col * columns.length + row)];
  };
  std::vector<int> out;
  for (int col = 0; col < product.m; ++col)
    for (int row = 0; row < product.n; ++row) {
      int sum = 0;
      for (int i = 0; i < product.k; ++i) sum += at(first, one, row, i) * at(second, other, i, col);
      out.push_back(sum);
    }
  return out;
}

TEST(CublasWords, ColumnsGiveRowsOfC) {
  for (const Major a_major : {Major::row, Major::col})
    for (const Major b_major : {Major::row, Major::col}) {
      const kernels::Gemm product{.m = 2, .n = 3, .k = 4, .a_major = a_major, .b_major = b_major};
      const auto a = [](int i, int j) { return 5 * i + j; };
      const auto b = [](int i, int j) { return 7 * i - j; };
      std::vector<int> first(12), second(12), expected;
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
          second[static_cast<std::size_t>(a_major == Major::row ? i * 4 + j : j * 2 + i)] = a(i, j);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 3; ++j)
          first[static_cast<std::size_t>(b_major == Major::row ? i * 3 + j : j * 4 + i)] = b(i, j);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j) {
          expected.push_back(0);
          for (int l = 0; l < 4; ++l) expected.back() += a(i, l) * b(l, j);
        }
      EXPECT_EQ(col_major_product(product, first, second), expected);
    }
}

}  // namespace
