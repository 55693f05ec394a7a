// SPDX-License-Identifier: Apache-2.0
// How often a description runs its callbacks: once each, but for those that this file lists.
#include "tests/dsl/roles_testing.h"

namespace tartan {
namespace {

using namespace roles_testing;

struct Runs {
  int body = 0, fill = 0, use = 0, ahead = 0;
  bool operator==(const Runs&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Runs& runs) {
  return out << "body " << runs.body << ", fill " << runs.fill << ", use " << runs.use << ", ahead "
             << runs.ahead;
}

using Counted = std::function<void(Parts&, Runs&)>;

Runs runs_of(const char* target, const Counted& body, int producers = 4) {
  Runs runs;
  const auto compiled = compile(product(
                                    2 * size,
                                    [&](Parts& p) {
                                      runs = {};  // compile() may describe it for several versions
                                      p.k.roles([&] {
                                        ++runs.body;
                                        body(p, runs);
                                        p.k.store(p.c, p.sum);
                                      });
                                    },
                                    producers),
                                target_of(target));
  EXPECT_TRUE(compiled) << target << ": " << compiled.diags().text();
  return runs;
}

void product_of(Parts& p, Runs& runs, const PipelineOptions& options = {.stages = 2}) {
  p.k.pipeline(
      options, 2, [&](Scalar t, Scalar s) { ++runs.fill, p.fill(t, s); },
      [&](Scalar, Scalar s) { ++runs.use, p.add(s); });
}

TEST(CallbackRuns, OnceForBothRoles) {
  for (const char* target : {"sm_80", "sm_90a"})
    EXPECT_EQ(runs_of(target, [](Parts& p, Runs& runs) { product_of(p, runs); }),
              (Runs{.body = 1, .fill = 1, .use = 1}))
        << target;
}

TEST(CallbackRuns, OnceInALoopOfTiles) {
  for (const char* target : {"sm_80", "sm_90a"})
    EXPECT_EQ(runs_of(target,
                      [](Parts& p, Runs& runs) {
                        p.k.each_tile(size, size, p.mma.tile(),
                                      [&](Scalar, Scalar) { product_of(p, runs); });
                      }),
              (Runs{.body = 1, .fill = 1, .use = 1}))
        << target;
}

TEST(CallbackRuns, OnceWhereTheFillWaitsForThePreviousLaunch) {
  EXPECT_EQ(runs_of("sm_90a",
                    [](Parts& p, Runs& runs) {
                      p.k.griddepcontrol_wait();
                      p.k.pipeline(
                          {.stages = 2}, 2,
                          [&](Scalar t, Scalar s) {
                            ++runs.fill;
                            p.k.copy(p.b.tile({t, 0}, {size, size}), p.sb[s]);
                            p.k.griddepcontrol_wait();
                            p.k.copy(p.a.tile({0, t}, {size, size}), p.sa[s]);
                          },
                          [&](Scalar, Scalar s) { ++runs.use, p.add(s); });
                    }),
            (Runs{.body = 1, .fill = 1, .use = 1}));
}

TEST(CallbackRuns, OnceForBodiesOfLoopsAndConditions) {
  int loops = 0, conditions = 0, others = 0, tiles = 0;
  const Kernel bodies = kernel("bodies", {.block = 32}, [&](Builder& k) {
    loops = conditions = others = tiles = 0;
    auto out = k.global("out", u32, row_major(64, 64));
    const auto count = [&](int& runs) { ++runs, k.write(out, 0, k.thread(), 1); };
    k.loop(0, 4, 1, [&](Scalar) { count(loops); });
    k.when(
        k.lane() < 4, [&] { count(conditions); }, [&] { count(others); });
    k.each_tile(64, 64, {.m = 16, .n = 16}, [&](Scalar, Scalar) { count(tiles); });
  });
  ASSERT_TRUE(compile(bodies, target_of("sm_80")));
  EXPECT_EQ(loops, 1);
  EXPECT_EQ(conditions, 1);
  EXPECT_EQ(others, 1);
  EXPECT_EQ(tiles, 1);
}

TEST(CallbackRuns, OnceForWhatWarpgroupsDoInTurn) {
  int bodies = 0, turns = 0;
  const Kernel two = kernel("two", {.block = 256, .producers = 4}, [&](Builder& k) {
    bodies = turns = 0;
    auto in = k.global("in", f32, row_major(1, 128)), out = k.global("out", f32, row_major(2, 128));
    auto ring = k.shared("ring", f32, RingLayout{row_major(1, 128), 2});
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, 2, [&](Scalar, Scalar s) { k.copy(in, ring[s]); },
          [&](Scalar, Scalar s) {
            k.write(out, k.thread() / 128, k.thread() % 128, k.read(ring[s], 0, k.lane()));
          });
      k.warpgroups([&](int w) {
        ++bodies;
        k.in_turn([&] { ++turns, k.write(out, w, k.thread(), k.constant(f32, 1)); });
      });
    });
  });
  const auto compiled = compile(two, target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(bodies, 2);
  EXPECT_EQ(turns, 2);  // one of each
}

// The exceptions.

TEST(CallbackRuns, APeeledUseIsDescribedForItsFirstTileToo) {
  EXPECT_EQ(
      runs_of("sm_90a",
              [](Parts& p, Runs& runs) { product_of(p, runs, {.stages = 2, .peel_first = true}); }),
      (Runs{.body = 1, .fill = 1, .use = 2}));
}

TEST(CallbackRuns, ABodyOfWarpgroupsIsDescribedForEach) {
  int bodies = 0, fills = 0;
  const Kernel two = kernel("two", {.block = 256, .producers = 4}, [&](Builder& k) {
    bodies = fills = 0;
    const Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1, .products = 2};
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto a = k.global("A", f16, row_major(128, 128)), b = k.global("B", f16, col_major(128, 64)),
         c = k.global("C", f32, row_major(128, 64));
    std::vector<Ring> sa, sb;
    for (int w = 0; w < 2; ++w) {
      sa.push_back(k.shared("sA" + std::to_string(w), f16, mma.shared_a(2)));
      sb.push_back(k.shared("sB" + std::to_string(w), f16, mma.shared_b(2)));
    }
    k.roles([&] {
      k.warpgroups([&](int w) {
        ++bodies;
        const auto of = static_cast<std::size_t>(w);
        auto sum = mma.accumulator();
        k.pipeline(
            {.stages = 2}, 2,
            [&](Scalar t, Scalar s) {
              ++fills;
              k.copy(a.tile({w, t}, {64, 64}), sa[of][s]);
              k.copy(b.tile({t, 0}, {64, 64}), sb[of][s]);
            },
            [&](Scalar, Scalar s) { sum = mma(sum, sa[of][s], sb[of][s]); });
        k.store(c.tile({w, 0}, {64, 64}), sum);
      });
    });
  });
  const auto compiled = compile(two, target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(bodies, 2);
  EXPECT_EQ(fills, 2);
}

// In front of the loop and at the end of each iteration.
TEST(CallbackRuns, AConditionOfLoopWhileIsDescribedTwice) {
  int conditions = 0, bodies = 0;
  const Kernel loops = kernel("loops", {.block = 32}, [&](Builder& k) {
    conditions = bodies = 0;
    auto out = k.global("out", u32, row_major(1, 32));
    auto i = k.variable(k.constant(u32, 0));
    k.loop_while([&] { return ++conditions, Scalar(i) < 3; }, [&] { ++bodies, i = Scalar(i) + 1; });
    k.write(out, 0, k.thread(), i);
  });
  ASSERT_TRUE(compile(loops, target_of("sm_80")));
  EXPECT_EQ(conditions, 2);
  EXPECT_EQ(bodies, 1);
}

// Before the loop, and at the end of each step.
TEST(CallbackRuns, WhatIsAheadOfAStageIsDescribedTwice) {
  for (const int producers : {0, 4})
    EXPECT_EQ(
        runs_of(
            "sm_90a",
            [](Parts& p, Runs& runs) {
              p.k.pipeline(
                  {.stages = 2}, 2, [&](Scalar t, Scalar s) { ++runs.fill, p.fill(t, s); },
                  [&](Scalar) { ++runs.ahead; },
                  [&](Scalar, Scalar s, const std::function<void()>&) { ++runs.use, p.add(s); });
            },
            producers),
        (Runs{.body = 1, .fill = producers ? 1 : 2, .use = 1, .ahead = 2}));
}

// The body of roles(), and with it the kernel's, once more where only the whole of it tells that a
// ring in which a tile is staged is needed afterwards.
TEST(CallbackRuns, AKernelIsDescribedAgainWhoseRingIsReadBehindAStore) {
  for (const bool reads : {false, true}) {
    int bodies = 0, uses = 0;
    constexpr int m = 128, stages = 7;  // 224 of 227 KB: nothing else can be staged
    const Tile tile{.m = m, .n = m, .k = size, .warps_m = 8, .warps_n = 1};
    const Kernel staged = kernel("staged", {.block = 256, .producers = 4}, [&](Builder& k) {
      ++bodies;
      auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
      auto a = k.global("A", f16, row_major(m, 8 * size)),
           b = k.global("B", f16, col_major(8 * size, m)), c = k.global("C", f16, row_major(m, m));
      auto sa = k.shared("sA", f16, mma.shared_a(stages)),
           sb = k.shared("sB", f16, mma.shared_b(stages));
      k.roles([&] {
        auto sum = mma.accumulator();
        k.pipeline(
            {.stages = stages}, 8,
            [&](Scalar t, Scalar s) {
              k.copy(a.tile({0, t}, {m, size}), sa[s]), k.copy(b.tile({t, 0}, {size, m}), sb[s]);
            },
            [&](Scalar, Scalar s) { ++uses, sum = mma(sum, sa[s], sb[s]); });
        k.store(c, convert(sum, f16));
        if (reads) k.write(c, 0, 0, k.read(sa[1], 0, 0));
      });
    });
    const auto compiled = compile(staged, target_of("sm_90a"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(bodies, reads ? 2 : 1);
    EXPECT_EQ(uses, reads ? 2 : 1);
  }
}

// All of it for each version of PTX that may have what the kernel asks for.
TEST(CallbackRuns, AKernelIsDescribedForALaterVersion) {
  int bodies = 0;
  const Kernel asks = kernel("asks", {.block = 32}, [&](Builder& k) {
    ++bodies;
    auto out = k.global("out", u32, row_major(1, 32));
    k.write(out, 0, k.thread(), k.has("cvt.rn.f16x2.e4m3x2") ? 1 : 0);
  });
  ASSERT_TRUE(compile(asks, *Arch::parse("sm_89")));
  EXPECT_EQ(bodies, 2);
}

// All threads fill: in front of the loop for each stage but one, and in it.
TEST(CallbackRuns, WithoutRolesAFillIsDescribedForEachStage) {
  EXPECT_EQ(runs_of(
                "sm_80", [](Parts& p, Runs& runs) { product_of(p, runs); }, 0),
            (Runs{.body = 1, .fill = 2, .use = 1}));
}

}  // namespace
}  // namespace tartan
