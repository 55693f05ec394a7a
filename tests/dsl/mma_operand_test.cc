// SPDX-License-Identifier: Apache-2.0
// Operands of tiled MMAs with their metadata and scales by name: the code of the old, positional
// forms, products that begin without the old sum, and what is refused.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <functional>

#include "tests/dsl/code_of.h"
#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the old forms, until 0.3

namespace tartan {
namespace {

using test::code_of;

constexpr int stages = 2;
const char* const both[] = {"sm_80", "sm_90a"};

std::vector<host::f16> numbers(int count, int seed) {
  std::vector<host::f16> out;
  for (int i = 0; i < count; ++i)
    out.push_back(host::f16(static_cast<float>((i * seed + i / 7) % 9 - 4)));
  return out;
}

enum class Form { positional, named, in_place, multiplied };

Kernel sparse_product(Form form) {
  return kernel("sparse", {.block = 128, .producers = 4}, [=](Builder& k) {
    constexpr Tile of{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
    auto A = k.global("A", f16, row_major(of.m, of.k)),
         B = k.global("B", f16, col_major(128, of.n)),
         C = k.global("C", f32, row_major(of.m, of.n));
    auto kind = k.best_mma(f16, f16, f32);
    kind.shape = sparse(m16n8k32);
    auto mma = k.tiled_mma(kind, of);
    const Layout words = mma.metadata_tile();
    auto E = k.global("E", u32, row_major(words.rows, words.cols * 2));
    auto sA = k.shared("sA", f16, mma.shared_a(stages)),
         sB = k.shared("sB", f16, mma.shared_b(stages)),
         sE = k.shared("sE", u32, RingLayout{words, stages});
    k.roles([&] {
      auto sum = mma.accumulator();
      if (form == Form::multiplied) sum = map(sum, [](Scalar x) { return x + 7; });
      k.pipeline(
          {.stages = stages, .peel_first = form == Form::multiplied}, 2,
          [&](Scalar t, Scalar s) {
            k.copy(A.tile({0, t}, {of.m, of.k / 2}), sA[s]);
            k.copy(E.tile({0, t}, {words.rows, words.cols}), sE[s]);
            k.copy(B.tile({t, 0}, {of.k, of.n}), sB[s]);
          },
          [&](Scalar t, Scalar s) {
            const MmaOperand a{sA[s], {.metadata = sE[s]}};
            if (form == Form::positional) sum = mma(sum, sA[s], sE[s], sB[s]);
            else if (form == Form::named) sum = mma(sum, a, sB[s]);
            else if (form == Form::multiplied && t.constant() == 0) mma.multiply(sum, a, sB[s]);
            else mma.add(sum, {sA[s], {.metadata = sE[s]}}, sB[s]);
          });
      k.store(C, sum);
    });
  });
}

Kernel scaled_product(Form form) {
  return kernel("scaled", {.block = 128}, [=](Builder& k) {
    constexpr Tile of{.m = 64, .n = 64, .k = 128, .warps_m = 2, .warps_n = 2};
    const Type e4m3 = Type::e4m3, ue8m0 = Type::ue8m0;
    auto A = k.global("A", e4m3, row_major(of.m, of.k)),
         B = k.global("B", e4m3, col_major(of.k, of.n)),
         C = k.global("C", f32, row_major(of.m, of.n)),
         SA = k.global("SA", ue8m0, row_major(of.m, 4)),
         SB = k.global("SB", ue8m0, col_major(4, of.n));
    const MmaOptions with{.scale_type = ue8m0};
    auto mma = k.tiled_mma(of_kind(m16n8k32, isa::Kind::mxf8f6f4)(e4m3, e4m3, f32), of, with);
    auto sA = k.shared("sA", e4m3, mma.shared_a()), sB = k.shared("sB", e4m3, mma.shared_b());
    auto sSA = k.shared("sSA", ue8m0, mma.scales_a()), sSB = k.shared("sSB", ue8m0, mma.scales_b());
    k.copy(A, sA[0]), k.copy(B, sB[0]), k.copy(SA, sSA), k.copy(SB, sSB);
    k.barrier();
    auto sum = mma.accumulator();
    const MmaOperand a{sA[0], {.scales = sSA}}, b{sB[0], {.scales = sSB}};
    if (form == Form::positional) sum = mma(sum, sA[0], sSA, sB[0], sSB);
    if (form == Form::named) sum = mma(sum, a, b);
    if (form == Form::in_place) mma.add(sum, {sA[0], {.scales = sSA}}, {sB[0], {.scales = sSB}});
    if (form == Form::multiplied)
      sum = map(sum, [](Scalar x) { return x + 7; }), mma.multiply(sum, a, b);
    k.store(C, sum);
  });
}

TEST(MmaOperand, NamesGiveThePositionalCode) {
  for (const Form form : {Form::named, Form::in_place}) {
    for (const char* target : {"sm_80", "sm_90a"})
      EXPECT_EQ(code_of(sparse_product(form), target),
                code_of(sparse_product(Form::positional), target))
          << target;
    EXPECT_EQ(code_of(scaled_product(form), "sm_120a"),
              code_of(scaled_product(Form::positional), "sm_120a"));
  }
}

// The first product of a sum that was 7 is that of one that was 0.
TEST(MmaOperand, MultipliesSparseAndScaledWithoutTheOldSum) {
  const auto result = [](const Kernel& kernel, const char* target, auto... arguments) {
    const auto compiled = compile(kernel, Target::parse(target)->arch);
    EXPECT_TRUE(compiled) << compiled.diags().text();
    std::vector<float> c(64 * 64);
    Device device = test::open_engine({.hardware = target, .checks = Checks::all});
    const auto done = run(device, *compiled, {1}, arguments(c)...);
    EXPECT_TRUE(done) << done.diags().text();
    return c;
  };
  const auto a = numbers(64 * 64, 5), b = numbers(64 * 128, 7);
  // Of each four elements of A the first two: codes 0 and 1.
  const std::vector<std::uint32_t> metadata(64 * 64, 0x44444444);
  for (const char* target : both) {
    if (!test::engine_runs(*Target::parse(target))) continue;
    const auto of = [&](Form form) {
      return result(
          sparse_product(form), target, [&](auto&) { return in(a); }, [&](auto&) { return in(b); },
          [&](auto& c) { return out(c); }, [&](auto&) { return in(metadata); });
    };
    const auto added = of(Form::in_place);
    EXPECT_EQ(added, of(Form::multiplied)) << target;
    float want = 0;
    for (std::size_t x = 0; x < 64; ++x)
      want += static_cast<float>(a[x]) * static_cast<float>(b[x / 2 * 4 + x % 2]);
    EXPECT_EQ(added[0], want) << target;
  }
  if (!test::engine_runs(*Target::parse("sm_120a"))) return;
  const std::vector<std::byte> ones(64 * 128, std::byte{0x38}),  // 1
      scales(64 * 4, std::byte{128});                            // 2
  const auto of = [&](Form form) {
    return result(
        scaled_product(form), "sm_120a", [&](auto&) { return in(ones); },
        [&](auto&) { return in(ones); }, [&](auto& c) { return out(c); },
        [&](auto&) { return in(scales); }, [&](auto&) { return in(scales); });
  };
  EXPECT_EQ(of(Form::in_place), std::vector<float>(64 * 64, 4 * 128));
  EXPECT_EQ(of(Form::multiplied), std::vector<float>(64 * 64, 4 * 128));
}

// ---- What is refused.

constexpr Tile small{.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};

struct Parts {
  explicit Parts(Builder& k)
      : k(k),
        mma(k.tiled_mma(m16n8k16(f16, f16, f32), small)),
        sum(mma.accumulator()),
        a(k.shared("a", f16, row_major(64, 32))),
        b(k.shared("b", f16, col_major(32, 64))),
        words(k.shared("words", u32, row_major(4, 64))) {}
  Builder& k;
  TiledMma mma;
  Accumulator sum;
  Shared a, b, words;
};

void refused(const std::function<void(Parts&)>& body, std::vector<std::string_view> texts,
             const std::source_location& at = std::source_location::current()) {
  const auto described = [&](Builder& k) {
    Parts parts(k);
    body(parts);
  };
  test::expect_told(compile(kernel("wrong", {.block = 128}, described), *Target::parse("sm_120a")),
                    texts, at);
}

TEST(MmaOperand, MistakesAreToldAtTheirLine) {
  refused(
      [](Parts& p) {
        p.mma.add(p.sum, {p.a, {.metadata = p.words}}, p.b);
      },
      {"metadata of A, the 64 x 64 tile", "expected none for a dense kind, found words",
       "sparse(m16n8k16) takes them"});
  refused(
      [](Parts& p) {
        p.mma.add(p.sum, p.a, {p.b, {.metadata = p.words}});
      },
      {"metadata of B", "expected none, found words; only A is sparse"});
  refused(
      [](Parts& p) {
        p.mma.multiply(p.sum, {p.a, {.scales = p.words}}, p.b);
      },
      {"m16n8k16 has no scales"});
  refused([](Parts& p) { p.mma.add(p.sum, p.b, p.a); }, {"A of the tiled MMA"});
  refused(
      [](Parts& p) {
        p.k.copy(p.k.global("A", f16, row_major(64, 32)), p.a);
        p.k.barrier();
        p.mma.add(p.sum, p.mma.load_a(p.a), p.mma.load_a(p.a));
      },
      {"A and B of the 64 x 64 tile",
       "in registers: expected at least one of them in shared memory",
       "found A of m16n8k16 (f16) and A of m16n8k16 (f16)"});
  refused([](Parts& p) { p.mma.add(p.sum, WarpTile(), p.b); }, {"A of the tiled MMA"});
  refused(
      [](Parts& p) {
        auto first = p.mma.first_step(p.a, p.b);
        p.mma.add(p.sum, {p.a, {.metadata = p.words}}, p.b, first, [] {});
      },
      {"A of the 64 x 64 tile", "with a first k-step",
       "expected shared memory without scales or metadata, found metadata"});
  refused(
      [](Parts& p) {
        auto of_a = p.mma.variable_a();
        p.mma.add(of_a, p.a, p.b);
      },
      {"wrong number of accumulators per warp", "expected 8, found 4"});
}

// On wgmma, too, which once read registers of whatever they were.
TEST(MmaOperand, RegistersAreThoseOfTheKindsOperand) {
  const auto told = [](const std::function<WarpTile(const WarpTile&)>& operand, int k_tile,
                       std::vector<std::string_view> texts) {
    for (const char* target : {"sm_80", "sm_90a"}) {
      SCOPED_TRACE(target);
      const Tile tile{.m = 64, .n = 64, .k = k_tile, .warps_m = 4, .warps_n = 1};
      const auto described = [&](Builder& k) {
        auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
        auto a = k.shared("a", f16, mma.shared_a(1, Major::row)),
             b = k.shared("b", f16, mma.shared_b(1, Major::row));
        auto A = k.global("A", f16, row_major(64, tile.k)),
             B = k.global("B", f16, row_major(tile.k, 64)),
             C = k.global("C", f32, row_major(64, 64));
        k.roles([&] {
          auto sum = mma.accumulator(), out = mma.accumulator();
          k.pipeline(
              {.stages = 1}, 1,
              [&](Scalar, Scalar s) {
                k.copy(A, a[s]);
                k.copy(B, b[s]);
              },
              [&](Scalar, Scalar s) {
                mma.multiply(sum, a[s], b[s]);
                mma.multiply(out, operand(sum.load()), b[s]);
              });
          k.store(C, out);
        });
      };
      const auto compiled = compile(kernel("chained", {.block = 128, .producers = 4}, described),
                                    *Target::parse(target));
      if (texts.empty()) EXPECT_TRUE(compiled) << compiled.diags().text();
      else test::expect_told(compiled, texts, std::source_location::current());
    }
  };
  told([](const WarpTile& x) { return operand_a(convert(x, f16)); }, 64, {});
  told([](const WarpTile& x) { return operand_a(convert(x, bf16)); }, 64,
       {"A of the tiled MMA in registers: expected elements of f16, found bf16",
        "convert() the tile to f16"});
  told([](const WarpTile& x) { return x; }, 128,
       {"expected operand A of the 64 x 64 tile", "operand_a(convert(tile, f16)) makes it of"});
  told([](const WarpTile& x) { return convert(x, f16); }, 128, {"expected operand A of"});
  told([](const WarpTile& x) { return operand_b(convert(x, f16)); }, 128,
       {"expected operand A of the 64 x 64 tile", "found B of m16n8k16 (f16)"});
}

TEST(MmaOperand, SparseAndScaledKindsNeedTheirData) {
  const auto of_kind_refused = [](const MmaKind& kind, const MmaOptions& options, bool a_scales,
                                  std::vector<std::string_view> texts,
                                  const std::source_location& at) {
    const auto described = [&](Builder& k) {
      constexpr Tile of{.m = 64, .n = 64, .k = 128, .warps_m = 2, .warps_n = 2};
      auto mma = k.tiled_mma(kind, of, options);
      auto a = k.shared("a", kind.a, mma.shared_a())[0],
           b = k.shared("b", kind.b, mma.shared_b())[0];
      auto scales = k.shared("scales", Type::ue8m0, row_major(64, 4));
      auto sum = mma.accumulator();
      if (a_scales) mma.add(sum, {a, {.scales = scales}}, b);
      else mma.add(sum, a, b);
    };
    test::expect_told(
        compile(kernel("wrong", {.block = 128}, described), *Target::parse("sm_120a")), texts, at);
  };
  const auto here = std::source_location::current();
  of_kind_refused(sparse(m16n8k32)(f16, f16, f32), {}, false,
                  {"metadata of A", "expected {a, {.metadata = ...}} with 4 x", "found none"},
                  here);
  const MmaKind scaled = of_kind(m16n8k32, isa::Kind::mxf8f6f4)(Type::e4m3, Type::e4m3, f32);
  const MmaOptions with{.scale_type = Type::ue8m0};
  of_kind_refused(scaled, with, false,
                  {"scales of A", "expected {a, {.scales = ...}} with 64 x 4 of ue8m0, found none",
                   "scales of B", "expected {b, {.scales = ...}} with 4 x 64 of ue8m0, found none"},
                  here);
  of_kind_refused(scaled, with, true, {"scales of B", "found none"}, here);
}

TEST(MmaOperand, ItsProductNamesTheLineOfTheCall) {
  int line = 0;
  const auto described = [&](Builder& k) {
    Parts p(k);
    line = static_cast<int>(std::source_location::current().line()) + 1;
    p.mma.multiply(p.sum, p.b, p.a);
  };
  const auto compiled =
      compile(kernel("wrong", {.block = 128}, described), *Target::parse("sm_80"));
  ASSERT_FALSE(compiled);
  EXPECT_EQ((*compiled.diags().begin()).place.line, line) << compiled.diags().text();
}

}  // namespace
}  // namespace tartan
