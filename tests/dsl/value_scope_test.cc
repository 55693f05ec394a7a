// SPDX-License-Identifier: Apache-2.0
// Values that are used after the body that made them, and warnings of the checker: each at its line
// of C++, and never in LLVM's words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

namespace tartan {
namespace {

const Target sm_80 = *Target::parse("sm_80"), sm_90a = *Target::parse("sm_90a");

// Compiles and expects one diagnostic: the value of line `made` is used on line `used`.
void expect_out_of_scope(const std::function<void(Builder&)>& body, int made, int used,
                         const Target& target = sm_80) {
  const auto compiled = compile(kernel("scopes", {.block = 32}, body), target);
  ASSERT_FALSE(compiled);
  for (const Diag& diag : compiled.diags()) {
    EXPECT_EQ(diag.id, "value-scope") << diag.message;
    EXPECT_EQ(diag.place.line, used) << diag.message;
    EXPECT_NE(diag.place.file.find("value_scope_test.cc"), std::string::npos) << diag.place.file;
    EXPECT_EQ(diag.message,
              fmt::format("the value made on line {} in the body of a loop, condition or pipeline "
                          "is used after it: expected a variable() or an accumulator to carry it "
                          "out",
                          made));
  }
}

void expect_refused(const std::function<void(Builder&)>& body) {
  const auto compiled = compile(kernel("scopes", {.block = 32}, body), sm_80);
  ASSERT_FALSE(compiled);
  for (const Diag& diag : compiled.diags()) EXPECT_EQ(diag.id, "value-scope") << diag.message;
}

TEST(ValueScope, ScalarsOfConditionsAndLoops) {
  expect_out_of_scope(
      [](Builder& k) {
        auto g = k.global("g", u32, row_major(1, 32));
        Scalar x = 0;
        k.when(k.thread() < 3, [&] { x = k.read(g, 0, k.thread()); });
        k.write(g, 0, k.thread(), x + 1);
      },
      __LINE__ - 3, __LINE__ - 2);
  expect_out_of_scope(
      [](Builder& k) {
        auto g = k.global("g", u32, row_major(1, 32));
        Scalar x = 0;
        k.loop(0, 4, 1, [&](Scalar i) { x = k.read(g, 0, i) * 2; });
        k.write(g, 0, k.thread(), x);
      },
      __LINE__ - 3, __LINE__ - 2);
  // The counter itself.
  expect_out_of_scope(
      [](Builder& k) {
        auto g = k.global("g", u32, row_major(1, 32));
        Scalar last = 0;
        k.loop(0, k.param("n", u32), 1, [&](Scalar i) { last = i; });
        k.write(g, 0, last, last);
      },
      __LINE__ - 3, __LINE__ - 2);
}

TEST(ValueScope, Fragments) {
  expect_out_of_scope(
      [](Builder& k) {
        auto s = k.shared("s", f16, row_major(16, 16));
        auto out = k.global("out", f16, row_major(16, 16));
        k.when(k.warp() < 1, [&] { k.write(s, 0, 0, k.constant(f16, 1)); });
        k.barrier();
        std::optional<Fragment> kept;
        k.when(k.warp() < 1, [&] { kept = k.load(operand_a(m16n8k16, f16), s); });
        k.store(out, *kept);
      },
      __LINE__ - 3, __LINE__ - 2);
}

// What the tensor cores of a warpgroup still compute is in variables of its own.
TEST(ValueScope, SumsOfWarpgroups) {
  const Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
  enum Way { of_tile, anew, read, under_condition };
  for (const Way way : {of_tile, anew, read, under_condition}) {
    int made = 0, used = 0;
    const auto body = [&](Builder& k) {
      auto A = k.global("A", f16, row_major(64, 256)), B = k.global("B", f16, col_major(256, 64));
      auto C = k.global("C", f32, row_major(64, 64));
      auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
      auto sA = k.shared("sA", f16, mma.shared_a(2)), sB = k.shared("sB", f16, mma.shared_b(2));
      k.roles([&] {
        auto none = mma.accumulator(), total = mma.accumulator();
        WarpTile sum = none;
        const auto fill = [&](Scalar t, Scalar s) {
          k.copy(A.tile({0, t}, {64, 64}), sA[s]);
          k.copy(B.tile({t, 0}, {64, 64}), sB[s]);
        };
        k.pipeline({.stages = 2}, 4, fill, [&](Scalar t, Scalar s) {
          if (way == of_tile) sum = mma(sum, sA[s], sB[s]), made = __LINE__;
          if (way == anew) sum = mma(none, sA[s], sB[s]), made = __LINE__;
          if (way == read) total = mma(total, sA[s], sB[s]), sum = total, made = __LINE__;
          if (way == under_condition)
            k.when(t == 0, [&] { sum = mma(none, sA[s], sB[s]), made = __LINE__; });
        });
        used = __LINE__ + 1;
        k.store(C.tile({0, 0}, {64, 64}), sum);
      });
    };
    const auto compiled =
        compile(kernel("sums", {.block = tile.threads(), .producers = 1}, body), sm_90a);
    ASSERT_FALSE(compiled) << way;
    ASSERT_EQ(compiled.diags().size(), 1u) << compiled.diags().text();
    const Diag& diag = *compiled.diags().begin();
    EXPECT_EQ(diag.id, "value-scope");
    EXPECT_EQ(diag.place.line, used) << diag.message;
    EXPECT_NE(diag.message.find(fmt::format("made on line {} ", made)), std::string::npos)
        << diag.message;
  }
}

// C++ runs a body once, while it is described.
TEST(ValueScope, NumbersThatCppAssigns) {
  using Body = std::function<void(Builder&, Scalar&)>;
  const std::pair<double, Body> wrong[] = {
      {1.0, [](Builder& k, Scalar& x) { k.when(k.thread() < 4, [&] { x = 2.0; }); }},
      {0.0, [](Builder& k, Scalar& x) { k.loop(0, 4, 1, [&](Scalar) { x += 1.0; }); }},
      {0.0,
       [](Builder& k, Scalar& x) {
         x = k.constant(f32, 0);
         k.loop(0, 4, 1, [&](Scalar) { x += 1.0; });
       }},
      {0.0, [](Builder& k, Scalar& x) {
         k.loop(0, 4, 1, [&](Scalar i) { k.when(i < 2, [&] { x = 3.0; }); });
       }}};
  for (const auto& [first, body] : wrong) {
    int used = 0;
    const auto compiled = compile(kernel("numbers", {.block = 32},
                                         [&](Builder& k) {
                                           auto out = k.global("out", f32, row_major(1, 32));
                                           Scalar x = first;
                                           body(k, x);
                                           used = __LINE__ + 1;
                                           k.write(out, 0, k.thread(), x);
                                         }),
                                  sm_80);
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.diags().size(), 1u) << compiled.diags().text();
    EXPECT_EQ(compiled.diags().begin()->id, "value-scope");
    EXPECT_EQ(compiled.diags().begin()->place.line, used);
    EXPECT_NE(compiled.diags().text().find("or pipeline, at value_scope_test.cc:"),
              std::string::npos);
  }
  // An index whose addend alone changes, where it is computed with.
  expect_refused([](Builder& k) {
    auto out = k.global("out", u32, row_major(1, 256));
    Scalar at = k.thread();
    k.loop(0, 4, 1, [&](Scalar) { at += 32; });
    k.write(out, 0, at, 1);
  });
}

// Assigned anew before it is used, declared in the body, or assigned outside of all bodies.
TEST(ValueScope, NumbersThatAreUsedWhereTheyAreAssigned) {
  const auto compiled = compile(kernel("numbers", {.block = 32},
                                       [](Builder& k) {
                                         auto out = k.global("out", u32, row_major(8, 32));
                                         Scalar x = 0, at = k.thread();
                                         x += 1;
                                         at = at + 0;
                                         for (int i = 0; i < 2; ++i)
                                           k.loop(0, 4, 1, [&](Scalar t) {
                                             x = 3 + i;
                                             Scalar row = t;
                                             row += 4 * i;
                                             k.write(out, row, at, x);
                                             k.when(t < 2, [&] { k.write(out, row, at, x + 1); });
                                           });
                                         x = 5;
                                         k.write(out, 0, at, x);
                                       }),
                                sm_80);
  EXPECT_TRUE(compiled) << compiled.diags().text();
}

TEST(ValueScope, VariablesCarry) {
  const auto compiled = compile(kernel("carried", {.block = 32},
                                       [](Builder& k) {
                                         auto g = k.global("g", u32, row_major(1, 32));
                                         auto x = k.variable(k.constant(u32, 0));
                                         k.when(k.thread() < 3, [&] { x = k.read(g, 0, 1); });
                                         k.write(g, 0, k.thread(), x);
                                       }),
                                sm_80);
  EXPECT_TRUE(compiled) << compiled.diags().text();
}

// What the checker says of the text, the one who wrote the C++ hears.
TEST(CompileWarnings, NameTheLine) {
  const int first = __LINE__;
  const auto compiled =
      compile(kernel("divergent", {.block = 32},
                     [](Builder& k) {
                       auto a = k.global("A", f16, row_major(16, 16));
                       auto s = k.shared("s", f16, row_major(16, 16));
                       k.copy(a, s);
                       k.barrier();
                       auto d = k.variable(operand_c(m16n8k16, f32));
                       k.when(k.convert(k.lane(), s32) < 16, [&] {
                         d = k.mma(k.load(operand_a(m16n8k16, f16), s),
                                   k.load(operand_b(m16n8k16, f16), s.tile({0, 0}, {16, 8})), d);
                       });
                       k.store(k.global("D", f32, row_major(16, 8)), d);
                     }),
              sm_80);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  ASSERT_GE(compiled->warnings.size(), 1u);
  bool mma = false;
  for (const Diag& diag : compiled->warnings) {
    EXPECT_EQ(diag.level, Level::Warning);
    EXPECT_EQ(diag.id, "maybe-divergent") << diag.message;
    EXPECT_NE(diag.place.file.find("value_scope_test.cc"), std::string::npos) << diag.place.file;
    EXPECT_GE(diag.place.line, first + 10);
    EXPECT_LE(diag.place.line, first + 12);
    mma |= diag.message.find("mma.sync") != std::string::npos;
  }
  EXPECT_TRUE(mma) << compiled->warnings.text();
}

TEST(CompileWarnings, NameSharedMemoryThatNothingWrites) {
  int line = 0;
  const auto compiled = compile(kernel("unwritten", {.block = 32},
                                       [&](Builder& k) {
                                         auto s = k.shared("s", f16, row_major(16, 16));
                                         auto t = k.shared("t", f16, row_major(16, 16));
                                         k.copy(k.global("A", f16, row_major(16, 16)), t);
                                         k.barrier();
                                         k.load(operand_a(m16n8k16, f16), t);
                                         line = __LINE__ + 1;
                                         k.load(operand_a(m16n8k16, f16), s);
                                       }),
                                sm_80);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  ASSERT_EQ(compiled->warnings.size(), 1u) << compiled->warnings.text();
  EXPECT_EQ(compiled->warnings[0].id, "unwritten-tile");
  EXPECT_EQ(compiled->warnings[0].place.line, line);
  EXPECT_EQ(compiled->warnings[0].message, "s is read, and nothing writes it; copy() a tile to it");
}

}  // namespace
}  // namespace tartan
