// SPDX-License-Identifier: Apache-2.0
// Accumulators in tensor memory: what a body does with them between products gives the numbers that
// it gives with wgmma, and the naive loop's; what cannot be is refused, or explained.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <functional>

#include "tests/support/numbers.h"

namespace tartan {
namespace {

constexpr int m = 128, n = 64, steps = 3, stages = 2;
constexpr Tile tile{.m = m, .n = n, .k = 32, .warps_m = 4, .warps_n = 1};
constexpr int depth = steps * tile.k;

int element_a(int i, int k) { return (i * 7 + k * 3) % 5 - 2; }
int element_b(int k, int j) { return (k * 5 + j) % 7 - 3; }

/// The product of k-tile `t`.
int product(int i, int j, int t) {
  int out = 0;
  for (int k = t * tile.k; k < (t + 1) * tile.k; ++k) out += element_a(i, k) * element_b(k, j);
  return out;
}

struct Parts {
  Builder& k;
  const TiledMma& mma;
  Accumulator& sum;
  Scalar t;
  const Shared& a;
  const Shared& b;
};
using Step = std::function<void(const Parts&)>;
// `warp`: that has row i.
using Expected = std::function<double(int i, int j, int warp)>;

// `ctas`: that multiply together, each with rows of its own.
Kernel kernel_of(const Step& step, const Step& end, int ctas) {
  const KernelOptions launch{.block = tile.threads(), .producers = 4, .cluster = ctas};
  return kernel("product", launch, [=](Builder& k) {
    auto A = k.global("A", f16, row_major(ctas * m, depth)),
         B = k.global("B", f16, col_major(depth, n)),
         C = k.global("C", f32, row_major(ctas * m, n));
    const Scalar row = ctas == 1 ? Scalar(0) : k.block_x();
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile, {.ctas = ctas});
    auto sA = k.shared("sA", f16, mma.shared_a(stages)),
         sB = k.shared("sB", f16, mma.shared_b(stages));
    k.roles([&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = stages}, steps,
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
            k.copy(mma.own_b(B.tile({t, 0}, {tile.k, tile.n})), sB[stage]);
          },
          [&](Scalar t, Scalar stage) {
            step({k, mma, sum, t, sA[stage], sB[stage]});
          });
      if (end) end({k, mma, sum, 0, sA[0], sB[0]});
      sum.each_part([&](const WarpTile& part) { k.store(C.tile({row, 0}, {m, n}), part); });
    });
  });
}

void compare(const Step& step, const Step& end, const Expected& expected) {
  std::vector<int> a, b;
  for (int i = 0; i < 2 * m; ++i)
    for (int k = 0; k < depth; ++k) a.push_back(element_a(i % m, k));
  for (int j = 0; j < n; ++j)
    for (int k = 0; k < depth; ++k) b.push_back(element_b(k, j));
  for (const auto& [target, ctas] :
       {std::pair("sm_80", 1), {"sm_90a", 1}, {"sm_100a", 1}, {"sm_100a", 2}})
    for (const char* const schedule : {"", "1", "2"}) {
      SCOPED_TRACE(fmt::format("{}, {} CTAs, schedule {}", target, ctas, schedule));
      const auto compiled = compile(kernel_of(step, end, ctas), *Target::parse(target));
      ASSERT_TRUE(compiled) << compiled.diags().text();
      EXPECT_EQ(
          compiled->ptx.find(fmt::format("tcgen05.mma.cta_group::{}", ctas)) != std::string::npos,
          std::string_view(target) == "sm_100a");
      DeviceOptions options{.hardware = target, .checks = Checks::all};
      options.schedule = schedule;
      Device device = *Device::open("emulator", options);
      const auto buffer = [&](Type type, const std::vector<int>& values) {
        const auto bytes = testing_numbers::encode(type, values);
        Buffer out = *device.allocate(bytes.size());
        EXPECT_TRUE(out.write(bytes));
        return out;
      };
      const Buffer of_a = buffer(f16, a), of_b = buffer(f16, b),
                   of_c = buffer(f32, std::vector<int>(2 * m * n, 7));
      LoadedKernel kernel = *device.load(compiled->ptx)->kernel("product");
      ASSERT_TRUE(launch(kernel, *compiled, {static_cast<unsigned>(ctas)},
                         Arguments().add(of_a).add(of_b).add(of_c)));
      const auto done = device.synchronize();
      ASSERT_TRUE(done) << done.diags().text();
      for (const Finding& finding : device.findings())
        if (finding.id != "proxy-fence-read")
          ADD_FAILURE() << finding.id << ": " << finding.message;
      const auto got = testing_numbers::decode(f32, *of_c.read_all<std::byte>());
      int wrong = 0;
      // Of wgmma, a warp has 16 rows of each 64; else 32.
      const auto warp_of = [&](int i) {
        return compiled->ptx.find("wgmma") != std::string::npos ? i % 64 / 16 : i / 32;
      };
      for (int i = 0; i < ctas * m; ++i)
        for (int j = 0; j < n; ++j)
          if (const double want = expected(i % m, j, warp_of(i % m)),
              found = got[static_cast<std::size_t>(i * n + j)];
              found != want && wrong++ == 0)
            ADD_FAILURE() << i << ", " << j << ": expected " << want << ", got " << found;
      EXPECT_EQ(wrong, 0);
    }
}

void add(const Parts& p) { p.mma.add(p.sum, p.a, p.b); }

TEST(TensorSums, AddUp) {
  compare(add, {},
          [](int i, int j, int) { return product(i, j, 0) + product(i, j, 1) + product(i, j, 2); });
}

TEST(TensorSums, BeginAnew) {
  compare([](const Parts& p) { p.mma.multiply(p.sum, p.a, p.b); }, {},
          [](int i, int j, int) { return product(i, j, 2); });
}

TEST(TensorSums, AreZeroWithoutAProduct) {
  compare(
      [](const Parts& p) {
        auto apart = p.mma.accumulator();
        p.k.when(p.t > 5, [&] { p.mma.add(apart, p.a, p.b); });
        p.sum += apart.load();
        p.sum = map(p.sum, [](Scalar x) { return x + 1; });
      },
      {}, [](int, int, int) { return 3.0; });
}

TEST(TensorSums, ChangeBetweenProducts) {
  compare(
      [](const Parts& p) {
        add(p);
        p.sum = map(p.sum, [](Scalar x) { return x * 2; });
      },
      {},
      [](int i, int j, int) {
        return product(i, j, 0) * 8 + product(i, j, 1) * 4 + product(i, j, 2) * 2;
      });
}

TEST(TensorSums, ChangeBeforeTheFirstProduct) {
  compare(
      [](const Parts& p) {
        p.k.when(p.t == 0, [&] { p.sum = map(p.sum, [](Scalar x) { return x + 5; }); });
        add(p);
      },
      {},
      [](int i, int j, int) { return 5 + product(i, j, 0) + product(i, j, 1) + product(i, j, 2); });
}

// A condition that holds in some warps, and one that holds in some steps.
TEST(TensorSums, ChangeInSomeWarps) {
  compare(
      [](const Parts& p) {
        add(p);
        p.k.when(p.k.warp() % 2 == 1, [&] { p.sum = map(p.sum, [](Scalar x) { return x + 1; }); });
        p.k.when(p.t == 1, [&] { p.sum = map(p.sum, [](Scalar x) { return x * 2; }); });
      },
      {},
      [](int i, int j, int warp) {
        const int odd = warp % 2;
        return (product(i, j, 0) + product(i, j, 1) + 2 * odd) * 2 + product(i, j, 2) + odd;
      });
}

TEST(TensorSums, ChangeInALoop) {
  compare(
      [](const Parts& p) {
        add(p);
        p.k.loop(0, p.t, 1, [&](Scalar) { p.sum = map(p.sum, [](Scalar x) { return x + 1; }); });
      },
      {},
      [](int i, int j, int) { return product(i, j, 0) + product(i, j, 1) + product(i, j, 2) + 3; });
}

// Of two sums, one has products and the other their total.
TEST(TensorSums, ArePromoted) {
  compare(
      [](const Parts& p) {
        auto part = p.mma.accumulator();
        p.mma.multiply(part, p.a, p.b);
        p.sum += map(part, [&](Scalar x) { return x * 3; });
      },
      {},
      [](int i, int j, int) {
        return 3 * (product(i, j, 0) + product(i, j, 1) + product(i, j, 2));
      });
}

// Part by part: between products, in some warps, and behind an assignment.
TEST(TensorSums, AreUpdated) {
  const auto twice = [](Accumulator& sum) {
    sum.update([](const WarpTile& part) { return map(part, [](Scalar x) { return x * 2; }); });
  };
  compare(
      [=](const Parts& p) {
        add(p);
        twice(p.sum);
        p.k.when(p.k.warp() == 1, [&] { twice(p.sum); });
        p.k.when(p.t == 1, [&] { p.sum = map(p.sum, [](Scalar x) { return x + 1; }); });
        twice(p.sum);
      },
      {},
      [](int i, int j, int warp) {
        const int by = warp == 1 ? 8 : 4;
        int sum = product(i, j, 0) * by;
        sum = ((sum + product(i, j, 1)) * by / 2 + 1) * 2;
        return (sum + product(i, j, 2)) * by;
      });
}

TEST(TensorSums, OldValuesStay) {
  compare(
      [](const Parts& p) {
        const WarpTile before = p.sum.load();
        add(p);
        p.sum = p.sum.load() - before;
      },
      {},
      [](int i, int j, int) {
        // s0 = p0; s1 = (s0 + p1) - s0; s2 = (s1 + p2) - s1.
        return product(i, j, 2);
      });
}

// A from registers goes through tensor memory.
TEST(TensorSums, AInRegisters) {
  compare(
      [](const Parts& p) {
        auto left = p.mma.variable_a();
        left = p.mma.load_a(p.a);
        p.mma.add(p.sum, left, p.b);
      },
      {}, [](int i, int j, int) { return product(i, j, 0) + product(i, j, 1) + product(i, j, 2); });
}

TEST(TensorSums, AfterTheLastProduct) {
  compare(
      add,
      [](const Parts& p) {
        p.k.when(p.k.warp() == 2, [&] { p.sum = map(p.sum, [](Scalar x) { return -x; }); });
      },
      [](int i, int j, int warp) {
        const int all = product(i, j, 0) + product(i, j, 1) + product(i, j, 2);
        return warp == 2 ? -all : all;
      });
}

std::string explained(const Tile& of, const MmaOptions& with = {}, Type type = f16,
                      Type sum = f32) {
  const auto compiled = compile(
      kernel("product", {.block = of.threads(), .producers = 4},
             [=](Builder& k) {
               auto A = k.global("A", type, row_major(of.m, of.k)),
                    B = k.global("B", type, col_major(of.k, of.n)),
                    C = k.global("C", sum, row_major(of.m, of.n));
               auto mma = k.tiled_mma(k.best_mma(type, type, sum), of, with);
               auto sA = k.shared("sA", type, mma.shared_a(1)),
                    sB = k.shared("sB", type, mma.shared_b(1));
               k.roles([&] {
                 auto all = mma.accumulator();
                 k.pipeline(
                     {.stages = 1}, 1,
                     [&](Scalar, Scalar stage) { k.copy(A, sA[stage]), k.copy(B, sB[stage]); },
                     [&](Scalar, Scalar stage) { mma.add(all, sA[stage], sB[stage]); });
                 k.store(C, all);
               });
             }),
      *Target::parse("sm_100a"));
  return compiled ? explain(compiled->choices) : compiled.diags().text();
}

TEST(TensorSums, ExplainWhyNot) {
  const auto has = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(explained({.m = 128, .n = 64, .k = 32, .warps_m = 4, .warps_n = 1}),
      "tcgen05.mma.cta_group::1.kind::f16");
  has(explained({.m = 128, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2}),
      "tcgen05.mma: a warpgroup computes 128 or 64 rows and all columns; use warps_m = 4");
  has(explained({.m = 128, .n = 40, .k = 32, .warps_m = 4, .warps_n = 1}),
      "tcgen05.mma: n = 40: expected a multiple of 16 up to 256");
  has(explained({.m = 128, .n = 64, .k = 32, .warps_m = 4, .warps_n = 1}, {.ctas = 2}),
      "a pair of CTAs: a pair is a cluster of 2 CTAs, the kernel's are of 1");
  has(explained({.m = 128, .n = 64, .k = 32, .warps_m = 4, .warps_n = 1}, {.ctas = 3}),
      "ctas of a tiled MMA: expected 1 or 2, found 3");
}

TEST(TensorSums, AreOfOneCtaOrOfPairs) {
  const Tile of{.m = 128, .n = 64, .k = 32, .warps_m = 4, .warps_n = 1};
  const auto compiled = compile(
      kernel("product", {.block = of.threads(), .producers = 4, .cluster = 2},
             [=](Builder& k) {
               auto A = k.global("A", f16, row_major(of.m, of.k)),
                    B = k.global("B", f16, col_major(of.k, of.n)),
                    C = k.global("C", f32, row_major(of.m, of.n));
               const MmaKind kind = k.best_mma(f16, f16, f32);
               auto pairs = k.tiled_mma(kind, of, {.ctas = 2}), alone = k.tiled_mma(kind, of);
               auto sA = k.shared("sA", f16, alone.shared_a(1)),
                    sB = k.shared("sB", f16, alone.shared_b(1));
               k.roles([&] {
                 auto sum = alone.accumulator();
                 k.pipeline(
                     {.stages = 1}, 1,
                     [&](Scalar, Scalar stage) { k.copy(A, sA[stage]), k.copy(B, sB[stage]); },
                     [&](Scalar, Scalar stage) { alone.add(sum, sA[stage], sB[stage]); });
                 k.store(C, sum);
               });
             }),
      *Target::parse("sm_100a"));
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.diags().text().find("expected ctas = 2, as other products of this kernel"),
            std::string::npos)
      << compiled.diags().text();
}

TEST(TensorSums, TakeAtMostAllColumns) {
  const Tile wide{.m = 128, .n = 256, .k = 32, .warps_m = 4, .warps_n = 1};
  const auto compiled = compile(
      kernel("product", {.block = wide.threads(), .producers = 4},
             [=](Builder& k) {
               auto A = k.global("A", f16, row_major(wide.m, wide.k)),
                    B = k.global("B", f16, col_major(wide.k, wide.n)),
                    C = k.global("C", f32, row_major(wide.m, wide.n));
               auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), wide);
               auto sA = k.shared("sA", f16, mma.shared_a(1)),
                    sB = k.shared("sB", f16, mma.shared_b(1));
               k.roles([&] {
                 auto one = mma.accumulator(), two = mma.accumulator(), three = mma.accumulator();
                 k.pipeline(
                     {.stages = 1}, 1,
                     [&](Scalar, Scalar stage) { k.copy(A, sA[stage]), k.copy(B, sB[stage]); },
                     [&](Scalar, Scalar stage) {
                       for (Accumulator* const each : {&one, &two, &three})
                         mma.add(*each, sA[stage], sB[stage]);
                     });
                 for (Accumulator* const each : {&one, &two, &three})
                   each->each_part([&](const WarpTile& part) { k.store(C, part); });
               });
             }),
      *Target::parse("sm_100a"));
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.diags().text().find("tensor memory: products take 768 columns with this one, "
                                         "expected at most 512; use a smaller tile"),
            std::string::npos)
      << compiled.diags().text();
}

}  // namespace
}  // namespace tartan
