// SPDX-License-Identifier: Apache-2.0
// Functions and operators of scalars against C++'s, on the emulator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"
#include "tests/support/numbers.h"

namespace tartan {
namespace {

constexpr const char* targets[] = {"sm_80", "sm_90a", "sm_75", "sm_120a"};

// What 32 threads compute of 32 elements of `type`, as elements of `result`.
std::vector<double> computed(Type type, Type result, const std::vector<double>& values,
                             const char* target, const std::function<Scalar(Builder&, Scalar)>& f) {
  const auto compiled =
      compile(kernel("math", {.block = 32},
                     [&](Builder& k) {
                       auto in = k.global("in", type, row_major(1, 32));
                       auto out = k.global("out", result, row_major(1, 32));
                       k.write(out, 0, k.thread(), f(k, k.read(in, 0, k.thread())));
                     }),
              Target::parse(target)->arch);
  EXPECT_TRUE(compiled) << compiled.diags().text();
  if (!compiled) return {};
  Device device = test::open_engine();
  const auto width = static_cast<std::size_t>(bits(type)) / 8;
  std::vector<std::byte> bytes(32 * width);
  for (std::size_t i = 0; i < 32; ++i) {
    const std::uint64_t word = info(type).floating
                                   ? testing_numbers::float_bits(type, values[i])
                                   : static_cast<std::uint64_t>(std::llround(values[i]));
    std::memcpy(&bytes[i * width], &word, width);
  }
  Buffer in = *device.allocate(bytes.size()), out = *device.allocate(std::size_t{32} * 8);
  EXPECT_TRUE(in.write(bytes));
  const auto module = device.load(compiled->ptx);
  EXPECT_TRUE(module) << module.diags().text();
  if (!module) return {};
  LoadedKernel loaded = *module->kernel("math");
  EXPECT_TRUE(loaded.launch({.block = {32}}, Arguments().add(in).add(out)));
  EXPECT_TRUE(device.synchronize());
  auto got = *out.read_all<std::byte>();
  got.resize(32 * static_cast<std::size_t>(bits(result)) / 8);
  return testing_numbers::decode(result, got);
}

std::vector<double> ramp(double from, double step) {
  std::vector<double> out;
  for (int i = 0; i < 32; ++i) out.push_back(from + i * step);
  return out;
}

TEST(Math, ExponentialAndLogarithm) {
  for (const char* target : targets) {
    if (!test::engine_runs(*Target::parse(target))) continue;
    const auto x = ramp(-8, 0.5), y = ramp(0.125, 0.75);
    const auto e = computed(f32, f32, x, target, [](Builder&, Scalar v) { return exp(v); });
    const auto l = computed(f32, f32, y, target, [](Builder&, Scalar v) { return log(v); });
    const auto r = computed(f32, f32, y, target, [](Builder&, Scalar v) { return rsqrt(v); });
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_NEAR(e[i] / std::exp(x[i]), 1, 3e-6) << x[i];
      EXPECT_NEAR(l[i], std::log(y[i]), 1e-6 + 1e-6 * std::fabs(std::log(y[i]))) << y[i];
      EXPECT_NEAR(r[i] * std::sqrt(y[i]), 1, 1e-6) << y[i];
    }
  }
}

TEST(Math, AbsoluteAndFloor) {
  for (const char* target : targets)
    for (const Type type : {f16, bf16, f32, f64, s32, s64, s16, u32, u8}) {
      if (!test::engine_runs(*Target::parse(target))) continue;
      SCOPED_TRACE(fmt::format("{} {}", target, name(type)));
      const bool floats = info(type).floating;
      if (type == bf16 && std::string_view(target) == "sm_75") continue;
      const auto x = !floats ? ramp(info(type).is_signed ? -16 : 0, 1) : ramp(-8, 0.5);
      const auto a = computed(type, f64, x, target,
                              [](Builder& k, Scalar v) { return k.convert(abs(v), f64); });
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], std::fabs(x[i]));
      if (!floats) continue;
      const auto f = computed(type, f64, x, target,
                              [](Builder& k, Scalar v) { return k.convert(floor(v), f64); });
      for (std::size_t i = 0; i < f.size(); ++i) EXPECT_EQ(f[i], std::floor(x[i]));
    }
}

// Less, equal or more than 0, by C++'s comparisons of the elements' own type.
template <typename T>
double sign_of(T x) {
  return x < T{0} ? -1 : x > T{0} ? 1 : static_cast<double>(x);
}

TEST(Math, SignOfIntegers) {
  for (const char* target : targets)
    for (const Type type : {s8, s16, s32, s64}) {
      if (!test::engine_runs(*Target::parse(target))) continue;
      SCOPED_TRACE(fmt::format("{} {}", target, name(type)));
      auto x = ramp(-14, 1);
      const double most = std::ldexp(1, bits(type) - 1);
      x[0] = -most, x[1] = 1 - most, x[2] = bits(type) > 53 ? most / 2 : most - 1;
      const auto got = computed(type, f64, x, target,
                                [](Builder& k, Scalar v) { return k.convert(sign(v), f64); });
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], sign_of(x[i])) << x[i];
    }
}

TEST(Math, SignOfFloats) {
  constexpr float most = std::numeric_limits<float>::max(), least = 1e-45F,
                  nan = std::numeric_limits<float>::quiet_NaN(),
                  infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x{0, least, 1e-39F, 0.25F, 1, 1.5F, most, infinity, nan};
  for (std::size_t i = 0, count = x.size(); i < count; ++i) x.push_back(-x[i]);
  x.resize(32, 3);
  std::vector<double> words;
  for (const float each : x) words.push_back(std::bit_cast<std::uint32_t>(each));
  for (const char* target : targets) {
    if (!test::engine_runs(*Target::parse(target))) continue;
    SCOPED_TRACE(target);
    const auto got = computed(u32, u32, words, target, [](Builder& k, Scalar v) {
      return k.bitcast(sign(k.bitcast(v, f32)), u32);
    });
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto found = std::bit_cast<float>(static_cast<std::uint32_t>(got[i]));
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(found)) << found;
        continue;
      }
      EXPECT_EQ(found, sign_of(x[i])) << x[i];
      EXPECT_EQ(std::signbit(found), std::signbit(x[i])) << x[i];
    }
  }
}

TEST(Math, SignOfConstants) {
  EXPECT_EQ(sign(-7).constant(), -1);
  EXPECT_EQ(sign(0).constant(), 0);
  EXPECT_EQ(sign(7).constant(), 1);
  const auto got = computed(f32, f64, ramp(0, 1), "sm_80", [](Builder& k, Scalar v) {
    return k.convert(v * sign(Scalar(-2.5)) + sign(Scalar(0.0)) + sign(Scalar(1e-300)) / 2, f64);
  });
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], 0.5 - static_cast<double>(i));
}

TEST(Math, FractionsTakeTheOperandsType) {
  for (const Type type : {f16, bf16, f32, f64}) {
    SCOPED_TRACE(name(type));
    const auto x = ramp(-8, 0.5);
    const auto got = computed(type, f64, x, "sm_90a", [](Builder& k, Scalar v) {
      Scalar y = 0.5 * v + 0.25;
      y -= 1.5;
      y *= -2.0;
      y /= 0.5;
      return k.convert(select(-v > 2.5, maximum(y, 0.75), fma(v, 0.5, 1.0)), f64);
    });
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double y = (0.5 * x[i] + 0.25 - 1.5) * -2.0 / 0.5;
      EXPECT_EQ(got[i], -x[i] > 2.5 ? std::max(y, 0.75) : x[i] * 0.5 + 1.0) << x[i];
    }
  }
}

TEST(Math, FractionsFold) {
  const auto got = computed(f32, f64, ramp(0, 1), "sm_80", [](Builder& k, Scalar v) {
    const Scalar half = 0.5, quarter = half * half;
    return k.convert(v * (quarter + 1) + minimum(half, 2) + floor(Scalar(2.75)) + abs(-quarter),
                     f64);
  });
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i], static_cast<double>(i) * 1.25 + 0.5 + 2 + 0.25);
}

TEST(Math, Conditions) {
  const auto got = computed(s32, s32, ramp(0, 1), "sm_80", [](Builder&, Scalar v) {
    const Scalar low = v < 8, high = v >= 24, odd = v % 2 == 1;
    return select((low || high) && !odd, 1, 0) + select(!(low && true) || false, 2, 0);
  });
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)],
              ((i < 8 || i >= 24) && i % 2 == 0 ? 1 : 0) + (i < 8 ? 0 : 2));
}

TEST(Math, VariablesLikeScalars) {
  const auto got = computed(s32, s32, ramp(-4, 1), "sm_80", [](Builder& k, Scalar x) {
    auto v = k.variable(x);
    v += 3;
    v -= v / 2;
    v *= 4;
    v <<= 1;
    v >>= 1;
    v |= 1;
    v ^= 6;
    v &= 1023;
    v %= 100;
    return v + v - 2 * v + -v;
  });
  for (int i = 0; i < 32; ++i) {
    int v = i - 4 + 3;
    v -= v / 2;
    v = ((v * 4 | 1) ^ 6) & 1023;
    EXPECT_EQ(got[static_cast<std::size_t>(i)], -(v % 100));
  }
}

TEST(Math, OneOfTwoBodies) {
  const auto got = computed(s32, s32, ramp(0, 1), "sm_90a", [](Builder& k, Scalar x) {
    auto v = k.variable(x);
    k.when(
        x < 5, [&] { v = x * 10; }, [&] { v -= 100; });
    k.when(
        1, [&] { v += 1; }, [&] { v = 0; });
    k.when(
        0, [&] { v = 0; }, [&] { v += 1; });
    return Scalar(v);
  });
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], (i < 5 ? i * 10 : i - 100) + 2);
}

TEST(Math, LoopsWhile) {
  const auto got = computed(u32, u32, ramp(0, 3), "sm_80", [](Builder& k, Scalar x) {
    auto v = k.variable(x), steps = k.variable(k.constant(u32, 0));
    k.loop_while([&] { return v > 0; },
                 [&] {
                   v /= 2;
                   steps += 1;
                 });
    return Scalar(steps);
  });
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(got[i], std::bit_width(3 * i));
}

TEST(Math, EveryTypeHasAName) {
  EXPECT_EQ(name(e4m3), "e4m3");
  EXPECT_EQ(name(ue8m0), "ue8m0");
  EXPECT_EQ(name(f16x2), "f16x2");
}

TEST(Math, RejectsImpossibleOperands) {
  test::expect_told(
      [](Builder& k, const Scalar& i, const Scalar& x) {
        auto v = k.variable(i);
        v = i * 0.5;
        v = 0.5;
        k.loop(0, 2.5, 1, [](Scalar) {});
        k.when(0.5, [] {});
        k.when(
            x, [] {}, [] {});
        k.loop_while([] { return Scalar(1); }, [] {});
        k.loop_while([&] { return i; }, [] {});
        k.write(k.global("s", s32, row_major(1, 1)), 0, 0, 2.0);
        k.when(i && i < 3, [] {});
        k.convert(0.5, s32);
        floor(i), abs(i < 3), sign(i), exp(i);
      },
      {"a value of type u32 and the constant 0.5 in one expression",
       "the constant 0.5 where a value of type u32 is expected",
       "the loop's bound: expected an integer, found the constant 2.5",
       "such as a comparison, found the constant 0.5",
       "such as a comparison, found a value of type f32",
       "loop_while: the condition is always true",
       "such as a comparison, found a value of type u32", "where a value of type s32 is expected",
       "floor: expected f16, bf16, f32 or f64, found a value of type u32",
       "abs: expected an integer",
       "sign: expected a signed integer or f32, found a value of type u32",
       "expected an f32 operand, found a value of type u32"});
}

}  // namespace
}  // namespace tartan
