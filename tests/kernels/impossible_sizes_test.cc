// SPDX-License-Identifier: Apache-2.0
// Options that no kernel takes: each number of each struct is 0, negative and the largest one in
// turn. What sizes a launch returns numbers for them, compile() says what is wrong, and neither
// crashes.
#include <gtest/gtest.h>

#include <tartan/kernels/kernels.h>
#include <tartan/tartan.h>

#include <climits>
#include <functional>

#include "kernels/common/options.h"

namespace tartan::kernels {
namespace {

const Target hopper = *Target::parse("sm_90a"), blackwell = *Target::parse("sm_120a");

// Calls `use` with each number of the options replaced by each of these, one at a time.
template <typename Options>
void with_each_number(const Options& right, const std::function<void(const Options&)>& use) {
  int numbers = 0;
  const auto change = [&](Options& wrong, int& number) {
    const int before = number;
    for (const int value : {0, -1, INT_MIN, INT_MAX}) {
      number = value;
      use(wrong);
    }
    number = before;
    ++numbers;
  };
  Options wrong = right;
  detail::each_member(
      [&](const auto&, auto& member) {
        using Member = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, int>) change(wrong, member);
        else if constexpr (std::is_same_v<Member, detail::SizesOf<int>>)
          for (int* const each : member.each) change(wrong, *each);
      },
      wrong);
  EXPECT_GE(numbers, 3);
}

volatile std::int64_t sink;  // so that results count
void use(std::int64_t number) { sink = number; }

TEST(ImpossibleSizes, LaunchesHaveGrids) {
  const auto of_gemm = [](const Gemm& o) {
    for (const int size : {0, 100, 4096}) {
      use(o.tiles(size, size)), use(o.blocks(size, size)), use(o.grid_x(size, size, 132));
      use(o.persistent_blocks(size, size, 0)), use(o.workspace_elements(size, size));
    }
  };
  with_each_number<Gemm>({}, of_gemm);
  with_each_number<Gemm>({.splits = 4}, of_gemm);
  with_each_number<Gemm>({.producers = 4, .swap = true}, of_gemm);
  with_each_number<Gemm>({.tile = {.m = 64, .n = 128, .k = 64, .warps_m = 4, .warps_n = 1},
                          .persistent = true,
                          .producers = 4},
                         of_gemm);
  with_each_number<BlockScaled>({}, [](const BlockScaled& o) { use(o.blocks(100, 100)); });
  with_each_number<ScaledGemm>(
      {}, [](const ScaledGemm& o) { use(o.grid_x(4096, 4096, 132)), use(o.grid_x(0, 0, 0, 0)); });
  with_each_number<KGroupedGemm>({}, [](const KGroupedGemm& o) {
    use(o.grid_x(4096, 4096, 4, 132)), use(o.grid_x(0, 0, 0, 0));
  });
  const auto of_mixed = [](const MixedGemm& o) {
    use(o.blocks(100, 100, 132)), use(o.blocks(0, 0, 0)), use(o.tiles(100, 100));
    use(o.partial_elements(132)), use(o.counter_elements(100, 100));
  };
  with_each_number<MixedGemm>({}, of_mixed);
  with_each_number<MixedGemm>({.split = true, .even = true}, of_mixed);
  with_each_number<Attention>({}, [](const Attention& o) {
    use(o.blocks(4096)), use(o.persistent_blocks(4096, 8, 2, 132));
    use(o.persistent_blocks(0, 0, 0, 0));
  });
  with_each_number<AttentionBackward>({}, [](const AttentionBackward& o) {
    use(o.blocks(4096)), use(o.row_blocks(4096)), use(o.stat_elements(4096));
    use(o.sum_elements(4096)), use(o.turn_elements(100, 2));
  });
  with_each_number<Decode>({}, [](const Decode& o) {
    use(o.blocks(132)), use(o.blocks(132, 8, 8, 4096)), use(o.blocks(0, 0, 0, 0));
    use(o.partial_elements(132)), use(o.weight_elements(132));
  });
  with_each_number<MlaDecode>({}, [](const MlaDecode& o) {
    use(o.blocks(132)), use(o.blocks(0)), use(o.partial_elements(132)), use(o.weight_elements(132));
    EXPECT_GE(o.blocks(132), 1u);
  });
  with_each_number<SmallProducts>({}, [](const SmallProducts& o) { use(o.blocks(100)); });
}

// Refused with a reason, or compiled.
void compiles(const Kernel& kernel, const Target& target) {
  const auto compiled = compile(kernel, target);
  if (compiled) return;
  EXPECT_FALSE(compiled.diags().ok());
  for (const Diag& each : compiled.diags()) EXPECT_NE(each.id, "codegen") << each.message;
}

TEST(ImpossibleSizes, WarpsOfATileAreRefused) {
  for (int Tile::*const warps : {&Tile::warps_m, &Tile::warps_n, &Tile::warps_k, &Tile::products})
    for (const int value : {0, -1}) {
      Gemm options;
      options.tile.*warps = value;
      for (const bool direct : {false, true}) {
        options.direct = direct;
        const auto compiled = compile(gemm(options), hopper);
        EXPECT_FALSE(compiled) << value;
      }
      BlockScaled scaled;
      scaled.tile.*warps = value;
      EXPECT_FALSE(compile(block_scaled(scaled), blackwell)) << value;
    }
}

TEST(ImpossibleSizes, DecodingSaysWhatItTakes) {
  with_each_number<MlaDecode>({.type = f16},
                              [](const MlaDecode& o) { compiles(mla_decode(o), hopper); });
  const auto none = compile(mla_decode({.heads = 0}), hopper);
  ASSERT_FALSE(none);
  EXPECT_NE(none.diags().text().find("heads = 0: expected 1 to 128"), std::string::npos)
      << none.diags().text();
}

}  // namespace
}  // namespace tartan::kernels
