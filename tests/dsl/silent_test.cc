// SPDX-License-Identifier: Apache-2.0
// What used to be wrong or slow without a word: offsets beyond 32 bits, elements of 8 bits,
// comparisons of unsigned values, tiles beyond their matrix, copies without TMA, sm_90 for sm_90a.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <numeric>

#include "tests/support/engine.h"

namespace tartan {
namespace {

const char* const both[] = {"sm_80", "sm_90a"};

template <typename... Arguments>
void run_on(const char* target, const Kernel& kernel, unsigned grid,
            const Arguments&... arguments) {
  Device device = test::open_engine({.hardware = target, .checks = Checks::all});
  const auto compiled = compile(kernel, Target::parse(target)->arch);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_TRUE(compiled->warnings.empty()) << compiled->warnings.text();
  const auto done = run(device, *compiled, {grid}, arguments...);
  EXPECT_TRUE(done) << done.diags().text();
}

std::vector<std::string> warnings(const Kernel& kernel, const char* target) {
  const auto compiled = compile(kernel, Target::parse(target)->arch);
  EXPECT_TRUE(compiled) << compiled.diags().text();
  std::vector<std::string> out;
  if (compiled)
    for (const Diag& each : compiled->warnings) {
      EXPECT_NE(each.place.file.find("silent_test.cc"), std::string::npos) << each.message;
      out.push_back(each.message);
    }
  return out;
}

// Offsets of elements (row, col) of a matrix with `width` columns: no memory is accessed.
std::vector<std::uint64_t> offsets(const char* target, const std::vector<std::uint32_t>& rows,
                                   const std::vector<std::uint32_t>& cols, std::int32_t width,
                                   bool constant) {
  const auto kernel = tartan::kernel("far", {.block = 32}, [&](Builder& k) {
    auto at = k.global("at", u32, row_major(2, 32));
    auto out = k.global("out", u64, row_major(1, 32));
    auto n = k.param("n", s32);
    auto X = k.global("X", Type::u8,
                      constant ? row_major(1 << 20, width) : row_major(k.param("m", s32), n));
    k.write(
        out, 0, k.thread(),
        k.address(X, k.read(at, 0, k.thread()), k.read(at, 1, k.thread())) - k.address(X, 0, 0));
  });
  const auto compiled = compile(kernel, Target::parse(target)->arch);
  EXPECT_TRUE(compiled) << compiled.diags().text();
  if (!compiled) return {};
  Device device = test::open_engine({.hardware = target});
  Buffer in = *device.allocate(256), out = *device.allocate(256), x = *device.allocate(256);
  std::vector<std::uint32_t> both(rows);
  both.insert(both.end(), cols.begin(), cols.end());
  EXPECT_TRUE(in.write(std::as_bytes(std::span(both))));
  const auto module = device.load(compiled->ptx);
  EXPECT_TRUE(module) << module.diags().text();
  Arguments arguments;
  arguments.add(in).add(out).add(width);
  if (!constant) arguments.add(std::int32_t{1 << 20});
  arguments.add(x);
  EXPECT_TRUE(module->kernel("far")->launch({.grid = {1}, .block = {32}}, arguments));
  EXPECT_TRUE(device.synchronize());
  return *out.read_all<std::uint64_t>();
}

TEST(Silent, OffsetsHave64Bits) {
  std::vector<std::uint32_t> rows, cols;
  for (std::uint32_t i = 0; i < 32; ++i) rows.push_back(32000 * i), cols.push_back(131071 - i);
  for (const char* target : both)
    for (const bool constant : {false, true})
      for (const std::int32_t width : {131072, 70001}) {
        SCOPED_TRACE(fmt::format("{} {} {}", target, constant, width));
        const auto got = offsets(target, rows, cols, width, constant);
        ASSERT_EQ(got.size(), 32U);
        for (std::size_t i = 0; i < 32; ++i)
          EXPECT_EQ(got[i], std::uint64_t{rows[i]} * static_cast<std::uint64_t>(width) + cols[i]);
      }
}

std::string text(const std::function<void(Builder&)>& body) {
  const auto compiled = compile(kernel("offsets", {.block = 32}, body), *Arch::parse("sm_80"));
  EXPECT_TRUE(compiled) << compiled.diags().text();
  return compiled ? compiled->ptx : std::string();
}

TEST(Silent, ConstantExtentsKeepOffsetsOf32Bits) {
  const auto reads = [](bool constant) {
    return text([=](Builder& k) {
      const Scalar n = constant ? Scalar(1000) : k.param("n", s32);
      auto x = k.global("x", f32, row_major(1024, n));
      auto rows = k.global("rows", u32, row_major(1, 32));
      k.write(x, k.read(rows, 0, k.thread()), 2, 1.0);
    });
  };
  EXPECT_NE(reads(true).find("mul.lo.s32"), std::string::npos) << reads(true);
  EXPECT_EQ(reads(false).find("mul.lo.s32"), std::string::npos) << reads(false);
}

TEST(Silent, IndicesMayHave64Bits) {
  EXPECT_NE(text([](Builder& k) {
              auto m = k.param("m", s32), n = k.param("n", s32);
              auto x = k.global("x", f32, row_major(m, n));
              k.write(x, k.convert(k.thread(), u64), 0, 1.0);
            }),
            "");
}

TEST(Silent, ElementsOf8BitsWidenAsInC) {
  std::vector<std::int8_t> x(64);
  std::iota(x.begin(), x.end(), std::int8_t{-32});
  for (std::int8_t& each : x) each = static_cast<std::int8_t>(each * 4 - 1);
  std::vector<std::uint8_t> y(64);
  std::iota(y.begin(), y.end(), std::uint8_t{192});
  for (const char* target : both) {
    std::vector<std::int32_t> products(64), differences(64), vectors(64);
    std::vector<std::int8_t> copied(64);
    run_on(target,
           kernel("bytes", {.block = 64},
                  [](Builder& k) {
                    auto X = k.global("X", Type::s8, row_major(1, 64));
                    auto Y = k.global("Y", Type::u8, row_major(1, 64));
                    auto P = k.global("P", s32, row_major(1, 64)),
                         D = k.global("D", s32, row_major(1, 64)),
                         V = k.global("V", s32, row_major(1, 64));
                    auto Z = k.global("Z", Type::s8, row_major(1, 64));
                    const Scalar i = k.thread(), a = k.read(X, 0, i);
                    EXPECT_EQ(a.type(), s32);
                    EXPECT_EQ(k.read(Y, 0, i).type(), u32);
                    k.write(P, 0, i, a * a + k.read(X, 0, 63 - i));
                    k.write(D, 0, i, k.read(Y, 0, i) - 200);
                    k.write(Z, 0, i, a);
                    k.when(i < 16, [&] {
                      const auto v = k.read_vector(X, 0, i * 4, 4);
                      for (int e = 0; e < 4; ++e)
                        k.write(V, 0, i * 4 + e, v[static_cast<std::size_t>(e)] * 100);
                    });
                  }),
           1, in(x), in(y), out(products), out(differences), out(vectors), out(copied));
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(products[i], x[i] * x[i] + x[63 - i]);
      EXPECT_EQ(differences[i], y[i] - 200);
      EXPECT_EQ(vectors[i], x[i] * 100);
    }
    EXPECT_EQ(copied, x);
  }
}

TEST(Silent, ComparisonsThatAlwaysHoldWarn) {
  const auto told = [](const std::function<Scalar(Builder&, Scalar)>& condition,
                       const char* target) {
    return warnings(kernel("compares", {.block = 32},
                           [&](Builder& k) {
                             auto out = k.global("out", u32, row_major(1, 32));
                             const Scalar i = k.thread();
                             k.write(out, 0, i, select(condition(k, i), k.constant(u32, 1), 2));
                           }),
                    target);
  };
  using Told = std::vector<std::string>;
  for (const char* target : both) {
    EXPECT_EQ(
        told([](Builder&, Scalar i) { return i >= 0; }, target),
        Told{"a value of type u32 >= 0 always holds: it is never below 0; convert() it to s32 "
             "before the difference that may be negative"});
    EXPECT_EQ(told([](Builder&, Scalar i) { return 0 > i; }, target),
              Told{"a value of type u32 < 0 never holds: it is never below 0; convert() it to s32 "
                   "before the difference that may be negative"});
    EXPECT_EQ(told([](Builder&, Scalar i) { return i > -1; }, target),
              Told{"a value of type u32 > -1: the constant is taken as 4294967295; convert() the "
                   "value to s32"});
    EXPECT_EQ(told([](Builder& k, Scalar i) { return i - k.block_x() <= 0; }, target),
              Told{"a difference of type u32 <= 0: below 0 it wraps around; compare its operands "
                   "with each other, or convert() them to s32"});
    EXPECT_EQ(told([](Builder& k, Scalar i) { return i <= k.block_x(); }, target), Told{});
    EXPECT_EQ(told([](Builder& k,
                      Scalar i) { return k.convert(i, s32) - k.convert(k.block_x(), s32) <= 0; },
                   target),
              Told{});
    EXPECT_EQ(told([](Builder&, Scalar i) { return (i > 0) & (i != 0); }, target), Told{});
  }
}

// Four tiles of each block: one more block than the matrix has tiles is refused, where it divides.
Kernel four_tiles(int rows) {
  return kernel("four", {.block = 32}, [=](Builder& k) {
    auto X = k.global("X", f16, row_major(rows, 32)), Y = k.global("Y", f16, row_major(256, 32));
    auto s = k.shared("s", f16, row_major(16, 32));
    for (int i = 0; i < 4; ++i) {
      k.copy(X.tile({k.block_x() * 4 + i, 0}, {16, 32}), s);
      k.barrier();
      k.copy(s, Y.tile({k.block_x() * 4 + i, 0}, {16, 32}));
      k.barrier();
    }
  });
}

TEST(Silent, TilesBeyondTheirMatrixAreRefused) {
  for (const char* target : both) {
    std::vector<host::f16> x(128 * 32, host::f16(1.0F)), y(256 * 32);
    run_on(target, four_tiles(128), 2, in(x), in_out(y));
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(static_cast<float>(y[i]), i < 128 * 32 ? 1.0F : 0.0F);
    Device device = test::open_engine({.hardware = target, .checks = Checks::all});
    const auto compiled = compile(four_tiles(128), Target::parse(target)->arch);
    const auto done = run(device, *compiled, {3}, in(x), in_out(y));
    ASSERT_FALSE(done);
    EXPECT_NE(done.diags().text().find("rows of tiles of X: expected at most 2 blocks along x, "
                                       "found 3"),
              std::string::npos)
        << done.diags().text();
  }
}

// A product with producers.
Kernel filled(int multiple, Major b_in_memory) {
  const Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
  return kernel("filled", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
    auto n = k.param("n", s32, multiple);
    auto A = k.global("A", f16, row_major(64, n));
    auto B = k.global("B", f16, b_in_memory == Major::col ? col_major(n, 64) : row_major(n, 64));
    auto C = k.global("C", f32, row_major(64, 64));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(2)), sB = k.shared("sB", f16, mma.shared_b(2));
    k.roles([&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = 2}, ceil_div(n, 64),
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {64, 64}), sA[stage]);
            k.copy(B.tile({t, 0}, {64, 64}), sB[stage]);
          },
          [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
      k.store(C, sum);
    });
  });
}

TEST(Silent, SlowPathsWarn) {
  using Told = std::vector<std::string>;
  EXPECT_EQ(warnings(filled(64, Major::col), "sm_90a"), Told{});
  EXPECT_EQ(warnings(filled(64, Major::col), "sm_80"), Told{});
  const Told forgotten = warnings(filled(1, Major::col), "sm_90a");
  ASSERT_GE(forgotten.size(), 2U);
  EXPECT_EQ(forgotten[0],
            "copy A to sA: no TMA: the leading dimension must be a multiple of 16 bytes, that of A "
            "is a multiple of 2; multiple_of() promises a divisor");
  const Told turned = warnings(filled(64, Major::row), "sm_90a");
  ASSERT_EQ(turned.size(), 1U);
  EXPECT_EQ(turned[0],
            "copy B to sB: 4096 accesses of 2 bytes for each stage, not TMA or cp.async; expected "
            "both with the same contiguous dimension: give shared_a() or shared_b() that of the "
            "matrix");
  const Told letter = warnings(filled(64, Major::col), "sm_90");
  ASSERT_EQ(letter.size(), 1U);
  EXPECT_EQ(letter[0],
            "tile of 64 x 64 x 64: mma.sync on sm_90, wgmma on sm_90a, which is the same GPU: "
            "compile for sm_90a");
}

TEST(Silent, HasAsksForTheVersion) {
  const auto compiled = compile(kernel("asks", {.block = 32},
                                       [](Builder& k) {
                                         auto out = k.global("out", u32, row_major(1, 32));
                                         const bool has = k.has("cvt.rn.f16x2.e4m3x2");
                                         k.write(out, 0, k.thread(), has ? 1 : 0);
                                       }),
                                *Arch::parse("sm_89"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->target.ptx.text(), "8.1");
  EXPECT_NE(compiled->ptx.find(", 1;"), std::string::npos) << compiled->ptx;
}

}  // namespace
}  // namespace tartan
