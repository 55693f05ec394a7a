// SPDX-License-Identifier: Apache-2.0
// Builder::add(): blocks that divide k add their parts of a product to what C has, by TMA's
// reduction or lane by lane.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

struct Case {
  const char* target;
  Tile tile;
  int producers, m, n;
  Type type;    // of C
  bool by_tma;  // adds
};

constexpr int depth = 96;  // three blocks share it

Kernel product(const Case& of) {
  const Tile& tile = of.tile;
  return kernel(
      "product", {.block = tile.threads(), .producers = of.producers}, [of, tile](Builder& k) {
        auto a = k.global("a", f16, row_major(of.m, depth));
        auto b = k.global("b", f16, row_major(of.n, depth)).transposed();
        auto c = k.global("c", of.type, row_major(of.m, of.n));
        auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
        auto sa = k.shared("sa", f16, mma.shared_a(2)), sb = k.shared("sb", f16, mma.shared_b(2));
        const auto all = [&] {
          auto sum = mma.accumulator();
          const Scalar row = k.block_x(), step = k.block_y() * 2;
          k.pipeline(
              {.stages = 2}, 2,
              [&](Scalar t, Scalar stage) {
                k.copy(a.tile({row, step + t}, {tile.m, tile.k}), sa[stage]);
                k.copy(b.tile({step + t, 0}, {tile.k, tile.n}), sb[stage]);
              },
              [&](Scalar, Scalar stage) { sum = mma(sum, sa[stage], sb[stage]); });
          const WarpTile out = of.type == f32 ? WarpTile(sum) : convert(sum, of.type);
          k.add(c.tile({row, 0}, {tile.m, tile.n}), out);
        };
        if (of.producers) k.roles(all);
        else all();
      });
}

template <typename T>
void expect_sums(const Case& of) {
  const auto size = [](int rows, int cols) { return static_cast<std::size_t>(rows * cols); };
  std::vector<host::f16> a, b;
  for (int i = 0; i < of.m * depth; ++i) a.emplace_back(static_cast<float>(i % 7 % 3 - 1));
  for (int i = 0; i < of.n * depth; ++i) b.emplace_back(static_cast<float>(i % 5 % 3 - 1));
  std::vector<T> c;
  for (int i = 0; i < of.m * of.n; ++i) c.emplace_back(static_cast<float>(i % 11));
  Device device = test::open_engine({.hardware = of.target, .checks = Checks::all});
  const auto blocks = static_cast<unsigned>((of.m + of.tile.m - 1) / of.tile.m);
  const auto done = run(device, product(of), {blocks, 3}, in(a), in(b), in_out(c));
  ASSERT_TRUE(done) << done.diags().text();
  for (const Finding& each : device.findings()) ADD_FAILURE() << each.message;
  for (int row = 0; row < of.m; ++row)
    for (int col = 0; col < of.n; ++col) {
      float sum = static_cast<float>((row * of.n + col) % 11);
      for (int x = 0; x < depth; ++x)
        sum += float(a[size(row, depth) + static_cast<std::size_t>(x)]) *
               float(b[size(col, depth) + static_cast<std::size_t>(x)]);
      ASSERT_EQ(float(c[size(row, of.n) + static_cast<std::size_t>(col)]), sum)
          << row << " " << col;
    }
}

constexpr Tile small{.m = 32, .n = 32, .k = 16, .warps_m = 2, .warps_n = 1},
    group{.m = 64, .n = 40, .k = 16, .warps_m = 4, .warps_n = 1},
    wide{.m = 64, .n = 48, .k = 16, .warps_m = 4, .warps_n = 1};

std::vector<Case> cases() {
  return {{"sm_80", small, 0, 32, 32, f32, false},  {"sm_80", small, 0, 70, 29, f32, false},
          {"sm_90a", small, 1, 70, 28, f32, true},  {"sm_90a", group, 4, 130, 36, f32, true},
          {"sm_90a", wide, 4, 64, 48, f16, true},   {"sm_90a", wide, 4, 70, 40, bf16, true},
          {"sm_90a", group, 4, 70, 39, f32, false}, {"sm_90a", group, 4, 70, 39, f16, false}};
}

TEST(Add, AddsToWhatIsThere) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(fmt::format("{} {} x {} {}", each.target, each.m, each.n, name(each.type)));
    if (!test::engine_runs(*Target::parse(each.target))) continue;
    if (each.type == f32) expect_sums<float>(each);
    else if (each.type == f16) expect_sums<host::f16>(each);
    else expect_sums<host::bf16>(each);
  }
}

// By TMA where it stores, with a map that knows the elements' type; explain() tells.
TEST(Add, ByTmaWhereItReachesC) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(fmt::format("{} {} x {} {}", each.target, each.m, each.n, name(each.type)));
    const auto compiled = compile(product(each), *Target::parse(each.target));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const auto has = [&](const char* text) {
      return compiled->ptx.find(text) != std::string::npos;
    };
    EXPECT_EQ(has("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group"), each.by_tma);
    EXPECT_NE(has("atom.relaxed.gpu.global.add."), each.by_tma);
    for (const CompiledMap& map : compiled->maps) {
      if (map.name == "c_map") {
        EXPECT_EQ(map.type, each.type);
      }
    }
  }
}

TEST(Add, RefusesOtherTypesAndSizes) {
  const auto refusal = [](Type type, int n) {
    const auto compiled = compile(
        kernel("add", {.block = 32},
               [&](Builder& k) {
                 auto c = k.global("c", type, row_major(64, 64));
                 auto mma = k.tiled_mma(k.best_mma(f16, f16, f32),
                                        {.m = 16, .n = 8, .k = 16, .warps_m = 1, .warps_n = 1});
                 k.add(c.tile({0, 0}, {16, n}), mma.accumulator());
               }),
        *Target::parse("sm_80"));
    return compiled ? std::string() : compiled.diags().text();
  };
  EXPECT_EQ(refusal(f32, 8), "");
  EXPECT_NE(refusal(f16, 8).find("c has elements of f16, the tile is"), std::string::npos)
      << refusal(f16, 8);
  EXPECT_NE(refusal(f32, 16).find("wrong tile shape"), std::string::npos) << refusal(f32, 16);
}

}  // namespace
}  // namespace tartan
