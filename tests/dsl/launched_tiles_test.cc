// SPDX-License-Identifier: Apache-2.0
// each_launched_tile(): every tile is computed once, whoever takes it; what cannot be is refused.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/support/numbers.h"

namespace tartan {
namespace {

constexpr int m = 200, n = 72, depth = 64;
constexpr Tile tile{.m = 64, .n = 32, .k = 32, .warps_m = 4, .warps_n = 1};
constexpr unsigned tiles = 4 * 3;

// Adds the product of ones to C: m x n times `depth`, once.
Kernel product(bool in_roles, int producers = 4) {
  return kernel("product", {.block = tile.threads(), .producers = producers}, [=](Builder& k) {
    auto A = k.global("A", f16, row_major(m, depth)), B = k.global("B", f16, col_major(depth, n)),
         C = k.global("C", f32, row_major(m, n));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(2)), sB = k.shared("sB", f16, mma.shared_b(2));
    const auto all = [&] {
      k.each_launched_tile(m, n, tile, [&](Scalar row, Scalar col) {
        auto sum = mma.accumulator();
        k.pipeline(
            {.stages = 2}, depth / tile.k,
            [&](Scalar t, Scalar stage) {
              k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
              k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
            },
            [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); });
        k.add(C.tile({row, col}, {tile.m, tile.n}), sum);
      });
    };
    if (in_roles) k.roles(all);
    else all();
  });
}

Status run(const Compiled& compiled, const char* hardware, const char* schedule, Dim3 grid,
           std::vector<double>& got) {
  DeviceOptions options{.hardware = hardware, .checks = Checks::all};
  options.schedule = schedule;
  Device device = *Device::open("emulator", options);
  const auto buffer = [&](Type type, const std::vector<int>& values) {
    const auto bytes = testing_numbers::encode(type, values);
    Buffer out = *device.allocate(bytes.size());
    EXPECT_TRUE(out.write(bytes));
    return out;
  };
  const Buffer a = buffer(f16, std::vector<int>(m * depth, 1)),
               b = buffer(f16, std::vector<int>(n * depth, 1)),
               c = buffer(f32, std::vector<int>(m * n, 0));
  LoadedKernel kernel = *device.load(compiled.ptx)->kernel("product");
  if (Status launched = launch(kernel, compiled, grid, Arguments().add(a).add(b).add(c)); !launched)
    return launched;
  const Status done = device.synchronize();
  for (const Finding& finding : device.findings())
    if (finding.id != "proxy-fence-read") ADD_FAILURE() << finding.id << ": " << finding.message;
  got = testing_numbers::decode(f32, *c.read_all<std::byte>());
  return done;
}

// By mma.sync on sm_120a, by tcgen05 on sm_100a; on sm_90a each CTA has its tile.
TEST(LaunchedTiles, AreComputedOnce) {
  for (const char* const target : {"sm_90a", "sm_100a", "sm_120a"}) {
    const auto compiled = compile(product(true), *Target::parse(target));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const bool takes = std::string_view(target) != "sm_90a";
    EXPECT_EQ(compiled->ptx.find("clusterlaunchcontrol.try_cancel") != std::string::npos, takes);
    EXPECT_EQ(explain(compiled->choices).find("take") != std::string::npos, takes);
    for (const char* const schedule : {"", "1", "2"}) {
      SCOPED_TRACE(fmt::format("{}, schedule {}", target, schedule));
      std::vector<double> got;
      const Status done = run(*compiled, target, schedule, {tiles}, got);
      ASSERT_TRUE(done) << done.diags().text();
      EXPECT_EQ(got, std::vector<double>(m * n, depth));
    }
  }
}

TEST(LaunchedTiles, NeedRoles) {
  const auto compiled = compile(product(false), *Target::parse("sm_100a"));
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.diags().text().find("each_launched_tile() outside of roles()"),
            std::string::npos)
      << compiled.diags().text();
  EXPECT_TRUE(compile(product(false, 0), *Target::parse("sm_90a")));
}

// A CTA for each tile, along x: a tile that is taken is known by its x alone.
TEST(LaunchedTiles, AreAGridAlongX) {
  const auto compiled = compile(product(true), *Target::parse("sm_100a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  for (const Dim3 grid : {Dim3{tiles - 1}, {tiles + 1}, {tiles, 2}, {tiles, 1, 2}}) {
    std::vector<double> got;
    const Status refused = run(*compiled, "sm_100a", "", grid, got);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.diags().text().find("each_launched_tile()"), std::string::npos)
        << refused.diags().text();
  }
}

}  // namespace
}  // namespace tartan
