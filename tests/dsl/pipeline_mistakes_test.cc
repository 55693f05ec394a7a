// SPDX-License-Identifier: Apache-2.0
// Mistakes around pipelines: each is told once, at its line, in words about what is wrong there;
// and tiles that are read from an accumulator before its next product.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <functional>

#include "tests/support/engine.h"

namespace tartan {
namespace {

constexpr int size = 64, stages = 3;

// A product of matrices of 64 x 128 and 128 x 64.
struct Parts {
  Builder& k;
  TiledMma mma;
  Global A, B, C;
  Ring sA, sB;
  Accumulator sum;

  void fill(const Scalar& t, const Scalar& stage) {
    k.copy(A.tile({0, t}, {size, size}), sA[stage]);
    k.copy(B.tile({t, 0}, {size, size}), sB[stage]);
  }
  void add(const Scalar& stage) { mma.add(sum, sA[stage], sB[stage]); }
  void multiply(const Scalar& count) {
    k.pipeline(
        {.stages = stages}, count, [&](Scalar t, Scalar s) { fill(t, s); },
        [&](Scalar, Scalar s) { add(s); });
  }
};
using Body = std::function<void(Parts&)>;

Kernel product(const Body& body, int producers) {
  return kernel("product", {.block = 128, .producers = producers}, [=](Builder& k) {
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32),
                           {.m = size, .n = size, .k = size, .warps_m = 4, .warps_n = 1});
    auto A = k.global("A", f16, row_major(size, 2 * size)),
         B = k.global("B", f16, col_major(2 * size, size)),
         C = k.global("C", f32, row_major(size, size));
    auto sA = k.shared("sA", f16, mma.shared_a(stages)),
         sB = k.shared("sB", f16, mma.shared_b(stages));
    Parts parts{k, mma, A, B, C, sA, sB, mma.accumulator()};
    k.roles([&] {
      body(parts);
      k.store(parts.C, parts.sum);
    });
  });
}

// A description's way: all threads fill and use, or producers fill, for mma.sync or wgmma.
struct Way {
  const char* target;
  int producers;
};
constexpr Way common{"sm_80", 0}, roles{"sm_80", 4}, wgmma{"sm_90a", 4};

Result<Compiled> compiled(const Body& body, const Way& way) {
  return compile(product(body, way.producers), Target::parse(way.target)->arch);
}

// The only message is this one. `line`: where, unless 0.
void expect_only(const Body& body, const Way& way, int line, std::string_view text,
                 std::string_view id,
                 const std::source_location& at = std::source_location::current()) {
  SCOPED_TRACE(testing::Message() << "called in line " << at.line() << ", " << way.target << ", "
                                  << way.producers << " producers");
  const auto got = compiled(body, way);
  ASSERT_FALSE(got) << "nothing was refused";
  const std::vector<Diag> all(got.diags().begin(), got.diags().end());
  EXPECT_EQ(all.size(), 1u) << got.diags().text();
  EXPECT_NE(all[0].message.find(text), std::string::npos) << all[0].message;
  EXPECT_EQ(all[0].id, id) << all[0].message;
  if (line) {
    EXPECT_EQ(all[0].place.line, line) << all[0].message;
  }
}

TEST(PipelineMistakes, AProductInAFillCallback) {
  int line = 0;
  const auto described = [&line](bool used) {
    return [&line, used](Parts& p) {
      p.k.pipeline(
          {.stages = stages}, 2,
          [&](Scalar t, Scalar s) {
            p.fill(t, s);
            line = __LINE__ + 1;
            p.mma.add(p.sum, p.sA[s], p.sB[s]);
          },
          [&](Scalar, Scalar s) {
            if (used) p.add(s);
          });
    };
  };
  for (const bool used : {false, true}) {
    for (const Way& way : {roles, wgmma})
      expect_only(described(used), way, line, "product in a fill callback: expected it in the use",
                  "wrong-role");
    EXPECT_GT(line, 0);
    expect_only(described(used), common, line,
                "product of sA in the fill callback that copies to it: expected it in the use",
                "unsynchronized-tile");
  }
}

// All threads may multiply what is there when they fill.
TEST(PipelineMistakes, AProductOfOtherMemoryIsNone) {
  const auto got = compiled(
      [](Parts& p) {
        auto a = p.k.shared("a", f16, p.mma.shared_a()), b = p.k.shared("b", f16, p.mma.shared_b());
        p.k.copy(p.A.tile({0, 0}, {size, size}), a[0]);
        p.k.copy(p.B.tile({0, 0}, {size, size}), b[0]);
        p.k.barrier();
        p.k.pipeline(
            {.stages = stages}, 2,
            [&](Scalar t, Scalar s) {
              p.fill(t, s);
              p.mma.add(p.sum, a[0], b[0]);
            },
            [&](Scalar, Scalar s) { p.add(s); });
      },
      common);
  EXPECT_TRUE(got) << got.diags().text();
}

TEST(PipelineMistakes, ACountThatIsNoNumberOfKTiles) {
  for (const Way& way : {common, roles, wgmma}) {
    const auto refused = [&](const std::function<Scalar(Builder&)>& count, std::string_view text,
                             std::string_view id) {
      expect_only([&](Parts& p) { p.multiply(count(p.k)); }, way, 0, text, id);
    };
    refused([](Builder& k) { return k.constant(f32, 2); },
            "the count of a pipeline: expected an integer, found a value of type f32",
            "scalar-type");
    refused([](Builder&) { return Scalar(2.5F); },
            "the count of a pipeline: expected an integer, found the constant 2.5", "scalar-type");
    refused([](Builder& k) { return k.thread() < 3; },
            "the count of a pipeline: expected an integer, found a value of type pred",
            "scalar-type");
    refused([](Builder&) { return Scalar(-1); },
            "the count of a pipeline: expected 0 or more, found -1", "immediate-range");
    refused([](Builder& k) { return k.constant(u32, 2.5); }, "constant 2.5 of type u32",
            "scalar-type");
  }
}

TEST(PipelineMistakes, CallbacksOfAWrongCountAreToldOf) {
  const auto got = compiled(
      [](Parts& p) {
        p.k.pipeline(
            {.stages = stages}, p.k.constant(f32, 2), [&](Scalar t, Scalar s) { p.fill(t, s); },
            [&](Scalar, Scalar s) { p.mma.add(p.sum, p.sA[s], p.sB[stages]); });
      },
      wgmma);
  ASSERT_FALSE(got);
  EXPECT_EQ(std::distance(got.diags().begin(), got.diags().end()), 2) << got.diags().text();
}

// What only consumers have.
TEST(PipelineMistakes, ACountThatProducersCannotCompute) {
  for (const Way& way : {roles, wgmma}) {
    expect_only([](Parts& p) { p.multiply(p.k.thread() / 64); }, way, 0,
                "the count of a pipeline needs the index of a thread", "wrong-role");
    expect_only(
        [](Parts& p) {
          auto count = p.k.variable(p.k.constant(u32, 2));
          p.k.loop(0, 2, 1, [&](Scalar) {
            p.k.pipeline(
                {.stages = stages}, count, [&](Scalar t, Scalar s) { p.fill(t, s); },
                [&](Scalar, Scalar s) {
                  p.add(s);
                  count = Scalar(count) - 1;
                });
          });
        },
        way, 0, "the count of a pipeline needs a variable that a use callback changes",
        "wrong-role");
    expect_only([](Parts& p) { p.multiply(p.k.ptx("mov.u32 %0, 2;", {u32}, {})[0]); }, way, 0,
                "the count of a pipeline needs a result that producer warps do not have",
                "wrong-role");
  }
}

TEST(PipelineMistakes, AStageThatTheRingDoesNotHave) {
  int line = 0;
  for (const Way& way : {common, roles, wgmma}) {
    const auto used = [&](Parts& p) {
      p.k.pipeline(
          {.stages = stages}, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
          [&](Scalar, Scalar s) {
            line = __LINE__ + 1;
            p.mma.add(p.sum, p.sA[s], p.sB[3]);
          });
    };
    (void)compiled(used, way);
    expect_only(used, way, line, "stage index out of bounds: expected 0 to 2 for sB, found 3",
                "tile-bounds");
    const auto filled = [&](Parts& p) {
      p.k.pipeline(
          {.stages = stages}, 2,
          [&](Scalar t, Scalar s) {
            p.k.copy(p.A.tile({0, t}, {size, size}), p.sA[s]);
            line = __LINE__ + 1;
            p.k.copy(p.B.tile({t, 0}, {size, size}), p.sB[-1]);
          },
          [&](Scalar, Scalar s) { p.add(s); });
    };
    (void)compiled(filled, way);
    expect_only(filled, way, line, "stage index out of bounds: expected 0 to 2 for sB, found -1",
                "tile-bounds");
  }
}

// ---- Tiles that are read before the next product of their accumulator.

// A * B, added twice, of each k-tile the first half alone: the second products are taken off again,
// by the difference to what the sum was before them.
float corner(const Way& way, const std::function<WarpTile(Accumulator&)>& read) {
  const auto got = compiled(
      [&](Parts& p) {
        p.k.pipeline(
            {.stages = stages}, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
            [&](Scalar, Scalar s) {
              p.add(s);
              const WarpTile old = read(p.sum);
              p.add(s);
              p.sum = map(p.sum, old,
                          [](Scalar now, Scalar before) { return before - (now - before) * 2; });
            });
      },
      way);
  EXPECT_TRUE(got) << got.diags().text();
  if (!got) return 0;
  EXPECT_TRUE(got->warnings.empty()) << got->warnings.text();
  std::vector<float> c(size * size);
  const std::vector<host::f16> ones(2 * size * size, host::f16(1.0F));
  Device device = test::open_engine({.hardware = way.target, .checks = Checks::all});
  const auto done = run(device, *got, {1}, in(ones), in(ones), out(c));
  EXPECT_TRUE(done) << done.diags().text();
  return c[0];
}

TEST(TilesOfAccumulators, KeepTheirValueAcrossTheNextProduct) {
  for (const Way& way : {roles, wgmma}) {
    if (!test::engine_runs(*Target::parse(way.target))) continue;
    SCOPED_TRACE(way.target);
    const float loaded = corner(way, [](Accumulator& sum) { return sum.load(); });
    EXPECT_EQ(corner(way, [](Accumulator& sum) { return WarpTile(sum); }), loaded);
    // 64 after the first product, 128 after the second: 64 - 2 * 64; and so on from there.
    EXPECT_EQ(loaded, -128.0F);
  }
}

}  // namespace
}  // namespace tartan
