// SPDX-License-Identifier: Apache-2.0
// Stores of wgmma's tiles to a column-major matrix: the warps of a warpgroup stage boxes of 64 rows
// together, which TMA stores; each warp its own where they cannot.
#include <regex>
#include <set>

#include "tests/dsl/refusals.h"
#include "tests/kernels/gemm_run.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Product;
using testing_gemm::runs_hopper;
using testing_gemm::target_of;

const Arch sm_90a = *Arch::parse("sm_90a");

// The transpose of C by `warps` along its columns, in tiles of `rows` x `columns` of the transpose.
Gemm swapped(int rows, int columns, int warps, Type c = bf16) {
  Gemm out{.a = c, .b = c, .c = c};
  out.tile = {.m = rows, .n = columns, .k = 64, .warps_m = warps, .warps_n = 1};
  out.producers = 4, out.swap = true;
  return out;
}

const CompiledMap& map_of(const Compiled& compiled, std::string_view name) {
  for (const CompiledMap& each : compiled.maps)
    if (each.name == name) return each;
  ADD_FAILURE() << "no " << name;
  return compiled.maps.front();
}

// Boxes of 64 rows with lines of 128 bytes, staged `batches` boxes at a time.
void expect_together(const Compiled& compiled, std::string_view map_name,
                     std::string_view batches = "") {
  const CompiledMap& map = map_of(compiled, map_name);
  EXPECT_EQ(map.box.at(0), 64);
  EXPECT_EQ(map.swizzle, 128);
  const std::string told = explain(compiled.choices);
  EXPECT_NE(told.find(fmt::format("each warpgroup stages {}", batches)), std::string::npos) << told;
  EXPECT_EQ(told.find("fragment by fragment"), std::string::npos) << told;
}

// Runs a product of m x n x k in `blocks` CTAs (0: one for each tile) in several orders of warps.
void expect_product(const Gemm& options, int m, int n, int k, unsigned blocks = 0,
                    std::string_view batches = "", bool fixed = false) {
  SCOPED_TRACE(fmt::format("tile {}x{} by {} warps, {} x {} x {}", options.tile.m, options.tile.n,
                           options.tile.warps_m, m, n, k));
  const Product product(options, m, n, k, fixed);
  const auto compiled = testing_gemm::compare_on_hopper(product, blocks);
  if (compiled) expect_together(*compiled, "C_map", batches);
}

// Lines of C begin inside of sectors, and end inside of a box: in its first 16 rows and its last.
TEST(WarpgroupStores, SizesThatAreNoMultiples) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int n : {8, 56, 72, 136, 200})
    for (const int m : {21, 29}) expect_product(swapped(64, 24, 4), m, n, 72);
  expect_product(swapped(64, 16, 4, f16), 16, 64, 64);
  expect_product(swapped(64, 16, 4, f16), 13, 120, 136, 0, "", true);
}

TEST(WarpgroupStores, SeveralWarpgroups) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int warps : {8, 12}) expect_product(swapped(16 * warps, 40, warps), 45, 328, 136);
  expect_product(swapped(192, 200, 12, f16), 208, 264, 72, 0, "2 of its 2 boxes");
}

// A warpgroup has two m64 below each other.
TEST(WarpgroupStores, TallTiles) {
  if (!runs_hopper()) GTEST_SKIP();
  expect_product(swapped(128, 40, 4), 45, 328, 136, 0, "2 of its 2 boxes");
  expect_product(swapped(256, 136, 8), 141, 456, 72, 0, "4 of its 4 boxes");
}

// Whose memory the next batch, or the next tile, takes as soon as TMA has read it: all boxes at
// once, one at a time, and two in turn.
TEST(WarpgroupStores, ConsecutiveBatches) {
  if (!runs_hopper()) GTEST_SKIP();
  const struct {
    int rows, columns, stages;
    const char* batches;
  } cases[] = {{128, 24, 4, "1 of its 1 boxes"},
               {256, 136, 3, "4 of its 4 boxes"},
               {256, 136, 4, "1 of its 4 boxes"},
               {384, 80, 3, "1 of its 3 boxes"}};
  for (const auto& [rows, columns, stages, batches] : cases) {
    Gemm options = swapped(rows, columns, 8);
    options.stages = stages, options.persistent = true;
    expect_product(options, columns + 5, 2 * rows + 72, 136, 2, batches);
    const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(compiled->ptx.find("cp.async.bulk.wait_group.read 1") != std::string::npos,
              rows == 384);
  }
}

// A CTA of one tile stages C in the memory of its stages, where little is left beside them.
TEST(WarpgroupStores, InTheRing) {
  if (!runs_hopper()) GTEST_SKIP();
  Gemm options = swapped(256, 152, 8);
  options.stages = 4, options.cluster_columns = 2;
  expect_product(options, 160, 408, 328, 0, "4 of its 4 boxes");
}

// Beside stages that leave no room for boxes of 96 columns: those of 64.
TEST(WarpgroupStores, NarrowBoxesWhereLittleRoomIsLeft) {
  if (!runs_hopper()) GTEST_SKIP();
  Gemm options = swapped(192, 192, 12);
  options.stages = 4, options.persistent = true;
  expect_product(options, 261, 392, 136, 2, "1 of its 3 boxes");
}

TEST(WarpgroupStores, PingPong) {
  if (!runs_hopper()) GTEST_SKIP();
  for (const int rows : {64, 128}) {
    Gemm options = swapped(rows, 40, 4);
    options.tile.products = 2, options.persistent = true;
    expect_product(options, 125, 392, 136, 2);
  }
}

// CTAs of a cluster divide a tile's columns.
TEST(WarpgroupStores, PartsOfATile) {
  if (!runs_hopper()) GTEST_SKIP();
  Gemm options = swapped(128, 64, 8);
  options.cluster_splits = 4;
  expect_product(options, 70, 136, 520, 0, "1 of its 1 boxes");
}

// What needs no warpgroup keeps boxes of 16 rows: mma.sync.
TEST(WarpgroupStores, OthersAreStagedByWarps) {
  Gemm options = swapped(64, 32, 2);
  options.tile.warps_n = 2, options.tile.k = 32;
  const Product product(options, 40, 72, 64);
  const auto compiled = compile(kernels::gemm(product.options), target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(map_of(*compiled, "C_map").box.at(0), 16);
  EXPECT_NE(explain(compiled->choices).find("each warp stages"), std::string::npos);
}

constexpr int height = 120, width = 40, depth = 64;

// The product of two matrices by two warpgroups. `store` has C's tile and the sums.
Kernel product(const std::function<void(Builder&, const Global&, const WarpTile&)>& store) {
  const Tile tile{.m = 128, .n = width, .k = depth, .warps_m = 8, .warps_n = 1};
  return kernel("product", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
    auto a = k.global("a", f16, row_major(height, depth)),
         b = k.global("b", f16, col_major(depth, width)),
         c = k.global("c", f16, col_major(height, width));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sa = k.shared("sa", f16, mma.shared_a(1)), sb = k.shared("sb", f16, mma.shared_b(1));
    k.roles([&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = 1}, 1,
          [&](Scalar, Scalar stage) {
            k.copy(a.tile({0, 0}, {tile.m, tile.k}), sa[stage]);
            k.copy(b.tile({0, 0}, {tile.k, tile.n}), sb[stage]);
          },
          [&](Scalar, Scalar stage) { sum = mma(sum, sa[stage], sb[stage]); });
      store(k, c.tile({0, 0}, {tile.m, tile.n}), convert(sum, f16));
    });
  });
}

// Element (row, col) of the result, with what C had before if it is not to be stored or added to.
void expect_results(const Compiled& compiled, int times, int stored_rows) {
  std::vector<host::f16> a, b, c;
  for (int i = 0; i < height * depth; ++i) a.emplace_back(static_cast<float>(i % 7 % 3 - 1));
  for (int i = 0; i < width * depth; ++i) b.emplace_back(static_cast<float>(i % 5 % 3 - 1));
  for (int i = 0; i < height * width; ++i) c.emplace_back(static_cast<float>(i % 11));
  Device device = test::open_engine({.hardware = "sm_90a", .checks = Checks::all});
  const auto done = run(device, compiled, {1}, in(a), in(b), in_out(c));
  ASSERT_TRUE(done) << done.diags().text();
  for (const Finding& each : device.findings()) ADD_FAILURE() << each.message;
  int wrong = 0;
  for (int row = 0; row < height; ++row)
    for (int col = 0; col < width; ++col) {
      const int at = col * height + row;
      float sum = 0;
      for (int x = 0; x < depth; ++x)
        sum += static_cast<float>(a[static_cast<std::size_t>(row * depth + x)]) *
               static_cast<float>(b[static_cast<std::size_t>(col * depth + x)]);
      const auto old = static_cast<float>(at % 11);
      const float want = row >= stored_rows ? old
                         : times            ? old + static_cast<float>(times) * sum
                                            : sum;
      wrong += static_cast<float>(c[static_cast<std::size_t>(at)]) != want;
    }
  EXPECT_EQ(wrong, 0);
}

TEST(WarpgroupStores, Add) {
  if (!test::engine_runs(*Target::parse("sm_90a"))) GTEST_SKIP();
  const auto compiled = compile(product([](Builder& k, const Global& c, const WarpTile& sum) {
                                  k.add(c, sum), k.add(c, sum);
                                }),
                                sm_90a);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  expect_together(*compiled, "c_map", "1 of its 1 boxes at a time in shared memory, TMA adds");
  expect_results(*compiled, 2, height);
}

// A warpgroup would wait forever for warps that do not store.
TEST(WarpgroupStores, SomeWarpsAlone) {
  if (!test::engine_runs(*Target::parse("sm_90a"))) GTEST_SKIP();
  const auto compiled = compile(product([](Builder& k, const Global& c, const WarpTile& sum) {
                                  k.when(k.warp() < 6, [&] { k.store(c, sum); });
                                }),
                                sm_90a);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(map_of(*compiled, "c_map").box.at(0), 16);
  const std::string told = explain(compiled->choices);
  EXPECT_NE(told.find("not all of its warps meet the condition at"), std::string::npos) << told;
  expect_results(*compiled, 0, 6 * 16);
}

// Boxes of one store are not those of another: the second is stored fragment by fragment.
TEST(WarpgroupStores, ThoseOfWarpsAreOthers) {
  if (!test::engine_runs(*Target::parse("sm_90a"))) GTEST_SKIP();
  const auto compiled = compile(product([](Builder& k, const Global& c, const WarpTile& sum) {
                                  k.store(c, sum);
                                  k.when(k.warp() < 6, [&] { k.store(c, sum); });
                                }),
                                sm_90a);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const std::string told = explain(compiled->choices);
  EXPECT_NE(told.find("its boxes have 1280 bytes for each warp, those of the kernel's first store "
                      "5120 for each warpgroup"),
            std::string::npos)
      << told;
}

// The numbers of bar.sync of a warpgroup.
std::set<int> barriers_of(const Compiled& compiled) {
  std::set<int> out;
  const std::regex each("bar\\.sync\\s+(\\d+), 128;");
  for (std::sregex_iterator i(compiled.ptx.begin(), compiled.ptx.end(), each), end; i != end; ++i)
    out.insert(std::stoi((*i)[1]));
  return out;
}

// Each warpgroup has a barrier of its own, the next that the kernel has not: of few numbers, so
// that many CTAs fit on a multiprocessor. An only warpgroup has that of the consumers.
TEST(WarpgroupStores, NamedBarriers) {
  if (!test::engine_runs(*Target::parse("sm_90a"))) GTEST_SKIP();
  const auto with = [](int before, int after) {
    return product([=](Builder& k, const Global& c, const WarpTile& sum) {
      if (before) k.barrier(before, 256);
      k.store(c, sum);
      if (after) k.barrier(after, 256);
    });
  };
  for (const auto& [before, after, own] : {std::tuple{0, 4, std::set{2, 3}},
                                           {2, 5, std::set{3, 4}},
                                           {13, 2, std::set{14, 15}},
                                           {14, 15, std::set<int>{}}}) {
    const auto compiled = compile(with(before, after), sm_90a);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(barriers_of(*compiled), own);
    EXPECT_EQ(map_of(*compiled, "c_map").box.at(0), own.empty() ? 16 : 64);
    const std::string told = explain(compiled->choices);
    EXPECT_EQ(told.find("no named barrier is free for each warpgroup: the kernel has number 14") !=
                  std::string::npos,
              own.empty())
        << told;
    expect_results(*compiled, 0, height);
  }
  test::expect_told(compile(with(0, 3), sm_90a),
                    {"named barrier 3: barriers 2 to 3 are those of the warpgroups that store"});
  const auto one = compile(kernels::gemm(swapped(64, 24, 4)), target_of("sm_90a"));
  ASSERT_TRUE(one) << one.diags().text();
  EXPECT_EQ(barriers_of(*one), std::set{1});
}

}  // namespace
}  // namespace tartan
