// SPDX-License-Identifier: Apache-2.0
// A body for each warpgroup: two tiles in ping-pong, by mma.sync and by wgmma, in the usual order
// and in those of seeds; different work side by side; what is refused.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <string>
#include <vector>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

constexpr int stages = 2;
const Arch sm_90a = *Arch::parse("sm_90a");

struct PingPong {
  Tile tile{.m = 64, .n = 64, .k = 32, .warps_m = 4, .warps_n = 1};
  int groups = 2;
};

// C = A * B and the sums of C's rows within a tile. Each CTA computes every gridDim.x-th group of
// vertically adjacent tiles, a tile by each warpgroup; while one multiplies, others store.
Kernel ping_pong(const PingPong& with) {
  const int block = 128 * with.groups;
  return kernel("ping_pong", {.block = block, .producers = 4}, [=](Builder& k) {
    Tile tile = with.tile;
    tile.products = with.groups;
    auto m = k.param("m", s32), n = k.param("n", s32, 16), depth = k.param("depth", s32, 16);
    auto A = k.global("A", f16, row_major(m, depth)), B = k.global("B", f16, col_major(depth, n)),
         C = k.global("C", f32, row_major(m, n)),
         rows = k.global("rows", f32, row_major(ceil_div(n, tile.n), m));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    std::vector<Ring> sA, sB;
    for (int w = 0; w < with.groups; ++w) {
      sA.push_back(k.shared("sA" + std::to_string(w), f16, mma.shared_a(stages)));
      sB.push_back(k.shared("sB" + std::to_string(w), f16, mma.shared_b(stages)));
    }
    k.roles([&] {
      const Scalar across = ceil_div(n, tile.n), down = ceil_div(m, with.groups * tile.m);
      k.loop(k.block_x(), across * down, k.blocks_x(), [&](Scalar number) {
        k.warpgroups([&](int w) {
          const auto i = static_cast<std::size_t>(w);
          const Scalar row = number / across * with.groups + w, col = number % across;
          auto sum = mma.accumulator();
          const auto fill = [&](Scalar t, Scalar stage) {
            k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[i][stage]);
            k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[i][stage]);
          };
          k.in_turn([&] {
            k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill,
                       [&](Scalar, Scalar stage) { sum = mma(sum, sA[i][stage], sB[i][stage]); });
          });
          k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
          const RowValues sums = row_sum(sum);
          const RowValues places = row_places(sum);
          for (std::size_t each = 0; each < sums.size(); ++each)
            k.when(row * tile.m + places[each] < m,
                   [&] { k.write(rows, col, row * tile.m + places[each], sums[each]); });
        });
      });
    });
  });
}

void expect_products(const char* target, const PingPong& with, const std::string& schedule = {}) {
  SCOPED_TRACE(testing::Message() << target << ", schedule '" << schedule << "'");
  if (!test::engine_runs(*Target::parse(target))) return;
  const auto compiled = compile(ping_pong(with), Target::parse(target)->arch);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  Device device =
      test::open_engine({.hardware = target, .schedule = schedule, .checks = Checks::all});
  const int m = 200, n = 144, depth = 80, across = (n + 63) / 64;
  std::vector<host::f16> a, b;
  for (int i = 0; i < m * depth; ++i) a.emplace_back(static_cast<float>(i * 7 % 13 - 6));
  for (int i = 0; i < n * depth; ++i) b.emplace_back(static_cast<float>(i * 5 % 7 - 3));
  std::vector<float> c(static_cast<std::size_t>(m * n)), rows(static_cast<std::size_t>(across * m));
  const auto done = run(device, *compiled, {2}, m, n, depth, in(a), in(b), out(c), out(rows));
  ASSERT_TRUE(done) << done.diags().text();
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    std::vector<float> sums(static_cast<std::size_t>(across));
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int t = 0; t < depth; ++t)
        sum += static_cast<float>(a[static_cast<std::size_t>(i * depth + t)]) *
               static_cast<float>(b[static_cast<std::size_t>(j * depth + t)]);
      wrong += c[static_cast<std::size_t>(i * n + j)] != sum;
      sums[static_cast<std::size_t>(j / 64)] += sum;
    }
    for (int j = 0; j < across; ++j)
      wrong += rows[static_cast<std::size_t>(j * m + i)] != sums[static_cast<std::size_t>(j)];
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Warpgroups, ComputeTilesInTurn) {
  for (const char* target : {"sm_80", "sm_89", "sm_90a"}) expect_products(target, {});
  expect_products("sm_90a", {.groups = 3});
  // Warps of a group exchange row sums at its own barrier.
  expect_products("sm_80", {.tile = {.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2}});
  for (const char* target : {"sm_80", "sm_90a"})
    for (const char* seed : {"1", "2", "3", "4"}) expect_products(target, {}, seed);
}

TEST(Warpgroups, MultiplyByWgmma) {
  const auto compiled = compile(ping_pong({}), sm_90a);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(compiled->ptx.find("wgmma.mma_async"), std::string::npos);
}

// Without producers, each fills its own ring; the barrier is its own.
TEST(Warpgroups, DoDifferentWork) {
  for (const char* target : {"sm_75", "sm_80", "sm_90a"}) {
    const Kernel made = kernel("different", {.block = 256}, [](Builder& k) {
      auto x = k.global("x", f32, row_major(2, 128)), y = k.global("y", f32, row_major(2, 128));
      auto s = k.shared("s", f32, row_major(1, 128)), t = k.shared("t", f32, row_major(1, 128));
      k.warpgroups([&](int w) {
        const Scalar i = k.thread();
        if (w == 0) {
          k.write(s, 0, i, k.read(x, 0, i));
          k.barrier();
          k.write(y, 0, i, k.read(s, 0, 127 - i));
        } else {
          k.when(k.warp() < 4, [&] { k.write(t, 0, i, k.read(x, 1, i) * 2.0); });
          k.barrier();
          k.write(y, 1, i, k.read(t, 0, i ^ 1));
        }
      });
    });
    std::vector<float> x(256), y(256);
    for (int i = 0; i < 256; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i);
    Device device = test::open_engine({.hardware = target, .checks = Checks::all});
    const auto done = run(device, made, {1}, in(x), out(y));
    ASSERT_TRUE(done) << done.diags().text();
    for (int i = 0; i < 128; ++i) {
      EXPECT_EQ(y[static_cast<std::size_t>(i)], static_cast<float>(127 - i));
      EXPECT_EQ(y[static_cast<std::size_t>(128 + i)], static_cast<float>(2 * (128 + (i ^ 1))));
    }
  }
}

// A number in shared memory to which each warpgroup appends its own bit, in turn.
TEST(Warpgroups, SeeWhatThePreviousOneWrote) {
  constexpr int rounds = 5;
  for (const char* target : {"sm_80", "sm_90a"})
    for (const char* schedule : {"", "1", "2", "3"}) {
      if (!test::engine_runs(*Target::parse(target))) continue;
      const Kernel made = kernel("turns", {.block = 384, .producers = 1}, [](Builder& k) {
        auto seen = k.global("seen", u32, row_major(rounds, 3));
        auto number = k.shared("number", u32, row_major(1, 1));
        k.when(k.thread() == 0, [&] { k.write(number, 0, 0, k.constant(u32, 1)); });
        k.barrier();
        k.roles([&] {
          k.loop(0, rounds, 1, [&](Scalar round) {
            k.warpgroups([&](int w) {
              k.in_turn([&] {
                k.when(k.thread() == 64, [&] {
                  auto now = k.read(number, 0, 0) * 2 + (w == 1 ? 1 : 0);
                  k.write(number, 0, 0, now);
                  k.write(seen, round, w, now);
                });
                k.barrier();
              });
            });
          });
        });
      });
      std::vector<std::uint32_t> seen(3 * rounds);
      Device device =
          test::open_engine({.hardware = target, .schedule = schedule, .checks = Checks::all});
      const auto compiled = compile(made, Target::parse(target)->arch);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      const auto done = run(device, *compiled, {1}, out(seen));
      ASSERT_TRUE(done) << done.diags().text();
      std::uint32_t expected = 1;
      for (std::size_t i = 0; i < seen.size(); ++i) {
        expected = expected * 2 + (i % 3 == 1);
        EXPECT_EQ(seen[i], expected) << target << ", schedule " << schedule << ", turn " << i;
      }
    }
}

TEST(Warpgroups, MistakesAreToldAtTheirLine) {
  const auto refused = [](const KernelOptions& options, const std::function<void(Builder&)>& body,
                          std::string_view text) {
    test::expect_told(compile(kernel("wrong", options, body), sm_90a), {text});
  };
  refused(
      {.block = 192}, [](Builder& k) { k.warpgroups([](int) {}); }, "multiple of 128 threads");
  refused(
      {.block = 256, .producers = 4}, [](Builder& k) { k.warpgroups([](int) {}); },
      "outside of roles()");
  refused(
      {.block = 256}, [](Builder& k) { k.warpgroups([&](int) { k.warpgroups([](int) {}); }); },
      "they are divided once");
  refused(
      {.block = 256},
      [](Builder& k) { k.when(k.thread() < 128, [&] { k.warpgroups([](int) {}); }); },
      "expected all threads");
  refused(
      {.block = 256}, [](Builder& k) { k.in_turn([] {}); }, "outside of warpgroups()");
  refused(
      {.block = 256}, [](Builder& k) { k.warpgroups([&](int) { k.in_turn([] {}); }); },
      "outside of roles()");
  for (const int more : {0, 1})
    refused(
        {.block = 256, .producers = 4},
        [=](Builder& k) {
          k.roles([&] {
            k.warpgroups([&](int w) {
              k.in_turn([] {});
              if (w == more) k.in_turn([] {});
            });
          });
        },
        more ? "warpgroup 1 has more of them" : "warpgroup 1 has fewer of them");
  refused(
      {.block = 256},
      [](Builder& k) {
        k.barrier(15, 256);
        k.warpgroups([&](int) { k.barrier(); });
      },
      "barriers 14 to 15 are those of warpgroups()");
  refused(
      {.block = 256, .cluster = 2},
      [](Builder& k) { k.warpgroups([&](int) { k.cluster_barrier(); }); },
      "move it out of warpgroups()");
}

}  // namespace
}  // namespace tartan
