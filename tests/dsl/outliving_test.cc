// SPDX-License-Identifier: Apache-2.0
// Handles that outlive their description, which was refused, or whose compilation is over: using
// them, in no description or in another kernel's, gives a message or nothing, and never crashes.
#include <optional>

#include "tests/dsl/refusals.h"

namespace tartan {
namespace {

constexpr int size = 64;

// What a description leaves behind.
struct Kept {
  std::optional<TiledMma> mma;
  std::vector<Accumulator> sums;
  std::vector<WarpTile> tiles;
  std::vector<Fragment> fragments;
  std::vector<FragmentVariable> fragment_variables;
  std::vector<Scalar> numbers;  // the last ones are stages
  std::vector<ScalarVariable> variables;
  std::vector<RowValues> rows;
  std::vector<Ring> rings;
  std::vector<Global> matrices;
  std::vector<Builder> builders;
};

Kernel leaving(Kept& kept, bool sound) {
  return kernel("leaving", {.block = 128, .producers = 4}, [&kept, sound](Builder& k) {
    kept = {};
    const Tile tile{.m = size, .n = size, .k = size, .warps_m = 4, .warps_n = 1};
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto a = k.global("A", f16, row_major(size, size)),
         b = k.global("B", f16, col_major(size, size)),
         c = k.global("C", f32, row_major(size, size));
    auto sa = k.shared("sA", f16, mma.shared_a(2)), sb = k.shared("sB", f16, mma.shared_b(2));
    auto sum = mma.accumulator();
    kept.mma = mma, kept.sums.push_back(mma.accumulator());
    kept.rings = {sa, sb}, kept.matrices = {a, c};
    kept.variables.push_back(k.variable(k.constant(s32, 0))), kept.builders = {k};
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, 1,
          [&](Scalar t, Scalar s) {
            k.copy(a.tile({0, t}, {size, size}), sa[s]),
                k.copy(b.tile({t, 0}, {size, size}), sb[s]);
          },
          [&](Scalar t, Scalar s) {
            sum = mma(sum, sa[s], sb[s]);
            kept.numbers = {k.lane(), t, s};
          });
      kept.tiles = {sum}, kept.rows = {row_sum(sum)};
      kept.fragments = {kept.tiles[0].fragment(0, 0)};
      kept.fragment_variables.push_back(k.variable(kept.fragments[0].kind()));
      k.store(c, sum);
      if (!sound) k.write(c, size, 0, k.constant(f32, 1));
    });
  });
}

// Every kind of use. `k`: of another kernel, if there is one.
void use(Kept& kept, Builder* k) {
  const Scalar stage = kept.numbers.back(), sum = stage + kept.numbers[0] * 2;
  std::ignore = maximum(sum, 3), std::ignore = select(sum < 3, sum, stage), std::ignore = -sum;
  kept.variables[0] = sum, std::ignore = Scalar(kept.variables[0]) + 1;
  for (Ring& each : kept.rings) {
    const Shared one = each[stage], first = each[0];
    std::ignore = one.tile({sum, 0}, {16, 16});
    kept.sums[0] = (*kept.mma)(kept.sums[0], one, first);
    kept.mma->add(kept.sums[0], one, first);
  }
  std::ignore = kept.mma->accumulator(), std::ignore = kept.mma->shared_a(2);
  std::ignore = map(kept.tiles[0], [](Scalar x) { return x + 1; });
  std::ignore = map_rows(kept.tiles[0], kept.rows[0], [](Scalar x, Scalar y) { return x * y; });
  std::ignore = convert(kept.tiles[0], f16), std::ignore = row_maximum(kept.tiles[0]);
  std::ignore = kept.tiles[0] + WarpTile(kept.sums[0]);
  kept.fragment_variables[0] = kept.fragments[0];
  std::ignore = Fragment(kept.fragment_variables[0]);
  for (Global& each : kept.matrices) std::ignore = each.tile({stage, 0}, {16, 16});
  kept.builders.push_back(kept.builders[0]);
  if (k) kept.builders[0] = *k;
  Builder& by = kept.builders[0];
  by.copy(kept.matrices[0].tile({0, 0}, {size, size}), kept.rings[0][stage]);
  by.write(kept.matrices[1], 0, stage, by.constant(f32, 1));
  std::ignore = by.read(kept.rings[0][1], 0, stage);
  by.store(kept.matrices[1], kept.tiles[0]), by.store(kept.matrices[1], kept.sums[0]);
  by.barrier(), by.when(sum < 3, [&] { by.barrier(); });
  by.loop(0, sum, 1, [&](Scalar i) { by.write(kept.matrices[1], 0, i, by.constant(f32, 1)); });
  by.pipeline(
      {.stages = 2}, sum, [&](Scalar, Scalar s) { by.copy(kept.matrices[0], kept.rings[0][s]); },
      [&](Scalar, Scalar s) {
        kept.sums[0] = (*kept.mma)(kept.sums[0], kept.rings[0][s], kept.rings[1][s]);
      });
  std::ignore = by.elements(kept.fragments[0]);
  kept.builders[0] = kept.builders.back();
}

TEST(Outliving, HandlesOfARefusedDescriptionAreHarmless) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const bool sound : {false, true}) {
      SCOPED_TRACE(testing::Message() << target << (sound ? ", compiled" : ", refused"));
      Kept kept;
      const auto compiled = compile(leaving(kept, sound), *Arch::parse(target));
      EXPECT_EQ(bool{compiled}, sound) << compiled.diags().text();
      use(kept, nullptr);
      use(kept, nullptr);
    }
}

TEST(Outliving, AnotherKernelRefusesHandlesOfARefusedDescription) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const bool sound : {false, true}) {
      SCOPED_TRACE(testing::Message() << target << (sound ? ", compiled" : ", refused"));
      Kept kept;
      EXPECT_EQ(bool{compile(leaving(kept, sound), *Arch::parse(target))}, sound);
      test::expect_told(compile(kernel("other", {.block = 128}, [&](Builder& k) { use(kept, &k); }),
                                *Arch::parse(target)),
                        {"belongs to another kernel"});
    }
}

}  // namespace
}  // namespace tartan
