// SPDX-License-Identifier: Apache-2.0
// Where stores of tiles are staged when rings leave no room beside them: in a ring that no pipeline
// needs any more, if all consumers store there together.
#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

constexpr int size = 128, step = 64, steps = 8, stages = 7;  // 224 of 227 KiB

struct Parts {
  Builder& k;
  const Global& flags;
  std::function<void()> multiply;         // adds to `sum`
  std::function<void(int matrix)> store;  // to that matrix of C
  std::function<void()> read;             // writes the last k-tile's first element to C's end
};
using Body = std::function<void(Parts&)>;

Kernel product(const Body& body) {
  const Tile tile{.m = size, .n = size, .k = step, .warps_m = 8, .warps_n = 1};
  return kernel("product", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
    auto a = k.global("a", f16, row_major(size, step * steps)),
         b = k.global("b", f16, col_major(step * steps, size)),
         c = k.global("c", f16, row_major(2 * size, size)),
         flags = k.global("flags", u32, row_major(1, 4));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sa = k.shared("sa", f16, mma.shared_a(stages)),
         sb = k.shared("sb", f16, mma.shared_b(stages));
    k.roles([&] {
      auto sum = mma.accumulator();
      Parts parts{k, flags,
                  [&] {
                    k.pipeline(
                        {.stages = stages}, steps,
                        [&](Scalar t, Scalar stage) {
                          k.copy(a.tile({0, t}, {size, step}), sa[stage]);
                          k.copy(b.tile({t, 0}, {step, size}), sb[stage]);
                        },
                        [&](Scalar, Scalar stage) { sum = mma(sum, sa[stage], sb[stage]); });
                  },
                  [&](int matrix) {
                    k.store(c.tile({matrix, 0}, {size, size}), convert(sum, f16));
                  },
                  [&] {
                    k.when(k.thread() == 0, [&] {
                      k.write(c, 2 * size - 1, size - 1, k.read(sa[(steps - 1) % stages], 0, 0));
                    });
                  }};
      body(parts);
    });
  });
}

// `times`: of the product in each matrix of C; -1: it is not stored.
void expect_results(const Compiled& compiled, int first, int second) {
  std::vector<host::f16> a, b, c(2 * size * size, host::f16(-5));
  std::vector<std::uint32_t> flags(4, 1);
  for (int i = 0; i < size * step * steps; ++i) {
    a.emplace_back(static_cast<float>(i % 7 % 3 - 1));
    b.emplace_back(static_cast<float>(i % 5 % 3 - 1));
  }
  Device device = test::open_engine({.hardware = "sm_90a", .checks = Checks::all});
  const auto done = run(device, compiled, {1}, in(a), in(b), in_out(c), in(flags));
  ASSERT_TRUE(done) << done.diags().text();
  for (const Finding& each : device.findings()) ADD_FAILURE() << each.message;
  int wrong = 0;
  for (int row = 0; row < 2 * size; row += 2)
    for (int col = 0; col < size; col += 2) {
      float sum = 0;
      for (int x = 0; x < step * steps; ++x)
        sum += static_cast<float>(a[static_cast<std::size_t>(row % size * step * steps + x)]) *
               static_cast<float>(b[static_cast<std::size_t>(col * step * steps + x)]);
      const int times = row < size ? first : second;
      const float want = times < 0 ? -5 : static_cast<float>(times) * sum;
      wrong += static_cast<float>(c[static_cast<std::size_t>(row * size + col)]) !=
               static_cast<float>(host::f16(want));
    }
  EXPECT_EQ(wrong, 0);
  const auto last = static_cast<float>(c.back());
  if (second < 0 && last != -5) {
    EXPECT_EQ(last, static_cast<float>(a[step * (steps - 1)]));
  }
}

void expect_staged(bool staged, const Body& body, int first, int second = -1) {
  if (!test::engine_runs(*Target::parse("sm_90a"))) GTEST_SKIP();
  const auto compiled = compile(product(body), *Arch::parse("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const std::string told = explain(compiled->choices);
  EXPECT_EQ(told.find("store to c: cp.async.bulk.tensor") != std::string::npos, staged) << told;
  EXPECT_EQ(told.find("no shared memory is left to stage it") == std::string::npos, staged) << told;
  expect_results(*compiled, first, second);
}

TEST(Staging, OfTheLastProductIsInItsRing) {
  expect_staged(
      true, [](Parts& p) { p.multiply(), p.store(0); }, 1);
  expect_staged(
      true, [](Parts& p) { p.multiply(), p.store(0), p.store(1); }, 1, 1);
}

TEST(Staging, OfAllThreadsThatAConditionTakesAlikeIsInARing) {
  expect_staged(
      true, [](Parts& p) { p.multiply(), p.k.when(p.k.block_x() < 1, [&] { p.store(0); }); }, 1);
}

// Only the whole description tells.
TEST(Staging, LeavesARingAloneThatIsReadAfterwards) {
  expect_staged(
      false, [](Parts& p) { p.multiply(), p.store(0), p.read(); }, 1);
}

TEST(Staging, InALoopLeavesTheRingAlone) {
  expect_staged(
      false, [](Parts& p) { p.k.loop(0, 2, 1, [&](Scalar) { p.multiply(), p.store(0); }); }, 2);
}

// Consumers meet before they write to a ring: where some might not come, they would wait forever.
TEST(Staging, WhereThreadsMayDifferLeavesTheRingAlone) {
  expect_staged(
      false,
      [](Parts& p) {
        p.multiply();
        p.k.when(p.k.read(p.flags, 0, p.k.warp() % 4) == 1, [&] { p.store(0); });
      },
      1);
  expect_staged(
      false,
      [](Parts& p) {
        p.multiply(), p.store(0);
        p.k.when(p.k.read(p.flags, 0, 0) == 1, [&] { p.store(1); });
      },
      1, 1);
}

}  // namespace
}  // namespace tartan
