// SPDX-License-Identifier: Apache-2.0
// fp8 products with fine scales, dense and grouped, against the definition: the product of each
// block of 128 is exact here (small elements), and what follows is one fma in f32 per block, so
// that every bit of C is known.
#include "runtime/emulator/schedules/exploration.h"
#include "tests/kernels/scaled_gemm_run.h"

namespace tartan::testing_scaled_gemm {
namespace {

TEST(ScaledGemm, IsTheDefinitionAtEverySize) {
  for (const auto& [m, n, k] : {std::tuple{1, 8, 16}, {3, 136, 144}, {130, 72, 272}})
    for (const bool fixed : {true, false})
      for (const Type c : {f32, bf16}) {
        if (fixed == (c == f32)) continue;
        SCOPED_TRACE(fmt::format("{} x {} x {}, {}, {}", m, n, k, fixed, name(c)));
        ScaledGemm options = of_tile(128, 128, 8, 3);
        options.c = c;
        EXPECT_EQ(Scaled(options, m, n, k, {}, 1, fixed).run(), "");
      }
}

TEST(ScaledGemm, OfNoDepthIsZero) {
  for (const bool overlap : {false, true}) {
    ScaledGemm options = of_tile(64, 32, 4);
    options.overlap = overlap, options.blocks_k = overlap ? 2 : 1;
    EXPECT_EQ(Scaled(options, 66, 40, 0, {}, 1, false).run(), "");
  }
}

// Widths that divide 128, columns of two blocks of scales in one tile, several products of a
// warpgroup in turn or at once, one and three warpgroups.
TEST(ScaledGemm, OfEveryTile) {
  struct Case {
    int m, n, warps, parts_n;
    bool overlap;
    int blocks_k = 1;
  };
  for (const Case& each :
       {Case{64, 16, 4, 1, false}, Case{128, 112, 8, 1, false}, Case{128, 160, 8, 1, false},
        Case{128, 256, 8, 2, false}, Case{256, 96, 8, 1, true}, Case{128, 192, 8, 2, true},
        Case{128, 128, 8, 1, true, 2}, Case{192, 120, 12, 1, false}, Case{64, 16, 4, 1, true, 4},
        Case{128, 64, 8, 1, false, 3}, Case{128, 160, 8, 2, false, 2}}) {
    SCOPED_TRACE(fmt::format("{} x {}, {} warps", each.m, each.n, each.warps));
    ScaledGemm options = of_tile(each.m, each.n, each.warps);
    options.parts_n = each.parts_n, options.overlap = each.overlap;
    options.blocks_k = each.blocks_k;
    EXPECT_EQ(Scaled(options, 66, each.n + 8, 144).run(), "");
  }
}

TEST(ScaledGemm, ClustersShareBOrA) {
  for (const int cluster : {2, 4})
    for (const bool share_a : {false, true})
      for (const int blocks : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} CTAs, A {}, {}", cluster, share_a, blocks));
        ScaledGemm options = of_tile(64, 32, 4);
        options.cluster = cluster, options.share_a = share_a;
        if (blocks > 4 / cluster) continue;
        EXPECT_EQ(Scaled(options, 136, 72, 144).run("sm_90a", blocks), "");
      }
}

// Fewer k-tiles than CTAs, columns that do not divide or are beyond n, every size a parameter.
TEST(ScaledGemm, ClustersDivideK) {
  using Case = std::array<int, 5>;  // the number of CTAs, m, n, k, blocks_k
  for (const auto& [splits, m, n, k, blocks_k] :
       {Case{2, 64, 32, 144, 1}, Case{2, 64, 112, 656, 2}, Case{2, 64, 32, 1168, 4},
        Case{4, 64, 64, 400, 1}, Case{4, 64, 16, 528, 2}, Case{4, 64, 24, 528, 1},
        Case{8, 64, 64, 1040, 1}, Case{4, 128, 64, 784, 1}}) {
    const bool fixed = k > 600;
    SCOPED_TRACE(fmt::format("{} CTAs, {} columns, k = {}", splits, n, k));
    ScaledGemm options = of_tile(m, n, m / 16);
    options.cluster_splits = splits, options.c = fixed ? bf16 : f32;
    options.blocks_k = blocks_k, options.overlap = blocks_k > 1;
    EXPECT_EQ(Scaled(options, 67, 136, k, {}, 1, fixed).run(), "");
  }
}

TEST(ScaledGemm, GroupedByRows) {
  for (const std::vector<int>& counts : {std::vector{128, 1, 0, 130}, std::vector{0, 0, 5}})
    for (const int cluster : {1, 2})
      for (const Type c : {f32, bf16}) {
        if ((c == f32) != (cluster == 1)) continue;
        ScaledGemm options = of_tile(128, 64, 8);
        options.grouping = Grouping::contiguous, options.cluster = cluster, options.c = c;
        std::vector<int> list = rows_of(counts);
        SCOPED_TRACE(fmt::format("{} rows, {} CTAs", list.size(), cluster));
        const int m = static_cast<int>(list.size());
        list.insert(list.begin(), 128, -1);  // a tile of padding alone
        EXPECT_EQ(Scaled(options, m + 128, 72, 144, list, static_cast<int>(counts.size()))
                      .run("sm_90a", 1),
                  "");
      }
}

TEST(ScaledGemm, GroupsOfMaskedRows) {
  for (const std::vector<int>& counts :
       {std::vector{64, 1, 0, 132}, std::vector{0, 0, 0}, std::vector{100, -5}})
    for (const int cluster : {1, 2})
      for (const int blocks : {1, 3}) {
        if (blocks == cluster) continue;
        ScaledGemm options = of_tile(64, 64, 4);
        options.grouping = Grouping::masked, options.cluster = cluster;
        SCOPED_TRACE(fmt::format("{} groups, {} CTAs, {}", counts.size(), cluster, blocks));
        EXPECT_EQ(Scaled(options, 132, 136, 144, counts, static_cast<int>(counts.size()))
                      .run("sm_90a", blocks),
                  "");
      }
}

// Of one product in a stage: a constant k of up to 128 k-tiles, whose scales of B lanes have, 32
// each; a longer one, and a parameter.
TEST(ScaledGemm, OfLongDepth) {
  for (const auto& [k, fixed] : {std::pair{32 * block, true},
                                 {33 * block + 16, true},
                                 {128 * block, true},
                                 {129 * block, true},
                                 {34 * block, false}})
    for (const int width : {16, 112}) {
      if (width == 112 && (k < 33 * block || k > 34 * block)) continue;
      SCOPED_TRACE(fmt::format("k = {}, {} columns, {}", k, width, fixed));
      EXPECT_EQ(Scaled(of_tile(64, width, 4, 3), 20, width + 8, k, {}, 1, fixed).run(), "");
    }
}

// k-tiles of a stage one after the other, of a k that is a parameter.
TEST(ScaledGemm, SeveralKTilesOfAnyDepth) {
  for (const int k : {16, 272, 7 * block}) {
    ScaledGemm options = of_tile(64, 64, 4, 2);
    options.blocks_k = 3;
    SCOPED_TRACE(k);
    EXPECT_EQ(Scaled(options, 66, 72, k, {}, 1, false).run(), "");
  }
}

// Several tiles for a CTA, with two parts side by side and k-tiles that fill no whole ring.
TEST(ScaledGemm, GroupedByRowsInParts) {
  for (const int k : {16, 272, 4 * block}) {
    SCOPED_TRACE(k);
    ScaledGemm options = of_tile(128, 256, 8, 3);
    options.grouping = Grouping::contiguous, options.cluster = 2, options.parts_n = 2;
    EXPECT_EQ(Scaled(options, 384, 520, k, rows_of({130, 0, 100}), 3).run("sm_90a", 1), "");
  }
}

// Three stages, four k-tiles, several tiles for a CTA: under seeds, and all schedules by one run.
TEST(ScaledGemm, OneRunDecidesAllSchedules) {
  ScaledGemm dense = of_tile(64, 32, 4, 3);
  ScaledGemm pair = dense, overlapped = of_tile(64, 32, 4), rows = of_tile(64, 32, 4, 3);
  pair.cluster = 2;
  overlapped.blocks_k = 2, overlapped.overlap = true;
  rows.grouping = Grouping::masked, rows.cluster = 2;
  for (const ScaledGemm& options : {dense, pair, overlapped, rows}) {
    const bool masked = options.grouping == Grouping::masked;
    const Scaled scaled(options, 68, 72, 4 * block,
                        masked ? std::vector{66, 0, 3} : std::vector<int>{}, masked ? 3 : 1);
    const auto compiled = compile(kernels::scaled_gemm(scaled.options), target_of("sm_90a"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const auto exploration = std::make_shared<detail::Exploration>();
    exploration->proves = true;
    Device device = *Device::open("emulator", {.exploration = exploration, .checks = Checks::all});
    EXPECT_EQ(scaled.wrong(testing_gemm::run_on(device, *compiled, scaled.launch(1))), "");
    for (const detail::Obstacle& each : exploration->obstacles) ADD_FAILURE() << each.text;
    Device seeded = *Device::open("emulator", {.schedule = "7", .checks = Checks::all});
    EXPECT_EQ(scaled.wrong(testing_gemm::run_on(seeded, *compiled, scaled.launch(1))), "");
  }
}

// As IEEE arithmetic has it: a scale of infinity times a product of zero is NaN, and so on. Of
// no product is infinite: e4m3 has no infinity.
TEST(ScaledGemm, PropagatesNanAndInfinity) {
  for (const auto& [blocks_k, overlap] : {std::pair{1, false}, {2, false}, {2, true}, {4, true}}) {
    SCOPED_TRACE(fmt::format("{} k-tiles in a stage, {}", blocks_k, overlap));
    ScaledGemm options = of_tile(128, 112, 8, 1);
    options.c = f32, options.blocks_k = blocks_k, options.overlap = overlap;
    Scaled scaled(options, 130, 136, 272);
    const float infinity = std::numeric_limits<float>::infinity(),
                nan = std::numeric_limits<float>::quiet_NaN();
    scaled.a[5] = host::e4m3(nan);
    scaled.b[static_cast<std::size_t>(7 * 272 + 200)] = host::e4m3(nan);
    scaled.scales_a[static_cast<std::size_t>(scaled.line + 3)] = infinity;
    scaled.scales_a[static_cast<std::size_t>(129)] = nan;
    scaled.scales_b[3] = -infinity;
    scaled.scales_b[2] = infinity;  // of the last k-tile: what a stage has beyond adds nothing
    EXPECT_TRUE(std::isnan(scaled.expected(0, 9)));
    EXPECT_TRUE(std::isinf(scaled.expected(40, 131)));
    EXPECT_TRUE(std::isinf(scaled.expected(41, 10)));
    EXPECT_EQ(scaled.run(), "");
  }
}

// Awkward sizes in one process with the emulator's: the definition, and the same bits again. One,
// two and three warpgroups, parts, clusters that share A or B or divide k, and groups.
TEST(ScaledGemm, GpuIsTheDefinition) {
  const Target target = target_of("sm_90a");
  if (!testing_gemm::runs_on_gpu(target)) GTEST_SKIP() << "no GPU of sm_90a";
  Device& device = *testing_gemm::gpu();
  const auto check = [&](const Scaled& problem) {
    const auto compiled = compile(kernels::scaled_gemm(problem.options), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const Bytes first = testing_gemm::run_on(device, *compiled, problem.launch());
    EXPECT_EQ(problem.wrong(first), "");
    EXPECT_EQ(first, testing_gemm::run_on(device, *compiled, problem.launch()));
  };
  ScaledGemm wide = of_tile(128, 256, 8, 4), tall = of_tile(256, 128, 8, 4),
             three = of_tile(192, 128, 12, 4), few = of_tile(64, 16, 4, 7),
             split = of_tile(64, 32, 4, 3), uneven = of_tile(64, 24, 4, 4);
  wide.parts_n = 2, wide.cluster = tall.cluster = three.cluster = 2, tall.share_a = true;
  few.blocks_k = 3, few.overlap = true;
  split.blocks_k = 4, split.overlap = true, split.cluster_splits = 2, uneven.cluster_splits = 4;
  for (const auto& [m, n, k] : {std::tuple{5, 24, 16}, {70, 136, 528}, {200, 264, 400}})
    for (const ScaledGemm& options : {kernels::tuned(ScaledGemm{.m = m, .n = n, .k = k}, target),
                                      wide, tall, three, few, split, uneven})
      for (const bool fixed : {true, false}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}, {} x {}", m, n, k, options.tile.m, options.tile.n));
        check(Scaled(options, m, n, k, {}, 1, fixed));
      }
  ScaledGemm groups = wide;
  groups.grouping = Grouping::contiguous;
  check(Scaled(groups, 384, 136, 272, rows_of({130, 0, 1}), 3));
  groups = of_tile(128, 128, 8, 3);
  groups.cluster = 2, groups.grouping = Grouping::masked;
  check(Scaled(groups, 132, 136, 272, {132, 0, 65}, 3));
}

TEST(ScaledGemm, OfOtherTensorCores) {
  for (const char* target : {"sm_89", "sm_120a"}) {
    SCOPED_TRACE(target);
    EXPECT_EQ(Scaled(of_tile(64, 64, 4), 70, 136, 272).run(target), "");
    ScaledGemm parts = of_tile(128, 64, 4);  // two below the other, and two side by side
    parts.parts_n = 2;
    EXPECT_EQ(Scaled(parts, 70, 136, 272).run(target), "");
  }
}

std::string refusal(const ScaledGemm& options, const char* target = "sm_90a") {
  const auto compiled = compile(kernels::scaled_gemm(options), target_of(target));
  return compiled ? "" : compiled.diags().text();
}

TEST(ScaledGemm, NamesTheOptionThatDoesNotFit) {
  const auto with = [](auto change) {
    ScaledGemm out;
    change(out);
    return refusal(out);
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  EXPECT_EQ(with([](ScaledGemm&) {}), "");
  has(with([](ScaledGemm& o) { o.n = 100; }), "n = 100: expected a multiple of 8");
  has(with([](ScaledGemm& o) { o.k = 24; }),
      "k = 24: expected a multiple of 16; the nearest is 32");
  has(with([](ScaledGemm& o) { o.c = s8; }), "type of C: expected bf16, f16 or f32, found s8");
  has(with([](ScaledGemm& o) { o.tile.n = 176; }), "tile.n = 176");
  has(with([](ScaledGemm& o) { o.tile.k = 64; }), "tile.k = 64: expected 128");
  has(with([](ScaledGemm& o) { o.tile.m = 100; }), "100 rows");
  has(with([](ScaledGemm& o) { o.parts_n = 3; }), "parts_n = 3: expected 1 or 2");
  has(with([](ScaledGemm& o) { o.share_a = true; }), "share_a: expected a cluster");
  has(with([](ScaledGemm& o) { o.cluster_splits = 3; }), "expected 1, 2, 4 or 8");
  has(with([](ScaledGemm& o) { o.cluster_splits = 2, o.cluster = 2; }),
      "cluster_splits: expected a dense product, cluster = 1");
  has(with([](ScaledGemm& o) { o.cluster_splits = 2, o.tile.m = 256; }), "16 rows for each warp");
  has(with([](ScaledGemm& o) { o.tile.m = 1 << 30; }), "tile.m = 1073741824: expected up to 1024");
  has(with([](ScaledGemm& o) { o.grouping = Grouping::contiguous, o.tile.m = 256; }),
      "tile.m = 256: expected a divisor of 128");
  has(with([](ScaledGemm& o) { o.grouping = Grouping::masked, o.k = 0; }), "a constant k");
  has(refusal({}, "sm_80"), "[no-instruction]");
}

TEST(ScaledGemm, TunedFitsEverySize) {
  const Target target = target_of("sm_90a");
  for (const Grouping grouping : {Grouping::none, Grouping::contiguous, Grouping::masked})
    for (const int m : {4, 128, 4096, 0})
      for (const auto& [n, k] : {std::pair{8, 16}, {2112, 7168}, {0, 512}}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}", m, n, k));
        const ScaledGemm options =
            kernels::tuned({.m = m, .n = n, .k = k, .grouping = grouping}, target);
        const auto compiled = compile(kernels::scaled_gemm(options), target);
        ASSERT_TRUE(compiled) << compiled.diags().text();
        EXPECT_TRUE(compiled->warnings.empty()) << compiled->warnings.text();
        EXPECT_NE(compiled->ptx.find("wgmma.mma_async"), std::string::npos);
      }
}

// Where a wave of larger tiles is enough for one group, and where it is not for many.
TEST(ScaledGemm, TunedKnowsHowManyGroupsThereAre) {
  const Target target = target_of("sm_90a");
  ScaledGemm options{.m = 64, .n = 512, .k = 7168, .grouping = Grouping::masked};
  const Tile one = kernels::tuned(options, target).tile,
             many = kernels::tuned(options, target, 64).tile;
  EXPECT_LT(one.n, many.n);
  options.m = 1024, options.n = 4096;
  EXPECT_GE(kernels::tuned(options, target).tile.m, 128);
}

// Clusters of more than two CTAs find room on ten of eleven multiprocessors: others would wait.
TEST(ScaledGemm, ClustersOfAGridFindRoom) {
  ScaledGemm options = of_tile(128, 128, 8);
  EXPECT_EQ(options.grid_x(8192, 8448, 132), 132u);
  options.cluster = 2;
  EXPECT_EQ(options.grid_x(8192, 8448, 132), 132u);
  options.cluster = 4;
  EXPECT_EQ(options.grid_x(8192, 8448, 132), 120u);
  EXPECT_EQ(options.grid_x(8192, 8448, 3), 4u);
  EXPECT_EQ(options.grid_x(0, 0, 0), 4u);
}

// B of few rows is read once and A by every CTA; else neighbours read the same columns later.
TEST(ScaledGemm, OfFewRowsKeepsAInL2) {
  const Target target = target_of("sm_90a");
  for (const int m : {1, 64, 128, 129, 4096, 0}) {
    SCOPED_TRACE(m);
    const ScaledGemm options = kernels::tuned(ScaledGemm{.m = m, .n = 7168, .k = 2048}, target);
    const auto compiled = compile(kernels::scaled_gemm(options), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const auto has = [&](const char* text) {
      return compiled->ptx.find(text) != std::string::npos;
    };
    const bool few = m > 0 && m <= 128;
    EXPECT_EQ(has(" 1364590687093260288;"), few) << "evict_first";
    EXPECT_EQ(has(" 1508705875169116160;"), few) << "evict_last";
    EXPECT_EQ(has("complete_tx::bytes.L2::cache_hint ["), few);
  }
}

TEST(ScaledGemm, UsesWgmmaAndTma) {
  ScaledGemm options = of_tile(256, 128, 8, 3);
  options.m = options.n = options.k = 0;
  options.cluster = 2, options.share_a = true;
  const auto compiled = compile(kernels::scaled_gemm(options), target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(compiled->ptx.find("m64n128k32.f32.e4m3.e4m3"), std::string::npos);
  std::vector<std::string> maps;
  for (const CompiledMap& map : compiled->maps) maps.push_back(map.name);
  for (const char* name : {"A_map", "SA_map", "B_map", "C_map"})
    EXPECT_EQ(std::count(maps.begin(), maps.end(), name), 1) << name;
  EXPECT_NE(compiled->ptx.find(".multicast::cluster ["), std::string::npos);
}

}  // namespace
}  // namespace tartan::testing_scaled_gemm
