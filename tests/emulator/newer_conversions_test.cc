// SPDX-License-Identifier: Apache-2.0
// The conversions that PTX 9.1 to 9.4 added, beside the nearest number found among all that a
// format has.
#include <bit>
#include <cmath>

#include "tests/emulator/evaluation.h"
#include "tests/emulator/small_formats.h"

namespace tartan {
namespace {

using namespace test;

// ---- cvt.

TEST(NewerConversions, FromPairsOf16BitsAreTheNearestNumbers) {
  const auto numbers = bfloats(), sources = pairs(numbers, 16);
  for (const Format& from : {of_bfloat, of_half})
    for (const Format& to : small_formats)
      for (const bool relu : {false, true})
        for (const bool to_zero : {false, true}) {
          const std::string text =
              fmt::format("cvt.{}.satfinite{}.{}.{} d, s0;", to_zero ? "rz" : "rn",
                          relu ? ".relu" : "", to.name, from.name);
          const auto got = evaluate(text, held(2 * to.bits), {{"b32", sources}});
          ASSERT_EQ(got.complaint, "") << text;
          const bool old = from.mantissa == 10 && to.largest > 0x1F && !to_zero;
          EXPECT_EQ(got.trust.level == "documented", !old) << text;
          const Mode mode{.to_zero = to_zero, .relu = relu};
          for (std::size_t i = 0; i < sources.size(); ++i)
            ASSERT_EQ(got.out[i],
                      pair(rounded(to, number(from, sources[i] >> 16), mode),
                           rounded(to, number(from, sources[i] & 0xFFFF), mode), to.bits))
                << text << fmt::format(" of {:x}", sources[i]);
        }
}

TEST(NewerConversions, ToBfloatsAreMultipliedByTheirScales) {
  for (const Format& from : {of_e4m3, of_e5m2, of_e2m3, of_e3m2, of_e2m1, of_ue5m3})
    for (const char* words : {"", ".satfinite", ".relu", ".satfinite.relu"}) {
      const std::string_view modifiers = words;
      if (!from.has_sign && modifiers.find("relu") != modifiers.npos) continue;
      std::vector<std::uint64_t> sources, scales;
      const std::uint32_t codes = 1u << (from.has_sign ? from.exponent + from.mantissa + 1 : 8);
      for (std::uint32_t code = 0; code < codes; ++code)
        for (const std::uint32_t factor : {0u, 1u, 10u, 64u, 120u, 127u, 128u, 140u, 250u, 255u}) {
          sources.push_back(pair(code, (code * 7 + 3) % codes, from.bits));
          scales.push_back(factor << 8 | (factor + code) % 256);
        }
      const std::string text =
          fmt::format("cvt.rn{}.scaled::n2::ue8m0.bf16x2.{} d, s0, s1;", words, from.name);
      const auto got = evaluate(text, "b32", {{held(2 * from.bits), sources}, {"b16", scales}});
      ASSERT_EQ(got.complaint, "") << text;
      const Mode mode{.satfinite = modifiers.find("satfinite") != modifiers.npos,
                      .relu = modifiers.find("relu") != modifiers.npos};
      const std::uint64_t ones = (1u << from.bits) - 1;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto element = [&](std::uint64_t bits, std::uint64_t factor) {
          return rounded(
              of_bfloat,
              number(from, static_cast<std::uint32_t>(bits & ones)) * scale(factor & 0xFF), mode);
        };
        ASSERT_EQ(got.out[i], pair(element(sources[i] >> from.bits, scales[i] >> 8),
                                   element(sources[i], scales[i]), 16))
            << text << fmt::format(" of {:x}, {:x}", sources[i], scales[i]);
      }
    }
}

// Without a scale a pair of bf16 has every number of the small formats.
TEST(NewerConversions, ToBfloatsWithoutScalesAreExact) {
  for (const Format& from : small_formats) {
    std::vector<std::uint64_t> sources;
    for (std::uint32_t code = 0; code < 1u << (from.exponent + from.mantissa + 1); ++code)
      sources.push_back(pair(code, code ^ 1, from.bits));
    const std::string text = fmt::format("cvt.rn.bf16x2.{} d, s0;", from.name);
    const auto got = evaluate(text, "b32", {{held(2 * from.bits), sources}});
    ASSERT_EQ(got.complaint, "") << text;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const double upper = number(from, static_cast<std::uint32_t>(i)),
                   lower = number(from, static_cast<std::uint32_t>(i) ^ 1);
      const double got_upper = as_float(got.out[i] & 0xFFFF0000),
                   got_lower = as_float(got.out[i] << 16);
      EXPECT_TRUE(got_upper == upper || (std::isnan(upper) && std::isnan(got_upper))) << text << i;
      EXPECT_TRUE(got_lower == lower || (std::isnan(lower) && std::isnan(got_lower))) << text << i;
    }
  }
}

// The fixed-point number whose distance is least; of two the even one.
std::uint32_t fixed(double x, const Mode& mode) {
  if (std::isnan(x)) return 0x7F;
  if (mode.relu && std::signbit(x)) return 0;
  x = std::fmin(std::fmax(x, -3), 3);
  int best = -128;
  for (int k = -128; k <= 127; ++k) {
    const double distance = std::fabs(k / 64.0 - x), least = std::fabs(best / 64.0 - x);
    if (mode.to_zero ? std::fabs(k / 64.0) <= std::fabs(x) && (k == 0 || (k < 0) == (x < 0)) &&
                           (std::fabs(best / 64.0) > std::fabs(x) || (best < 0) != (x < 0) ||
                            distance < least)
                     : distance < least || (distance == least && k % 2 == 0))
      best = k;
  }
  if (std::isinf(x)) best = x < 0 ? -128 : 127;
  return static_cast<std::uint32_t>(best) & 0xFF;
}

TEST(NewerConversions, FixedPointNumbersAreTheNearest) {
  const auto a = floats(), b = turned(a, 5);
  std::vector<std::uint64_t> scales;
  for (std::size_t i = 0; i < a.size(); ++i)
    scales.push_back((120 + i % 16) << 8 | (i % 50 ? 130 - i % 7 : 255));
  for (const bool relu : {false, true})
    for (const bool to_zero : {false, true})
      for (const bool scaled : {false, true}) {
        const std::string text = fmt::format(
            "cvt.{}.satfinite{}{}.s2f6x2.f32 d, s0, s1{};", to_zero ? "rz" : "rn",
            relu ? ".relu" : "", scaled ? ".scaled::n2::ue8m0" : "", scaled ? ", s2" : "");
        const auto got = evaluate(text, "b16", {{"b32", a}, {"b32", b}, {"b16", scales}});
        ASSERT_EQ(got.complaint, "") << text;
        const Mode mode{.to_zero = to_zero, .relu = relu};
        for (std::size_t i = 0; i < a.size(); ++i) {
          const double upper = scaled ? scale(scales[i] >> 8) : 1,
                       lower = scaled ? scale(scales[i] & 0xFF) : 1;
          ASSERT_EQ(got.out[i], pair(fixed(as_float(a[i]) / upper, mode),
                                     fixed(as_float(b[i]) / lower, mode), 8))
              << text << fmt::format(" of {:x}, {:x}, {:x}", a[i], b[i], scales[i]);
        }
      }
}

// What CUTLASS makes of it: signed bytes become bf16 by a scale of 64.
TEST(NewerConversions, SignedBytesBecomeBfloatsByAScaleOf64) {
  std::vector<std::uint64_t> sources;
  for (std::uint64_t i = 0; i < 256; ++i) sources.push_back((255 - i) << 8 | i);
  const auto got = evaluate("cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.s2f6x2 d, s0, s1;", "b32",
                            {{"b16", sources}, {"b16", std::vector<std::uint64_t>(256, 0x8585)}});
  ASSERT_EQ(got.complaint, "");
  for (std::uint64_t i = 0; i < 256; ++i) {
    EXPECT_EQ(as_float(got.out[i] << 16), static_cast<double>(static_cast<std::int8_t>(i)));
    EXPECT_EQ(as_float(got.out[i] & 0xFFFF0000),
              static_cast<double>(static_cast<std::int8_t>(255 - i)));
  }
}

TEST(NewerConversions, OneScaleDividesBothNumbers) {
  const auto a = floats(), b = turned(a, 7);
  std::vector<std::uint64_t> scales;
  for (std::size_t i = 0; i < a.size(); ++i) scales.push_back(i % 40 ? 118 + i % 18 : i % 256);
  const auto flushed = [](double x) { return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; };
  for (const Format& to : {of_e4m3, of_e5m2, of_e2m3, of_e3m2, of_e2m1, of_ue5m3})
    for (const char* words : {"rn.satfinite", "rz.satfinite.relu", "rn.satfinite.pzo"}) {
      const std::string_view modifiers = words;
      if (!to.has_sign && modifiers != "rn.satfinite") continue;
      const std::string text =
          fmt::format("cvt.{}.scaled::n1::ue8m0.{}.f32 d, s0, s1, s2;", words, to.name);
      const auto got = evaluate(text, held(2 * to.bits), {{"b32", a}, {"b32", b}, {"b8", scales}});
      ASSERT_EQ(got.complaint, "") << text;
      const Mode mode{.to_zero = modifiers.starts_with("rz"),
                      .relu = modifiers.ends_with("relu"),
                      .pzo = modifiers.ends_with("pzo")};
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double by = scale(static_cast<std::uint32_t>(scales[i]));
        ASSERT_EQ(got.out[i], pair(rounded(to, flushed(as_float(a[i])) / by, mode),
                                   rounded(to, flushed(as_float(b[i])) / by, mode), to.bits))
            << text << fmt::format(" of {:x}, {:x}, {:x}", a[i], b[i], scales[i]);
      }
    }
}

// Too large for ue5m3, which has no infinity, is NaN.
TEST(NewerConversions, UnsignedNumbersThatAreTooLargeAreNan) {
  const auto a = floats(), b = turned(a, 3);
  for (const bool to_zero : {false, true})
    for (const bool satfinite : {false, true}) {
      const std::string text = fmt::format("cvt.{}{}.ue5m3x2.f32 d, s0, s1;", to_zero ? "rz" : "rn",
                                           satfinite ? ".satfinite" : "");
      const auto got = evaluate(text, "b16", {{"b32", a}, {"b32", b}});
      ASSERT_EQ(got.complaint, "") << text;
      const Mode mode{.to_zero = to_zero, .satfinite = satfinite};
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got.out[i], pair(rounded(of_ue5m3, as_float(a[i]), mode),
                                   rounded(of_ue5m3, as_float(b[i]), mode), 8))
            << text << fmt::format(" of {:x}, {:x}", a[i], b[i]);
    }
}

}  // namespace
}  // namespace tartan
