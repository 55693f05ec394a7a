// SPDX-License-Identifier: Apache-2.0
// Products in place, loads of accumulators and stores of what a function gives: their results, and
// that they are the code of assignments.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <functional>

#include "tests/dsl/code_of.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

using test::code_of;

constexpr int m = 128, n = 64, depth = 64, stages = 2;
constexpr Tile tile{.m = m, .n = n, .k = 32, .warps_m = 4, .warps_n = 1};
const char* const both[] = {"sm_80", "sm_90a"};

using Step = std::function<void(Builder& k, const TiledMma& mma, Accumulator& sum, Scalar t,
                                const Shared& a, const Shared& b)>;

// C, of f32, is what `step` makes of the stages of A and B.
Kernel product(const Step& step) {
  return kernel("product", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
    auto A = k.global("A", f16, row_major(m, depth)), B = k.global("B", f16, col_major(depth, n)),
         C = k.global("C", f32, row_major(m, n));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(stages)),
         sB = k.shared("sB", f16, mma.shared_b(stages));
    k.roles([&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = stages}, depth / tile.k,
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {tile.m, tile.k}), sA[stage]);
            k.copy(B.tile({t, 0}, {tile.k, tile.n}), sB[stage]);
          },
          [&](Scalar t, Scalar stage) { step(k, mma, sum, t, sA[stage], sB[stage]); });
      k.store(C, sum);
    });
  });
}

// Operand A of the tile in registers, element by element.
void read_a(Builder& k, Accumulator& to, const Shared& a) {
  to = map(to, [&](Scalar, ElementPlace at) { return k.read(a, at.row, at.col); });
}

struct Pair {
  const char* name;
  Step before, now;
  bool last_only;  // the product of the last k-tile, else the sum of all
};

const Pair pairs[] = {
    {"both in memory",
     [](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a, const Shared& b) {
       sum = mma(sum, a, b);
     },
     [](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a, const Shared& b) {
       mma.add(sum, a, b);
     },
     false},
    {"A loaded",
     [](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a, const Shared& b) {
       sum = mma(sum, mma.load_a(a), b);
     },
     [](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a, const Shared& b) {
       mma.add(sum, mma.load_a(a), b);
     },
     false},
    {"A in a variable",
     [](Builder& k, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a,
        const Shared& b) {
       auto own = mma.variable_a();
       read_a(k, own, a);
       sum = mma(sum, own, b);
     },
     [](Builder& k, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a,
        const Shared& b) {
       auto own = mma.variable_a();
       read_a(k, own, a);
       mma.add(sum, own, b);
     },
     false},
    {"fresh",
     [](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a, const Shared& b) {
       sum = mma.fresh(sum, a, b);
     },
     [](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a, const Shared& b) {
       mma.multiply(sum, a, b);
     },
     true},
    {"fresh, A in registers",
     [](Builder& k, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a,
        const Shared& b) {
       auto own = mma.variable_a();
       read_a(k, own, a);
       sum = mma.fresh(sum, own, b);
     },
     [](Builder& k, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a,
        const Shared& b) {
       auto own = mma.variable_a();
       read_a(k, own, a);
       mma.multiply(sum, own, b);
     },
     true},
    {"fresh, A loaded",
     [](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a, const Shared& b) {
       sum = mma.fresh(sum, mma.load_a(a), b);
     },
     [](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a, const Shared& b) {
       mma.multiply(sum, mma.load_a(a), b);
     },
     true},
};

std::vector<host::f16> numbers(int count, int seed) {
  std::vector<host::f16> out;
  for (int i = 0; i < count; ++i)
    out.push_back(host::f16(static_cast<float>((i * seed + i / 7) % 9 - 4)));
  return out;
}

void expect_product(const char* target, const Kernel& kernel, bool last_only) {
  if (!test::engine_runs(*Target::parse(target))) return;
  const auto compiled = compile(kernel, Target::parse(target)->arch);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_TRUE(compiled->warnings.empty()) << compiled->warnings.text();
  const auto a = numbers(m * depth, 5), b = numbers(n * depth, 7);
  std::vector<float> c(m * n);
  Device device = test::open_engine({.hardware = target, .checks = Checks::all});
  const auto done = run(device, *compiled, {1}, in(a), in(b), out(c));
  ASSERT_TRUE(done) << done.diags().text();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float want = 0;
      for (int x = last_only ? depth - tile.k : 0; x < depth; ++x)
        want += static_cast<float>(a[static_cast<std::size_t>(i * depth + x)]) *
                static_cast<float>(b[static_cast<std::size_t>(j * depth + x)]);
      ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], want)
          << target << ", element " << i << ", " << j;
    }
}

TEST(InPlace, ComputesTheProduct) {
  for (const char* target : both)
    for (const Pair& each : pairs) {
      SCOPED_TRACE(each.name);
      expect_product(target, product(each.now), each.last_only);
    }
}

TEST(InPlace, IsTheCodeOfAssignments) {
  for (const char* target : {"sm_80", "sm_90a", "sm_120a"})
    for (const Pair& each : pairs)
      EXPECT_EQ(code_of(product(each.before), target), code_of(product(each.now), target))
          << target << ", " << each.name;
}

TEST(InPlace, MultiplyIsByWgmma) {
  for (const Pair& each : pairs)
    EXPECT_NE(code_of(product(each.now), "sm_90a").find("wgmma.mma_async"), std::string::npos)
        << each.name;
}

// What load() gave stays, whatever becomes of the accumulator: with wgmma, too, whose products run
// in the accumulator's registers.
TEST(InPlace, LoadIsTheValueNow) {
  for (const char* target : both)
    expect_product(target,
                   product([](Builder&, const TiledMma& mma, Accumulator& sum, Scalar,
                              const Shared& a, const Shared& b) {
                     auto one = mma.accumulator();
                     mma.add(one, a, b);
                     const WarpTile before = one.load();
                     mma.add(one, a, b);
                     sum += one - before;  // A * B, once
                   }),
                   false);
}

// An accumulator that no product is computing is loaded without a wait.
TEST(InPlace, LoadIsTheConversionOfWhatIsThere) {
  const auto stored = [](bool loads) {
    return product([=](Builder&, const TiledMma& mma, Accumulator& sum, Scalar, const Shared& a,
                       const Shared& b) {
      auto one = mma.accumulator();
      mma.add(one, a, b);
      one = map(one, [](Scalar x) { return x + 1; });
      if (loads) sum += one.load() - 1;
      else sum += one - 1;
    });
  };
  for (const char* target : both) {
    EXPECT_EQ(code_of(stored(true), target), code_of(stored(false), target)) << target;
    expect_product(target, stored(true), false);
  }
}

TEST(InPlace, StoresWhatAFunctionGives) {
  const auto stored = [](bool in_one, bool shared) {
    return kernel("stored", {.block = tile.threads()}, [=](Builder& k) {
      auto C = k.global("C", f32, row_major(m, n));
      auto sC = k.shared("sC", f32, row_major(m, n));
      auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
      auto sum = mma.accumulator();
      const auto place = [&](Scalar x, ElementPlace at) {
        return x + k.convert(at.row * n + at.col, f32);
      };
      const auto half = [](Scalar x) { return x * 0.5; };
      sum = map(sum, place);
      if (shared) {
        if (in_one) k.store(sC, sum, half);
        else k.store(sC, map(sum, half));
        k.barrier();
        k.copy(sC, C);
      } else if (in_one) {
        k.store(C, sum, half);
      } else {
        k.store(C, map(sum, half));
      }
    });
  };
  for (const char* target : both)
    for (const bool shared : {false, true}) {
      EXPECT_EQ(code_of(stored(true, shared), target), code_of(stored(false, shared), target));
      if (!test::engine_runs(*Target::parse(target))) continue;
      const auto compiled = compile(stored(true, shared), Target::parse(target)->arch);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      std::vector<float> c(m * n);
      Device device = test::open_engine({.hardware = target, .checks = Checks::all});
      const auto done = run(device, *compiled, {1}, out(c));
      ASSERT_TRUE(done) << done.diags().text();
      for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], 0.5F * static_cast<float>(i));
    }
}

TEST(InPlace, FragmentsAddAndMultiply) {
  const auto fragments = [](bool in_place) {
    return kernel("fragments", {.block = 32}, [=](Builder& k) {
      auto A = k.global("A", f16, row_major(16, 16)), B = k.global("B", f16, col_major(16, 8));
      auto C = k.global("C", f32, row_major(16, 8));
      auto a = k.load(operand_a(m16n8k16, f16), A), b = k.load(operand_b(m16n8k16, f16), B);
      FragmentVariable sum = k.variable(operand_c(m16n8k16, f32));
      if (in_place) {
        k.multiply(sum, a, b), k.add(sum, a, b), k.multiply(sum, a, b), k.add(sum, a, b);
      } else {
        sum = k.mma(a, b, zero(f32)), sum = k.mma(a, b, sum);
        sum = k.mma(a, b, zero(f32)), sum = k.mma(a, b, sum);
      }
      k.store(C, sum);
    });
  };
  for (const char* target : both) {
    EXPECT_EQ(code_of(fragments(true), target), code_of(fragments(false), target)) << target;
    const auto compiled = compile(fragments(true), Target::parse(target)->arch);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const auto a = numbers(16 * 16, 5), b = numbers(8 * 16, 7);
    std::vector<float> c(16 * 8);
    Device device = test::open_engine({.hardware = target, .checks = Checks::all});
    const auto done = run(device, *compiled, {1}, in(a), in(b), out(c));
    ASSERT_TRUE(done) << done.diags().text();
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 8; ++j) {
        float want = 0;
        for (std::size_t x = 0; x < 16; ++x)
          want += 2 * static_cast<float>(a[i * 16 + x]) * static_cast<float>(b[j * 16 + x]);
        ASSERT_EQ(c[i * 8 + j], want) << target;
      }
  }
}

}  // namespace
}  // namespace tartan
