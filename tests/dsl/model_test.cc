// SPDX-License-Identifier: Apache-2.0
// What tartan/dsl/model.h says of kernels, against kernels that are compiled.
#include "tartan/dsl/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tartan/tartan.h>

namespace tartan {
namespace {

// By hand: a multiprocessor has 65536 registers, in units of 8 a thread; CUTLASS has 168, 240 and
// 24 for 384 threads.
TEST(ThreadBudget, IsWhatSetmaxnregMoves) {
  const auto of = [](const KernelOptions& options, const char* target) {
    const auto out = model::ThreadBudget::of(options, *Target::parse(target));
    return fmt::format("{} threads, {} and {}{}", out.threads, out.at_start, out.consumers,
                       out.moves ? ", moved" : "");
  };
  EXPECT_EQ(of({.block = 256, .producers = 4}, "sm_90a"), "384 threads, 168 and 240, moved");
  EXPECT_EQ(of({.block = 128, .producers = 4}, "sm_90a"), "256 threads, 255 and 240, moved");
  EXPECT_EQ(of({.block = 256, .producers = 4}, "sm_90"), "384 threads, 168 and 168");
  EXPECT_EQ(of({.block = 256, .producers = 1}, "sm_90a"), "288 threads, 168 and 168");
  EXPECT_EQ(of({.block = 256, .producers = 4}, "sm_75"), "256 threads, 255 and 255");
  EXPECT_EQ(of({.block = 256, .min_blocks = 2}, "sm_80"), "256 threads, 128 and 128");
  EXPECT_EQ(of({.block = 256, .producers = 4, .max_registers = 128}, "sm_90a"),
            "384 threads, 128 and 128");
}

// A loop in the text of a kernel that copies a tile in so many accesses of 16 bytes.
TEST(Model, CopiesBecomeLoopsWhereItSays) {
  for (const int rows : {128, 256, 272, 512}) {
    const auto compiled = compile(kernel("copies", {.block = 128},
                                         [=](Builder& k) {
                                           auto a = k.global("A", f16, row_major(rows, 64));
                                           k.copy(a, k.shared("s", f16, row_major(rows, 64)));
                                         }),
                                  *Target::parse("sm_80"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const bool loops = compiled->ptx.find("bra") != std::string::npos;
    EXPECT_EQ(loops, model::copies_in_loop(rows * 64 * 2 / 16, 128)) << rows;
  }
}

// The shared memory of a kernel that adds a tile over its cluster is what remains to it.
TEST(Model, ExchangedBytesAreTheKernels) {
  constexpr std::int64_t all = 227 << 10, reserved = 1024;
  for (const int ctas : {2, 4, 8})
    for (const int n : {32, 64, 96, 128})
      for (const int kept : {0, 128 << 10, 200 << 10}) {
        const Tile tile{.m = 64, .n = n, .k = 16, .warps_m = 4, .warps_n = 1};
        const auto compiled =
            compile(kernel("sums", {.block = tile.threads(), .cluster = ctas},
                           [=](Builder& k) {
                             if (kept) k.shared("kept", f32, row_major(kept / 512, 128));
                             auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
                             const WarpTile sum = mma.accumulator();
                             const int parts = scatter_parts(ctas, sum.across());
                             EXPECT_EQ(n / 8 % parts, 0);
                             auto C = k.global("C", f32, row_major(64, n / parts));
                             k.store(C, reduce_scatter(sum, parts));
                           }),
                    Target::parse("sm_90")->arch);
        ASSERT_TRUE(compiled) << compiled.diags().text();
        const int bytes = compiled->shared_bytes + compiled->dynamic_shared;
        EXPECT_EQ(model::exchange_bytes(tile, ctas, all - reserved - kept), bytes - kept)
            << ctas << " CTAs, " << n << " columns, beside " << kept;
      }
  EXPECT_EQ(model::exchange_bytes({.m = 64, .n = 64, .k = 16}, 1, all), 0);
  EXPECT_EQ(model::exchange_bytes({.m = 64, .n = 8, .k = 16, .warps_n = 2}, 4, all), 0);
}

TEST(ScatterParts, IsTheLargestDivisorOfTheFragments) {
  for (int ctas = 1; ctas <= 8; ++ctas)
    for (int across = 1; across <= 40; ++across) {
      int most = 1;
      for (int each = 1; each <= ctas; ++each)
        if (across % each == 0) most = each;
      EXPECT_EQ(scatter_parts(ctas, across), most) << ctas << ", " << across;
    }
  EXPECT_EQ(scatter_parts(8, 0), 1);
}

}  // namespace
}  // namespace tartan
