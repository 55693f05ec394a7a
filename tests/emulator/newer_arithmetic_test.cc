// SPDX-License-Identifier: Apache-2.0
// The arithmetic that PTX 9.2 to 9.5 added, beside the manual's definitions written out.
#include <bit>
#include <cmath>

#include "tests/emulator/evaluation.h"
#include "tests/emulator/small_formats.h"

namespace tartan {
namespace {

using namespace test;

// ---- Arithmetic on four numbers of eight bits.

TEST(NewerArithmetic, SmallFloatsAreRoundedOnce) {
  struct Four {
    Format format;
    const char* name;
    const char* held;
  };
  const Four e4m3x4{of_e4m3, "e4m3x4", "b32"}, e5m2x4{of_e5m2, "e5m2x4", "b32"};
  const Four all[] = {e4m3x4,
                      e5m2x4,
                      {of_e3m2, "e3m2x4", "b32"},
                      {of_e2m3, "e2m3x4", "b32"},
                      {{"", 2, 1, 8, 0x7, 0x7, false, true}, "e2m1p4x4", "b32"},
                      {of_e2m1, "e2m1x4", "b16"},
                      {{"", 8, 0, 8, 0xFE, 0xFF, false, false}, "ue8m0x4", "b32"}};
  std::uint32_t seed = 7;
  const auto words = [&](const Four& of) {
    std::vector<std::uint64_t> out;
    for (int i = 0; i < 320; ++i) {
      seed = seed * 1664525 + 1013904223;
      std::uint64_t word = seed >> 1 ^ seed << 16;
      if (of.format.exponent == 8) word = 0x70707070 | (word & 0x1F1F1F1F);  // not far from 1
      out.push_back(word & (of.held[1] == '1' ? 0xFFFFu : 0xFFFFFFFFu));
    }
    out[3] = of.format.exponent == 8 ? 0xFFFF : out[3];
    return out;
  };
  const auto element = [](const Four& of, std::uint64_t word, int i) {
    const auto bits = static_cast<std::uint32_t>(word >> i * of.format.bits);
    if (of.format.exponent == 8) return scale(bits & 0xFF);
    return number(of.format, bits & ((2u << (of.format.exponent + of.format.mantissa)) - 1));
  };
  for (const Four& to : {e4m3x4, e5m2x4})
    for (const Four& first : all)
      for (const Four& second : all)
        for (const char* opcode : {"add", "sub", "mul", "fma"}) {
          const std::string name = opcode;
          const bool sum = name == "add" || name == "sub", fused = name == "fma";
          if (sum && &second != &all[0]) continue;
          const bool satfinite = (seed >> 8) % 2;
          const auto a = words(first), b = words(second), c = words(to);
          const std::string text =
              fmt::format("{}{}.{}.{}{} d, s0, {};", name, satfinite ? ".rn.satfinite" : "",
                          to.name, first.name, sum ? "" : fmt::format(".{}", second.name),
                          sum     ? "s2"
                          : fused ? "s1, s2"
                                  : "s1");
          const auto got =
              evaluate(text, "b32", {{first.held, a}, {second.held, b}, {"b32", c}}, "sm_100a");
          ASSERT_EQ(got.complaint, "") << text;
          EXPECT_EQ(got.trust.level, "documented");
          for (std::size_t i = 0; i < a.size(); ++i)
            for (int k = 0; k < 4; ++k) {
              long double x = element(first, a[i], k);
              if (!sum) x *= element(second, b[i], k);
              if (sum || fused) {
                const long double y = element(to, c[i], k);
                x = name == "sub" ? x - y : x + y;
              }
              Mode mode{.satfinite = satfinite};
              // 64 bits hold such a sum; its first 53 and a bit for the others round as it does.
              double kept = static_cast<double>(x);
              if (static_cast<long double>(kept) != x && !std::isnan(kept)) {
                if (std::fabs(static_cast<long double>(kept)) > std::fabs(x))
                  kept = std::nextafter(kept, 0.0);
                kept = std::bit_cast<double>(std::bit_cast<std::uint64_t>(kept) | 1);
              }
              ASSERT_EQ(got.out[i] >> 8 * k & 0xFF, rounded(to.format, kept, mode))
                  << text << fmt::format(" element {} of {:x}, {:x}, {:x}", k, a[i], b[i], c[i]);
            }
        }
}

// ---- Integers.

std::vector<std::uint64_t> random_words(std::uint64_t seed) {
  std::vector<std::uint64_t> out = {0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x80007FFF, 0x01FF7F80};
  for (int i = 0; i < 500; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out.push_back(i % 5 ? seed >> 32 : seed >> 32 & 0x81818181);
  }
  return out;
}

// One element, in plain arithmetic; text is the instruction.
std::int64_t computed(const std::string& text, std::int64_t a, std::int64_t b, int bits,
                      bool is_signed) {
  const auto has = [&](const char* word) { return text.find(word) != text.npos; };
  const std::int64_t ones = (std::int64_t{1} << bits) - 1;
  if (has("set.")) {
    const bool less = a < b, same = a == b;
    const bool holds = has("eq")                  ? same
                       : has("ne")                ? !same
                       : has("lt") || has(".lo.") ? less
                       : has("le") || has(".ls.") ? less || same
                       : has("gt") || has(".hi.") ? !less && !same
                                                  : !less;
    return holds ? ones : 0;
  }
  std::int64_t out = has("add") ? a + b : has("sub") ? a - b : has("neg") ? -a : 0;
  if (has("min")) out = a < b ? a : b;
  if (has("max")) out = a < b ? b : a;
  if (has(".relu") && out < 0) out = 0;
  const std::int64_t high = is_signed ? ones >> 1 : ones, low = is_signed ? -high - 1 : 0;
  if (has(".sat")) out = out > high ? high : out < low ? low : out;
  return out & ones;
}

TEST(NewerArithmetic, ElementsOfARegisterAreIndependent) {
  struct Case {
    const char* type;
    int bits;
    bool is_signed;
    std::vector<std::string> opcodes;
  };
  const Case cases[] = {
      {"u8x4",
       8,
       false,
       {"add", "add.sat", "sub", "sub.sat", "min", "max", "set.eq", "set.ne", "set.lt", "set.le",
        "set.gt", "set.ge", "set.lo", "set.ls", "set.hi", "set.hs"}},
      {"s8x4",
       8,
       true,
       {"add", "add.sat", "sub", "sub.sat", "min", "max", "min.relu", "max.relu", "neg", "set.eq",
        "set.ne", "set.lt", "set.le", "set.gt", "set.ge"}},
      {"u16x2", 16, false, {"add.sat", "set.eq", "set.lo", "set.hs"}},
      {"s16x2", 16, true, {"add.sat", "set.lt", "set.ge"}},
      {"u32", 32, false, {"add.sat"}},
  };
  const auto a = random_words(1), b = random_words(2);
  for (const Case& each : cases)
    for (const std::string& opcode : each.opcodes) {
      const std::string text =
          fmt::format("{}.{} d, s0{};", opcode, each.type, opcode == "neg" ? "" : ", s1");
      const auto got = evaluate(text, "b32", {{"b32", a}, {"b32", b}});
      ASSERT_EQ(got.complaint, "") << text;
      EXPECT_EQ(got.trust.level, "documented") << text;
      for (std::size_t i = 0; i < a.size(); ++i) {
        std::uint64_t wanted = 0;
        for (int at = 0; at < 32; at += each.bits) {
          const auto part = [&](std::uint64_t word) {
            const auto bits = static_cast<std::int64_t>(word >> at & ((1ull << each.bits) - 1));
            return each.is_signed && bits >> (each.bits - 1) ? bits - (1ll << each.bits) : bits;
          };
          wanted |= static_cast<std::uint64_t>(
                        computed(text, part(a[i]), part(b[i]), each.bits, each.is_signed))
                    << at;
        }
        ASSERT_EQ(got.out[i], wanted) << text << fmt::format(" of {:x}, {:x}", a[i], b[i]);
      }
    }
}

TEST(NewerArithmetic, ProductsWithoutCarries) {
  std::vector<std::uint64_t> a = {0, 1, ~0ull, 1ull << 63, 3, 0x8000000000000001}, b, c;
  std::uint64_t seed = 99;
  for (int i = 0; i < 200; ++i) a.push_back(seed = seed * 6364136223846793005u + 12345);
  b = turned(a, 1), c = turned(a, 17);
  for (const bool high : {false, true}) {
    const auto got = evaluate(high ? "clmad.hi.u64 d, s0, s1, s2;" : "clmad.lo.s64 d, s0, s1, s2;",
                              "b64", {{"b64", a}, {"b64", b}, {"b64", c}});
    ASSERT_EQ(got.complaint, "");
    EXPECT_EQ(got.trust.level, "documented");
    for (std::size_t i = 0; i < a.size(); ++i) {
      // The coefficients of the product of two polynomials.
      std::uint64_t wanted = c[i];
      for (int k = 0; k < 64; ++k) {
        const int power = high ? k + 64 : k;
        int ones = 0;
        for (int j = 0; j <= power; ++j)
          if (j < 64 && power - j < 64) ones += (a[i] >> j & 1) & (b[i] >> (power - j) & 1);
        wanted ^= static_cast<std::uint64_t>(ones % 2) << k;
      }
      ASSERT_EQ(got.out[i], wanted) << i;
    }
  }
}

// ---- sin and cos of turns.

TEST(NewerFunctions, SineAndCosineOfTurns) {
  std::vector<std::uint64_t> x;
  for (int i = -64; i <= 64; ++i)
    x.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(i) / 16));
  for (int i = 0; i < 2000; ++i)
    x.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(i - 1000) * 0.01237f));
  x.push_back(0x7F800000);  // infinity
  x.push_back(0x7FC00000);
  x.push_back(0x00000001);  // .ftz
  for (const bool sine : {true, false}) {
    const auto got =
        evaluate(sine ? "sin.approx.ftz.2pi.f32 d, s0;" : "cos.approx.ftz.2pi.f32 d, s0;", "b32",
                 {{"b32", x}});
    ASSERT_EQ(got.complaint, "");
    EXPECT_EQ(got.trust.level, "documented");
    for (std::size_t i = 0; i + 3 < x.size(); ++i) {
      const long double turns = std::remainder(static_cast<long double>(as_float(x[i])), 1.0L),
                        angle = turns * 6.283185307179586476925286766559L;
      const long double wanted = sine ? std::sin(angle) : std::cos(angle);
      EXPECT_NEAR(as_float(got.out[i]), static_cast<double>(wanted), 0x1p-25) << as_float(x[i]);
      if (i % 4 == 0 && i <= 128) {  // quarters of a turn
        constexpr int of_quarter[] = {0, 1, 0, -1};
        const int quarter = (static_cast<int>(i) / 4 + (sine ? 0 : 1)) % 4;
        EXPECT_EQ(as_float(got.out[i]), of_quarter[quarter]) << as_float(x[i]);
      }
    }
    EXPECT_TRUE(std::isnan(as_float(got.out[x.size() - 3])));
    EXPECT_TRUE(std::isnan(as_float(got.out[x.size() - 2])));
    EXPECT_EQ(as_float(got.out[x.size() - 1]), sine ? 0 : 1);
  }
}

}  // namespace
}  // namespace tartan
