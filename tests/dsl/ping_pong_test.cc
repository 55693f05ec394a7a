// SPDX-License-Identifier: Apache-2.0
// Warpgroups whose pipelines take turns, in kernels of a user: products whose turns differ in their
// number of k-tiles, stages that some warpgroups read by ordinary loads, several rings, orders of
// seeds; what is refused.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <algorithm>
#include <source_location>
#include <string>
#include <vector>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

constexpr int tile_k = 32;
const Arch sm_90a = *Arch::parse("sm_90a");

struct Turns {
  int groups = 2, stages = 3;
  Tile tile{.m = 64, .n = 64, .k = tile_k, .warps_m = 4, .warps_n = 1};
};

// C = A * B of a staircase: tile row i of A has elements in its first i k-tiles only, and the
// others are not read. `first`: the first column of A, which warpgroup 1 takes from the stages.
Kernel staircase(const Turns& with) {
  return kernel("staircase", {.block = 128 * with.groups, .producers = 4}, [=](Builder& k) {
    Tile tile = with.tile;
    tile.products = with.groups;
    auto m = k.param("m", s32), n = k.param("n", s32, 16), depth = k.param("depth", s32, 16);
    auto A = k.global("A", f16, row_major(m, depth)), B = k.global("B", f16, col_major(depth, n)),
         C = k.global("C", f32, row_major(m, n)),
         first = k.global("first", f16, row_major(ceil_div(n, tile.n), m));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(with.stages)),
         sB = k.shared("sB", f16, mma.shared_b(with.stages));
    k.roles([&] {
      const Scalar across = ceil_div(n, tile.n), down = ceil_div(m, with.groups * tile.m);
      k.loop(k.block_x(), across * down, k.blocks_x(), [&](Scalar number) {
        k.warpgroups([&](int w) {
          const Scalar row = number / across * with.groups + w, col = number % across;
          auto sum = mma.accumulator();
          const auto fill = [&](Scalar t, Scalar stage) {
            k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
            k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
          };
          const auto use = [&](Scalar t, Scalar stage) {
            sum = mma(sum, sA[stage], sB[stage]);
            if (w != 1) return;
            const Scalar i = k.thread(), place = row * tile.m + i;
            k.when((t == 0) & (i < tile.m) & (place < k.convert(m, u32)),
                   [&] { k.write(first, col, place, k.read(sA[stage], i, 0)); });
          };
          const Scalar count = minimum(row, k.convert(ceil_div(depth, tile.k), u32));
          k.pipeline({.stages = with.stages, .turns = true}, count, fill, use);
          k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
        });
      });
    });
  });
}

void expect_staircase(const char* target, const Turns& with, int depth,
                      const std::string& schedule = {}) {
  SCOPED_TRACE(testing::Message() << target << ", " << with.groups << " warpgroups, " << with.stages
                                  << " stages, depth " << depth << ", schedule '" << schedule
                                  << "'");
  if (!test::engine_runs(*Target::parse(target))) return;
  const auto compiled = compile(staircase(with), Target::parse(target)->arch);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  Device device =
      test::open_engine({.hardware = target, .schedule = schedule, .checks = Checks::all});
  constexpr int m = 328, n = 144, across = (n + 63) / 64;
  const auto at = [](int i, int j, int columns) {
    return static_cast<std::size_t>(i * columns + j);
  };
  // What is not read is not zero: a turn of too many k-tiles shows.
  std::vector<host::f16> a, b;
  for (int i = 0; i < m * depth; ++i) a.emplace_back(static_cast<float>(i * 7 % 13 - 6));
  for (int i = 0; i < n * depth; ++i) b.emplace_back(static_cast<float>(i * 5 % 7 - 3));
  const host::f16 untouched(99.0F);
  std::vector<host::f16> first(static_cast<std::size_t>(across * m), untouched);
  std::vector<float> c(static_cast<std::size_t>(m * n));
  const auto done = run(device, *compiled, {2}, m, n, depth, in(a), in(b), out(c), in_out(first));
  ASSERT_TRUE(done) << done.diags().text();
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    const int row = i / 64, ends = std::min(row * tile_k, depth);
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int t = 0; t < ends; ++t)
        sum += static_cast<float>(a[at(i, t, depth)]) * static_cast<float>(b[at(j, t, depth)]);
      wrong += c[at(i, j, n)] != sum;
    }
    for (int j = 0; j < across; ++j) {
      const bool taken = row % with.groups == 1 && ends > 0;
      wrong += static_cast<float>(first[at(j, i, m)]) !=
               static_cast<float>(taken ? a[at(i, 0, depth)] : untouched);
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(PingPong, TurnsOfDifferentLengths) {
  for (const char* target : {"sm_80", "sm_89", "sm_90a"})
    for (const int stages : {1, 2, 3, 4})
      for (const int depth : {16, 80, 144}) expect_staircase(target, {.stages = stages}, depth);
  expect_staircase("sm_90a", {.groups = 3}, 144);
  expect_staircase("sm_80", {.tile = {.m = 64, .n = 64, .k = tile_k, .warps_m = 2, .warps_n = 2}},
                   144);
}

TEST(PingPong, InOrdersOfSeeds) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const char* seed : {"1", "2", "3", "4", "5", "6"})
      expect_staircase(target, {.groups = seed[0] % 2 ? 2 : 3}, 144, seed);
}

TEST(PingPong, MultipliesByWgmmaAndLoadsByTma) {
  const auto compiled = compile(staircase({}), sm_90a);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(compiled->ptx.find("wgmma.mma_async"), std::string::npos);
  EXPECT_NE(compiled->ptx.find("cp.async.bulk.tensor"), std::string::npos);
}

// y = 3 x, z = 5 x: two rings, one after the other, of stages that threads read, and a pipeline of
// each warpgroup between them.
TEST(PingPong, SeveralRings) {
  constexpr int steps = 7, groups = 2;
  for (const char* target : {"sm_80", "sm_90a"})
    for (const char* schedule : {"", "1", "2", "3"}) {
      SCOPED_TRACE(testing::Message() << target << ", schedule '" << schedule << "'");
      if (!test::engine_runs(*Target::parse(target))) continue;
      const Kernel made = kernel("rings", {.block = 128 * groups, .producers = 1}, [](Builder& k) {
        auto x = k.global("x", f32, row_major(groups * steps, 128)),
             y = k.global("y", f32, row_major(groups * steps, 128)),
             z = k.global("z", f32, row_major(groups * steps, 128)),
             u = k.global("u", f32, row_major(groups * steps, 128));
        auto r1 = k.shared("r1", f32, RingLayout{row_major(1, 128), 2}),
             r2 = k.shared("r2", f32, RingLayout{row_major(1, 128), 3});
        std::vector<Ring> own;
        for (int w = 0; w < groups; ++w)
          own.push_back(k.shared("own" + std::to_string(w), f32, RingLayout{row_major(1, 128), 2}));
        k.roles([&] {
          k.warpgroups([&](int w) {
            const auto i = static_cast<std::size_t>(w);
            const auto fill = [&](const Ring& to) {
              return [&, to](Scalar t, Scalar stage) {
                k.copy(x.tile({t + w * steps, 0}, {1, 128}), to[stage]);
              };
            };
            const auto times = [&](double factor, const Ring& from, const Global& to) {
              return [&, factor, from, to](Scalar t, Scalar stage) {
                k.write(to, t + w * steps, k.thread(), k.read(from[stage], 0, k.thread()) * factor);
              };
            };
            k.pipeline({.stages = 2, .turns = true}, steps, fill(r1), times(3, r1, y));
            k.pipeline({.stages = 2}, steps, fill(own[i]), times(7, own[i], u));
            k.pipeline({.stages = 3, .turns = true}, steps - w, fill(r2), times(5, r2, z));
          });
        });
      });
      std::vector<float> x(128 * groups * steps), y(x.size()), z(x.size(), -1.0F), u(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
      const auto compiled = compile(made, Target::parse(target)->arch);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      Device device =
          test::open_engine({.hardware = target, .schedule = schedule, .checks = Checks::all});
      const auto done = run(device, *compiled, {1}, in(x), out(y), in_out(z), out(u));
      ASSERT_TRUE(done) << done.diags().text();
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(y[i], 3 * x[i]) << i;
        EXPECT_EQ(u[i], 7 * x[i]) << i;
        const bool last = i / 128 == groups * steps - 1;  // of the shorter turn
        EXPECT_EQ(z[i], last ? -1 : 5 * x[i]) << i;
      }
    }
}

// ---- What is refused. A ring of 3 stages of 64 floats in each, filled from `x`.

struct Wrong {
  explicit Wrong(Builder& builder)
      : k(builder),
        x(k.global("x", f32, row_major(64, 128))),
        s(k.shared("s", f32, RingLayout{row_major(1, 128), 3})),
        other(k.shared("other", f32, RingLayout{row_major(1, 128), 3})) {}

  void turn(const Ring& to, int stages = 3, Builder::Here at = Builder::Here::current()) {
    k.pipeline(
        {.stages = stages, .turns = true}, 4, filling(to), [&](Scalar, Scalar) {}, at);
  }
  std::function<void(Scalar, Scalar)> filling(const Ring& to) {
    return [this, to](Scalar t, Scalar stage) { k.copy(x.tile({t, 0}, {1, 128}), to[stage]); };
  }

  Builder& k;
  Global x;
  Ring s, other;
};

Result<Compiled> compiled_wrong(const std::function<void(Wrong&, int)>& body, int block = 256,
                                const char* target = "sm_90a") {
  return compile(kernel("wrong", {.block = block, .producers = 4},
                        [=](Builder& k) {
                          Wrong all(k);
                          k.roles([&] { k.warpgroups([&](int w) { body(all, w); }); });
                        }),
                 Target::parse(target)->arch);
}

void refused(const Result<Compiled>& compiled, std::string_view text,
             std::source_location at = std::source_location::current()) {
  test::expect_told(compiled, {text}, at);
}

TEST(PingPong, MistakesAreToldAtTheirLine) {
  const auto alone = [](const KernelOptions& options, const std::function<void(Wrong&)>& body) {
    return compile(kernel("wrong", options,
                          [=](Builder& k) {
                            Wrong all(k);
                            body(all);
                          }),
                   sm_90a);
  };
  refused(alone({.block = 256}, [](Wrong& all) { all.turn(all.s); }),
          "pipeline({.turns = true}) outside of warpgroups()");
  refused(alone({.block = 256, .producers = 4},
                [](Wrong& all) { all.k.roles([&] { all.turn(all.s); }); }),
          "pipeline({.turns = true}) outside of warpgroups()");
  refused(
      alone({.block = 256}, [](Wrong& all) { all.k.warpgroups([&](int) { all.turn(all.s); }); }),
      "pipeline({.turns = true}) outside of roles()");
  refused(compiled_wrong([](Wrong& all, int) { all.turn(all.s); }, 256, "sm_75"),
          "its mbarriers need sm_80");
  refused(compiled_wrong([](Wrong& all, int) { all.turn(all.s); }, 128),
          "expected at least 2 warpgroups, the kernel has 128 consumer threads");
  refused(compiled_wrong([](Wrong& all, int w) { all.turn(all.s, w ? 2 : 3); }),
          "warpgroup 1 has 2 stages, warpgroup 0 has 3; they have one ring");
  refused(compiled_wrong([](Wrong& all, int) { all.turn(all.s, 0); }), "expected 1 to 256");
  refused(compiled_wrong([](Wrong& all, int) {
            all.k.pipeline({.stages = 3, .turns = true}, 4, all.filling(all.s), nullptr);
          }),
          "a pipeline");
  refused(compiled_wrong([](Wrong& all, int) {
            all.k.pipeline({.stages = 3, .turns = true}, 4, nullptr, [](Scalar, Scalar) {});
          }),
          "a pipeline");
}

TEST(PingPong, RunsWithoutAheadAndPeeling) {
  const auto with = [](const PipelineOptions& options, const std::function<void(Scalar)>& ahead) {
    return compiled_wrong([=](Wrong& all, int) {
      all.k.pipeline(options, 4, all.filling(all.s), ahead,
                     [](Scalar, Scalar, const std::function<void()>& next) { next(); });
    });
  };
  refused(with({.stages = 3, .turns = true}, [](Scalar) {}),
          "pipeline({.turns = true}): expected no ahead callback");
  refused(with({.stages = 3, .peel_first = true, .turns = true}, {}),
          "pipeline({.turns = true}): expected no .peel_first");
}

TEST(PingPong, WarpgroupsTakeTheSameTurns) {
  for (const int more : {0, 1})
    refused(compiled_wrong([=](Wrong& all, int w) {
              all.turn(all.s);
              if (w == more) all.turn(all.other);
            }),
            more ? "pipeline({.turns = true}): warpgroup 1 has more of them than warpgroup 0"
                 : "pipeline({.turns = true}): warpgroup 1 has fewer of them than warpgroup 0");
  refused(compiled_wrong([](Wrong& all, int w) {
            if (w == 0) all.turn(all.s);
            all.k.in_turn([] {});
            if (w == 1) all.turn(all.s);
          }),
          "turn 1 in the body of warpgroup 1 is in_turn(), in that of warpgroup 0 "
          "pipeline({.turns = true})");
}

TEST(PingPong, ARingBelongsToOneCall) {
  refused(compiled_wrong([](Wrong& all, int) {
            all.turn(all.s);
            all.turn(all.s);
          }),
          "s is also filled by another pipeline");
  refused(compiled_wrong([](Wrong& all, int) {
            all.k.pipeline({.stages = 3}, 4, all.filling(all.other),
                           [&](Scalar, Scalar) { all.turn(all.s); });
          }),
          "pipeline inside another pipeline's stage");
}

TEST(PingPong, StagesAreFilledByTheSameMeans) {
  const auto by = [](const std::function<void(Wrong&, Scalar, Scalar)>& second) {
    return compiled_wrong([=](Wrong& all, int w) {
      if (w == 0) return all.turn(all.s);
      all.k.pipeline(
          {.stages = 3, .turns = true}, 4, [&](Scalar t, Scalar stage) { second(all, t, stage); },
          [](Scalar, Scalar) {});
    });
  };
  refused(by([](Wrong& all, Scalar t, Scalar stage) {
            all.k.copy_rows(all.x, all.s[stage], [=](Scalar) { return t; });
          }),
          "stages of warpgroup 1 are filled by copies of threads, those of warpgroup 0 by TMA");
  refused(by([](Wrong&, Scalar, Scalar) {}), "stages of warpgroup 1 are filled by nothing");
}

TEST(PingPong, TheLineIsTheCallers) {
  int line = 0;
  const auto compiled = compiled_wrong([&](Wrong& all, int w) {
    line = static_cast<int>(std::source_location::current().line()) + 1;
    all.turn(all.s, w ? 2 : 3);
  });
  ASSERT_FALSE(compiled);
  EXPECT_EQ((*compiled.diags().begin()).place.line, line) << compiled.diags().text();
}

// Warpgroup 1 wants a second turn, which warpgroup 0 never passes on.
TEST(PingPong, ATurnTooManyIsADeadlock) {
  if (test::on_gpu()) GTEST_SKIP();
  const auto compiled = compiled_wrong([](Wrong& all, int w) {
    all.k.loop(0, all.k.block_x() + 1 + w, 1, [&](Scalar) { all.turn(all.s); });
  });
  ASSERT_TRUE(compiled) << compiled.diags().text();
  Device device = *Device::open("emulator", {.hardware = "sm_90a"});
  const std::vector<float> x(64 * 128);
  const auto done = run(device, *compiled, {1}, in(x));
  ASSERT_FALSE(done);
  EXPECT_EQ((*done.diags().begin()).id, "deadlock") << done.diags().text();
}

}  // namespace
}  // namespace tartan
