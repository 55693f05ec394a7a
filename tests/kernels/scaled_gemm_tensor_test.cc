// SPDX-License-Identifier: Apache-2.0
// Products with fine scales by tcgen05, against the definition.
#include "tests/kernels/scaled_gemm_run.h"

namespace tartan::testing_scaled_gemm {
namespace {

// 64 and 128 rows of a warpgroup, which have their scales in other lanes; what tuned() chooses.
TEST(ScaledGemm, ByTcgen05) {
  const char* const target = "sm_100a";
  for (const auto& [m, n, warps, parts_n] :
       {std::array{64, 64, 4, 1}, {128, 64, 4, 1}, {256, 48, 8, 1}, {128, 128, 4, 2}}) {
    SCOPED_TRACE(fmt::format("{} x {}, {} warps", m, n, warps));
    ScaledGemm options = of_tile(m, n, warps);
    options.parts_n = parts_n;
    EXPECT_EQ(Scaled(options, 150, n + 72, 272).run(target), "");
    const auto compiled = compile(kernels::scaled_gemm(options), target_of(target));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_NE(compiled->ptx.find("tcgen05.mma"), std::string::npos);
  }
  const Target on = target_of(target);
  EXPECT_EQ(Scaled(kernels::tuned(ScaledGemm{.m = 4096, .n = 4096}, on), 300, 136, 272).run(target),
            "");
  ScaledGemm rows{.m = 4096, .grouping = Grouping::contiguous};
  EXPECT_EQ(
      Scaled(kernels::tuned(rows, on), 384, 72, 144, rows_of({128, 1, 0, 5}), 4).run(target, 1),
      "");
  ScaledGemm groups{.m = 300, .grouping = Grouping::masked};
  EXPECT_EQ(Scaled(kernels::tuned(groups, on, 3), 300, 72, 272, {300, 0, 65}, 3).run(target, 2),
            "");
}

}  // namespace
}  // namespace tartan::testing_scaled_gemm
