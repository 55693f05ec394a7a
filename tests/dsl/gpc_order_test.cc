// SPDX-License-Identifier: Apache-2.0
// block_tile() gives clusters of a GPC neighbouring tiles, against where an H100 and an H200 put
// the clusters of a launch: what %smid said on 2026-11-27, a GPC for each cluster.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/support/engine.h"

namespace tartan {
namespace {

struct Order {
  int size = 2;  // of clusters
  int columns = 1;
  bool run_time = false;
  std::string_view target = "sm_90a";
};

Device& device() {
  static Device out = test::open_engine({.checks = Checks::all});
  return out;
}

// The numbers of the tiles that `count` clusters compute, in a column, or in a row.
std::vector<int> numbers(int count, const Order& order) {
  constexpr Tile tile{.m = 16, .n = 16, .k = 16, .warps_m = 1, .warps_n = 1};
  const int down = order.size / order.columns, blocks = count * order.size;
  const bool row = order.columns > 1;
  const int all_m = 16 * down * (row ? 1 : count), all_n = 16 * order.columns * (row ? count : 1);
  const KernelOptions options{.block = 32, .cluster = order.size, .cluster_columns = order.columns};
  const auto kernel = tartan::kernel("order", options, [&](Builder& k) {
    const Scalar m = k.param("m", s32, 16), n = k.param("n", s32, 16);
    auto out = k.global("out", u32, row_major(blocks, 2));
    const auto [i, j] =
        order.run_time ? k.block_tile(m, n, tile, 64) : k.block_tile(all_m, all_n, tile, 64);
    k.when(k.thread() == 0, [&, i = i, j = j] {
      k.write(out, k.block_x(), 0, i);
      k.write(out, k.block_x(), 1, j);
    });
  });
  const auto compiled = compile(kernel, Target::parse(order.target)->arch);
  EXPECT_TRUE(compiled) << compiled.diags().text();
  if (!compiled) return {};
  std::vector<std::uint32_t> got(static_cast<std::size_t>(2 * blocks), 9999);
  const auto done =
      run(device(), *compiled, {static_cast<unsigned>(blocks)}, all_m, all_n, in_out(got));
  EXPECT_TRUE(done) << done.diags().text();
  std::vector<int> out;
  for (std::size_t first = 0; first < got.size(); first += static_cast<std::size_t>(2 * order.size))
    out.push_back(static_cast<int>(row ? got[first + 1] : got[first]) /
                  (row ? order.columns : down));
  return out;
}

std::vector<int> in_order(int count) {
  std::vector<int> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

bool is_permutation_of_all(std::vector<int> of) {
  std::sort(of.begin(), of.end());
  return of == in_order(static_cast<int>(of.size()));
}

struct Recorded {
  int size;
  std::vector<int> gpcs;  // of cluster after cluster
};

const Recorded recorded[] = {
    {2, {0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1,
         2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 1,
         2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7}},
    {4, {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7}},
    {8, {0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7}},
};

TEST(GpcOrder, EveryTileOnce) {
  for (const auto& [size, gpcs] : recorded)
    for (int count = 1; count <= 132 / size + 1; ++count)
      for (const int columns : {1, size})
        EXPECT_TRUE(is_permutation_of_all(numbers(count, {.size = size, .columns = columns})))
            << fmt::format("{} clusters of {}, {} columns", count, size, columns);
}

TEST(GpcOrder, ClustersOfAGpcAreNeighbours) {
  for (const auto& [size, gpcs] : recorded)
    for (const int columns : {1, size})
      for (int count = 2; count <= 132 / size; ++count) {
        const auto tiles = numbers(count, {.size = size, .columns = columns});
        std::map<int, std::vector<int>> of_gpc;
        for (std::size_t i = 0; i < std::min(tiles.size(), gpcs.size()); ++i)
          of_gpc[gpcs[i]].push_back(tiles[i]);
        for (const auto& [gpc, own] : of_gpc) {
          const auto [least, most] = std::minmax_element(own.begin(), own.end());
          // The pairs that begin first are neighbours of each other, and of those after them.
          EXPECT_EQ(*most - *least + 1, static_cast<int>(own.size()))
              << fmt::format("{} clusters of {}, {} columns, GPC {}", count, size, columns, gpc);
        }
      }
}

TEST(GpcOrder, OthersKeepTheirOrder) {
  EXPECT_EQ(numbers(24, {.size = 4, .run_time = true}), in_order(24));
  EXPECT_EQ(numbers(24, {.size = 4, .columns = 2}), in_order(24));
  if (device().emulated()) {
    EXPECT_EQ(numbers(24, {.size = 4, .target = "sm_100a"}), in_order(24));
  }
  EXPECT_EQ(numbers(34, {.size = 4}), in_order(34)) << "more than run at the same time";
  EXPECT_EQ(numbers(8, {.size = 4}), in_order(8)) << "one for each GPC";
  EXPECT_NE(numbers(24, {.size = 4}), in_order(24));
}

}  // namespace
}  // namespace tartan
