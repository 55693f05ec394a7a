// SPDX-License-Identifier: Apache-2.0
// fp8 products of groups along k, against the definition: the product of each block of 128 is exact
// here (small elements), and what follows is one fma in f32 per block, so that every bit of C is
// known.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "runtime/emulator/schedules/exploration.h"
#include "tests/kernels/gemm_run.h"
#include "tests/kernels/scaled_values.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::KGroupedGemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;
using testing_gemm::target_of;
using testing_scaled::block;
using testing_scaled::blocks_of;
using testing_scaled::bytes_of;
using testing_scaled::element;
using testing_scaled::scale;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Grouped {
  KGroupedGemm options;
  int m, n, k;
  std::vector<int> depths;
  int line;  // of SA
  std::vector<host::e4m3> a, b;
  std::vector<float> scales_a, scales_b, before;

  /// k: what the depths need, and `more`.
  Grouped(const KGroupedGemm& wanted, int rows, int cols, std::vector<int> of, bool fixed = true,
          int more = 0)
      : options(wanted), m(rows), n(cols), k(more), depths(std::move(of)), line((m + 3) / 4 * 4) {
    for (const int depth : depths) k += blocks_of(std::max(depth, 0)) * block;
    options.m = fixed ? m : 0, options.n = fixed ? n : 0, options.k = fixed ? k : 0;
    for (int i = 0; i < m * k; ++i) a.push_back(element(i));
    for (int i = 0; i < n * k; ++i) b.push_back(element(i + (1 << 20)));
    for (int i = 0; i < line * blocks_of(k); ++i) scales_a.push_back(scale(i));
    for (int i = 0; i < n * blocks_of(k); ++i) scales_b.push_back(scale(i + (1 << 21)));
    for (int i = 0; i < groups() * m * n; ++i) before.push_back(scale(i + (1 << 22)) - 1);
    int begin = 0;
    for (int depth : depths) {  // what fills a block is zero in A
      depth = std::max(depth, 0);
      for (int x = begin + depth; x < begin + blocks_of(depth) * block; ++x)
        for (int row = 0; row < m; ++row) a[at(std::int64_t{row} * k + x)] = host::e4m3(0.0F);
      begin += blocks_of(depth) * block;
    }
  }

  int groups() const { return static_cast<int>(depths.size()); }

  float expected(int group, int row, int col) const {
    int begin = 0;
    for (int g = 0; g < group; ++g) begin += blocks_of(std::max(depths[at(g)], 0));
    const int depth = std::max(depths[at(group)], 0);
    const float old = before[at((std::int64_t{group} * m + row) * n + col)];
    if (depth == 0) return options.accumulate ? old : 0;
    float sum = 0;
    for (int t = begin; t < std::min(begin + blocks_of(depth), blocks_of(k)); ++t) {
      double product = 0;
      for (int x = t * block; x < std::min(k, (t + 1) * block); ++x)
        product += double(float(a[at(std::int64_t{row} * k + x)])) *
                   double(float(b[at(std::int64_t{col} * k + x)]));
      const float both =
          scales_a[at(std::int64_t{t} * line + row)] * scales_b[at(std::int64_t{t} * n + col)];
      sum = std::fma(static_cast<float>(product), both, sum);
    }
    return options.accumulate ? old + sum : sum;
  }

  Launch launch(int blocks = 0) const {
    const unsigned grid = blocks ? static_cast<unsigned>(blocks * options.cluster)
                                 : options.grid_x(m, n, groups(), 8);
    return {{grid}, [this](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
              for (const auto& [fixed, value] :
                   {std::pair{options.m, m}, {options.n, n}, {options.k, k}})
                if (!fixed) arguments.add(value);
              arguments.add(groups());
              const auto add = [&](const Bytes& bytes) {
                buffers.push_back(testing_gemm::buffer_of(device, bytes));
                arguments.add(buffers.back());
              };
              add(bytes_of(a)), add(bytes_of(scales_a)), add(bytes_of(b)), add(bytes_of(scales_b));
              Buffer c = testing_gemm::buffer_of(device, bytes_of(before));
              arguments.add(c);
              add(bytes_of(depths));
              return c;
            }};
  }

  /// What differs first; empty if nothing does.
  std::string wrong(const Bytes& bytes) const {
    std::vector<float> got(before.size());
    if (bytes.size() < got.size() * 4) return "no output";
    std::memcpy(got.data(), bytes.data(), got.size() * 4);
    for (int group = 0, i = 0; group < groups(); ++group)
      for (int row = 0; row < m; ++row)
        for (int col = 0; col < n; ++col, ++i) {
          const float want = expected(group, row, col), value = got[at(i)];
          if (value != want && !(std::isnan(value) && std::isnan(want)))
            return fmt::format("group {} ({}, {}): expected {}, got {}", group, row, col, want,
                               value);
        }
    return {};
  }

  std::string run(const char* target = "sm_90a", int blocks = 0) const {
    return wrong(testing_gemm::run(kernels::k_grouped_gemm(options), target_of(target),
                                   launch(blocks), std::string_view(target) == "sm_90a"));
  }
};

KGroupedGemm of_tile(int m, int n, int warps, int stages = 2) {
  KGroupedGemm out{.stages = stages};
  out.tile.m = m, out.tile.n = n, out.tile.warps_m = warps;
  return out;
}

// Depths that end within a block, groups without any, at the beginning, in between and at the end.
const std::vector<std::vector<int>> all_depths = {
    {128}, {0}, {0, 384, 0, 0, 128, 0}, {256, 130, 1, 512}, {-5, 128}};

TEST(KGroupedGemm, IsTheDefinitionAtEverySize) {
  for (const auto& [m, n] : {std::pair{1, 4}, {3, 140}, {130, 72}, {256, 128}})
    for (const std::vector<int>& depths : all_depths) {
      const bool fixed = depths.size() % 2, accumulate = m == 130 || depths.size() == 4;
      SCOPED_TRACE(fmt::format("{} x {}, {} groups, {}", m, n, depths.size(), accumulate));
      KGroupedGemm options = of_tile(128, 128, 8, 3);
      options.accumulate = accumulate;
      EXPECT_EQ(Grouped(options, m, n, depths, fixed).run(), "");
    }
}

// One and three warpgroups, several products of each, and columns of scales that TMA cannot put
// one stage behind the other.
TEST(KGroupedGemm, OfEveryTile) {
  struct Case {
    int m, n, warps;
  };
  for (const Case& each : {Case{64, 8, 4}, Case{64, 256, 4}, Case{128, 112, 8}, Case{256, 96, 8},
                           Case{256, 40, 4}, Case{192, 104, 12}})
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(fmt::format("{} x {}, {} warps, {}", each.m, each.n, each.warps, accumulate));
      KGroupedGemm options = of_tile(each.m, each.n, each.warps);
      options.accumulate = accumulate;
      EXPECT_EQ(Grouped(options, each.m + 2, each.n + 4, {256, 0, 128}).run("sm_90a", 2), "");
    }
}

// Bands of rows of tiles, the last one lower; CTAs that have no tile of the first group.
TEST(KGroupedGemm, DividesTheTilesOfAllGroups) {
  for (const int group : {1, 2, 8})
    for (const int blocks : {1, 3, 8}) {
      SCOPED_TRACE(fmt::format("{} rows of tiles, {} CTAs", group, blocks));
      KGroupedGemm options = of_tile(64, 32, 4);
      options.group = group, options.accumulate = group == 2;
      EXPECT_EQ(Grouped(options, 180, 72, {128, 0, 128, 256}).run("sm_90a", blocks), "");
    }
}

TEST(KGroupedGemm, ClustersShareBOrA) {
  for (const int cluster : {2, 4})
    for (const bool share_a : {false, true})
      for (const int blocks : {1, 2}) {
        if (blocks > 4 / cluster) continue;
        SCOPED_TRACE(fmt::format("{} CTAs, A {}, {}", cluster, share_a, blocks));
        KGroupedGemm options = of_tile(64, 32, 4);
        options.cluster = cluster, options.share_a = share_a, options.accumulate = share_a;
        EXPECT_EQ(Grouped(options, 136, 72, {256, 0, 128}).run("sm_90a", blocks), "");
      }
}

// A and B may be larger than the groups need, or end before the last group does.
TEST(KGroupedGemm, StaysInsideOfK) {
  const KGroupedGemm options = of_tile(64, 64, 4);
  EXPECT_EQ(Grouped(options, 66, 68, {128, 256}, true, 144).run(), "");
  EXPECT_EQ(Grouped(options, 66, 68, {128, 256}, false, 144).run(), "");
  Grouped beyond(options, 66, 68, {128, 256});
  beyond.depths = {128, 1 << 30, 128};
  beyond.before.resize(3 * 66 * 68, 1);
  EXPECT_EQ(beyond.run(), "");
  beyond.depths = {128, 2147483647, 2147483521};
  EXPECT_EQ(beyond.run(), "");
  EXPECT_EQ(Grouped(options, 66, 68, {}, true, 128).run("sm_90a", 2), "");
}

// Three stages, several tiles for a CTA: under seeds, and all schedules by one run.
TEST(KGroupedGemm, OneRunDecidesAllSchedules) {
  KGroupedGemm plain = of_tile(64, 32, 4, 3), pair = plain, two = of_tile(128, 48, 4);
  pair.cluster = 2, pair.accumulate = true;
  two.accumulate = true;
  for (const KGroupedGemm& options : {plain, pair, two}) {
    const Grouped grouped(options, 68, 72, {4 * block, 0, 128});
    const auto compiled = compile(kernels::k_grouped_gemm(grouped.options), target_of("sm_90a"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const auto exploration = std::make_shared<detail::Exploration>();
    exploration->proves = true;
    Device device = *Device::open("emulator", {.exploration = exploration, .checks = Checks::all});
    EXPECT_EQ(grouped.wrong(testing_gemm::run_on(device, *compiled, grouped.launch(1))), "");
    for (const detail::Obstacle& each : exploration->obstacles) ADD_FAILURE() << each.text;
    Device seeded = *Device::open("emulator", {.schedule = "7", .checks = Checks::all});
    EXPECT_EQ(grouped.wrong(testing_gemm::run_on(seeded, *compiled, grouped.launch(1))), "");
  }
}

// As IEEE arithmetic has it, and of its own group alone.
TEST(KGroupedGemm, PropagatesNanAndInfinity) {
  for (const bool accumulate : {false, true}) {
    KGroupedGemm options = of_tile(128, 112, 8);
    options.accumulate = accumulate;
    Grouped grouped(options, 130, 136, {256, 0, 128});
    const float infinity = std::numeric_limits<float>::infinity(),
                nan = std::numeric_limits<float>::quiet_NaN();
    grouped.a[5] = host::e4m3(nan);
    grouped.b[at(7 * 384 + 300)] = host::e4m3(nan);
    grouped.scales_a[at(grouped.line + 3)] = infinity;
    grouped.scales_b[at(2 * 136 + 9)] = -infinity;
    grouped.before[at(136 * 130 + 4)] = nan;  // of the group without depth
    EXPECT_TRUE(std::isnan(grouped.expected(0, 0, 9)));
    EXPECT_TRUE(std::isinf(grouped.expected(0, 3, 131)));
    EXPECT_FALSE(std::isnan(grouped.expected(2, 0, 5)));
    EXPECT_EQ(std::isnan(grouped.expected(1, 0, 4)), accumulate);
    EXPECT_EQ(grouped.run(), "");
  }
}

// What tuned() chooses and other tiles, several for each CTA: the definition, and the same bits
// again, in whatever order TMA adds.
TEST(KGroupedGemm, GpuIsTheDefinition) {
  const Target target = target_of("sm_90a");
  if (!testing_gemm::runs_on_gpu(target)) GTEST_SKIP() << "no GPU of sm_90a";
  Device& device = *testing_gemm::gpu();
  constexpr int m = 264, n = 116;
  for (const bool accumulate : {false, true}) {
    KGroupedGemm pair = of_tile(256, 104, 8, 4), three = of_tile(192, 96, 12, 5);
    pair.cluster = 2, pair.share_a = true;
    const KGroupedGemm tuned = kernels::tuned(KGroupedGemm{.m = m, .n = n, .k = 0}, target, 4);
    for (KGroupedGemm options : {tuned, pair, three}) {
      options.accumulate = accumulate;
      SCOPED_TRACE(fmt::format("{} x {}, {}", options.tile.m, options.tile.n, accumulate));
      const Grouped grouped(options, m, n, {256, 0, 130, 128});
      const auto compiled = compile(kernels::k_grouped_gemm(grouped.options), target);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      const Bytes first = testing_gemm::run_on(device, *compiled, grouped.launch());
      EXPECT_EQ(grouped.wrong(first), "");
      EXPECT_EQ(first, testing_gemm::run_on(device, *compiled, grouped.launch()));
    }
  }
}

TEST(KGroupedGemm, OfOtherTensorCores) {
  for (const char* target : {"sm_89", "sm_120a"})
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(target);
      KGroupedGemm options{.accumulate = accumulate};
      options = kernels::tuned(options, target_of(target));
      EXPECT_EQ(Grouped(options, 70, 136, {256, 0, 128}).run(target, 3), "");
    }
}

TEST(KGroupedGemm, ByTcgen05) {
  const char* const target = "sm_100a";
  for (const bool accumulate : {false, true}) {
    KGroupedGemm tuned{.accumulate = accumulate};
    tuned = kernels::tuned(tuned, target_of(target));
    EXPECT_EQ(Grouped(tuned, 300, 72, {256, 0, 130}).run(target, 2), "");
    KGroupedGemm narrow = of_tile(64, 48, 4);
    narrow.accumulate = accumulate;
    EXPECT_EQ(Grouped(narrow, 70, 100, {128, 256}).run(target, 2), "");
  }
}

std::string refusal(const KGroupedGemm& options, const char* target = "sm_90a") {
  const auto compiled = compile(kernels::k_grouped_gemm(options), target_of(target));
  return compiled ? "" : compiled.diags().text();
}

TEST(KGroupedGemm, NamesTheOptionThatDoesNotFit) {
  const auto with = [](auto change) {
    KGroupedGemm out;
    change(out);
    return refusal(out);
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  EXPECT_EQ(with([](KGroupedGemm&) {}), "");
  has(with([](KGroupedGemm& o) { o.m = -1; }), "m = -1, n = 256, k = 1024: expected sizes");
  has(with([](KGroupedGemm& o) { o.n = 102; }), "n = 102: expected a multiple of 4");
  has(with([](KGroupedGemm& o) { o.k = 24; }),
      "k = 24: expected a multiple of 16; the nearest is 32");
  has(with([](KGroupedGemm& o) { o.tile.n = 100; }), "tile.n = 100: expected a multiple of 8");
  has(with([](KGroupedGemm& o) { o.tile.k = 64; }), "tile.k = 64: expected 128");
  has(with([](KGroupedGemm& o) { o.tile.m = 100; }), "100 rows");
  has(with([](KGroupedGemm& o) { o.stages = 0; }), "stages = 0: expected 1 to 256");
  has(with([](KGroupedGemm& o) { o.group = 0; }), "group = 0");
  has(with([](KGroupedGemm& o) { o.share_a = true; }), "share_a: expected a cluster");
  has(with([](KGroupedGemm& o) { o.tile.m = 1 << 30; }),
      "tile.m = 1073741824: expected up to 1024");
  has(with([](KGroupedGemm& o) { o.n = 2147483647; }), "the nearest is 2147483644");
  has(with([](KGroupedGemm& o) { o.m = 2147483647; }), "the largest size is 2147483520");
  has(refusal({}, "sm_80"), "[no-instruction]");
}

TEST(KGroupedGemm, TunedFitsEverySize) {
  const Target target = target_of("sm_90a");
  for (const bool accumulate : {false, true})
    for (const int m : {1, 130, 4096, 0})
      for (const auto& [n, k] : {std::pair{4, 16}, {2112, 7168}, {7168, 0}, {0, 512}}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}", m, n, k));
        const KGroupedGemm options =
            kernels::tuned({.m = m, .n = n, .k = k, .accumulate = accumulate}, target);
        const auto compiled = compile(kernels::k_grouped_gemm(options), target);
        ASSERT_TRUE(compiled) << compiled.diags().text();
        EXPECT_TRUE(compiled->warnings.empty()) << compiled->warnings.text();
        EXPECT_NE(compiled->ptx.find("wgmma.mma_async"), std::string::npos);
      }
}

// NVIDIA's assembler accepts the texts, spills nothing, and does not serialize wgmma.
TEST(KGroupedGemm, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  const Target target = target_of("sm_90a");
  for (const auto& [m, n, k] : {std::tuple{4096, 7168, 32768},
                                {7168, 2048, 16384},
                                {0, 0, 0},
                                {512, 512, 4096},
                                {64, 0, 0}})
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(fmt::format("{} x {} x {}, {}", m, n, k, accumulate));
      const auto compiled =
          compile(kernels::k_grouped_gemm(kernels::tuned(
                      KGroupedGemm{.m = m, .n = n, .k = k, .accumulate = accumulate}, target)),
                  target);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      test::expect_good_registers(compiled->ptx, "sm_90a",
                                  testing::TempDir() + std::to_string(getpid()) + "_k_grouped");
    }
}

TEST(KGroupedGemm, UsesWgmmaAndTma) {
  for (const int n : {128, 112}) {
    KGroupedGemm options = of_tile(128, n, 8, 3);
    options.m = options.n = options.k = 0, options.cluster = 2;
    const auto compiled = compile(kernels::k_grouped_gemm(options), target_of("sm_90a"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_NE(compiled->ptx.find(fmt::format("m64n{}k32.f32.e4m3.e4m3", n)), std::string::npos);
    std::vector<std::string> maps;
    for (const CompiledMap& map : compiled->maps) maps.push_back(map.name);
    for (const char* name : {"A_map", "SA_map", "B_map", "SB_map", "C_map"})
      EXPECT_NE(std::find(maps.begin(), maps.end(), name), maps.end()) << name;
    EXPECT_NE(compiled->ptx.find(".multicast::cluster ["), std::string::npos);
  }
}

TEST(KGroupedGemm, HasACtaForEachTileAtMost) {
  KGroupedGemm options = of_tile(128, 128, 8);
  EXPECT_EQ(options.grid_x(129, 130, 3, 132), 12u);
  EXPECT_EQ(options.grid_x(4096, 7168, 8, 132), 132u);
  EXPECT_EQ(options.grid_x(0, 0, 0, 0), 1u);
  options.cluster = 0, options.tile.m = 0;  // refused by k_grouped_gemm()
  EXPECT_GE(options.grid_x(129, 130, 3, 132), 1u);
  options = of_tile(128, 128, 8);
  options.cluster = 2;
  EXPECT_EQ(options.grid_x(129, 130, 1, 132), 4u);
  EXPECT_EQ(options.grid_x(4096, 7168, 8, 133), 132u);
  options.cluster = 4;
  EXPECT_EQ(options.grid_x(4096, 7168, 8, 132), 120u);
}

}  // namespace
}  // namespace tartan
