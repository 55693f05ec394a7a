// SPDX-License-Identifier: Apache-2.0
// The words of gpu_gemm: sizes, types and configurations.
#include "bench/gpu/gemm_config.h"

#include <gtest/gtest.h>

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
}

TEST(GemmConfig, WrongWords) {
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
  EXPECT_EQ(gpu::grid_of(config(":persistent"), product, 132), (Dim3{132}));
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

}  // namespace
