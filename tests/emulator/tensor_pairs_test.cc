// SPDX-License-Identifier: Apache-2.0
// Products of pairs of CTAs (tcgen05 with .cta_group::2) against a model written apart: each kind
// with M 128 and 256, dense, sparse and scaled, in random layouts and at awkward sizes.
// TARTAN_TENSOR_CASES asks for so many random cases of each kind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "runtime/emulator/schedules/exploration.h"
#include "tests/emulator/tensor_pair_gemm.h"

namespace tartan::test::tensor {
namespace {

struct Kind {
  std::string kind;
  std::vector<std::string> types, results;
  bool mixed = false;  // of A and B, apart
};
const Kind kinds[] = {
    {"f16", {"f16", "bf16"}, {"f32", "f16"}},
    {"tf32", {"tf32"}, {"f32"}},
    {"f8f6f4", {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}, {"f32", "f16"}, true},
    {"i8", {"u8", "s8"}, {"s32"}, true},
    {"mxf8f6f4", {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}, {"f32"}, true},
    {"mxf4", {"e2m1"}, {"f32"}},
    {"mxf4nvf4", {"e2m1"}, {"f32"}},
};

void choose_scales(Gemm& g, std::mt19937& random) {
  g.half = 0;
  if (g.kind == "mxf8f6f4") {
    g.vector = random() % 2 ? "" : ".block32";
    g.scales = 1;
    g.scale_id = static_cast<int>(random() % 4);
    return;
  }
  g.layout_a.mn_major = g.layout_b.mn_major = false;
  const bool sixteens = g.kind == "mxf4nvf4" && random() % 2;
  g.scales = sixteens ? 4 : 2;
  g.scale_id = sixteens ? 0 : static_cast<int>(random() % 2) * 2;
  g.ue4m3 = sixteens && random() % 2;
  g.vector = sixteens ? ".block16" : ".block32";
}

Layout random_layout(std::mt19937& random, int container) {
  constexpr int widths[] = {0, 32, 64, 128};
  const bool mn_major = random() % 2;
  if (mn_major && container == 32) return {128, true};
  return {widths[random() % 4], mn_major};
}

PairGemm random_pair(const Kind& kind, int m, std::mt19937& random) {
  const auto one_of = [&](const auto& list) { return list[random() % list.size()]; };
  PairGemm pair{.whole = {}, .issuer = static_cast<int>(random() % 2)};
  Gemm& g = pair.whole;
  g.kind = kind.kind;
  g.a = one_of(kind.types);
  g.b = kind.mixed ? one_of(kind.types) : g.a;
  g.d = g.a == "bf16" ? "f32" : one_of(kind.results);
  g.m = m;
  g.steps = 1 + static_cast<int>(random() % 2);
  g.layout_a = random_layout(random, g.container(g.a));
  g.layout_b = random_layout(random, g.container(g.b));
  g.n = 16 * (1 + static_cast<int>(random() % 5));
  const bool even = g.kind == "i8" || (g.layout_b.mn_major && g.container(g.b) == 8);
  if (even && g.n % 32) g.n += 16;
  g.a_in_tensor = random() % 4 == 0;
  if (g.a_in_tensor) g.layout_a.mn_major = false;
  g.accumulates = random() % 2;
  g.saturates = g.kind == "i8" && random() % 2;
  if (g.kind != "i8") {
    g.negates_a = random() % 4 == 0;
    g.negates_b = random() % 4 == 0;
  }
  g.sparse = random() % 3 == 0 && (m == 256 || !g.scaled());
  if (g.sparse && g.layout_b.width == 32) g.layout_b.width = 64;  // 64 bytes of B along k
  if (rows_of(g) == Rows::scattered) g.half = random() % 2 ? 16 : 0;
  if (g.scaled()) choose_scales(g, random);
  if (!g.scaled() && g.accumulates && random() % 3 == 0)
    for (int i = 0; i < 8; ++i) g.disabled.push_back(static_cast<std::uint32_t>(random()));
  if ((g.kind == "f16" || g.kind == "tf32") && random() % 4 == 0)
    g.scale_d = static_cast<int>(random() % 16);
  fill(g, random);
  return pair;
}

int cases(int usual) {
  const char* const asked = std::getenv("TARTAN_TENSOR_CASES");
  return asked ? std::atoi(asked) : usual;
}

TEST(EmulatorTensorPairs, EqualTheModelInRandomCases) {
  for (const Kind& kind : kinds)
    for (const int m : {128, 256}) {
      std::mt19937 random(static_cast<unsigned>(m));
      for (int i = 0; i < cases(4); ++i) {
        const PairGemm pair = random_pair(kind, m, random);
        ASSERT_EQ(difference(pair), "")
            << "case " << i << ", issued by " << pair.issuer << ": " << text(pair.whole);
      }
    }
}

TEST(EmulatorTensorPairs, EqualTheModelAtAwkwardSizes) {
  for (const Kind& kind : kinds)
    for (const int m : {128, 256})
      for (const int n : {16, 48, 208, 256})
        for (const bool sparse : {false, true}) {
          const bool scaled = kind.kind.starts_with("mx");
          if ((kind.kind == "i8" && n % 32) || (scaled && sparse && m == 128)) continue;
          if (n == 208 && sparse) continue;
          std::mt19937 random(static_cast<unsigned>(m + n));
          PairGemm pair;
          Gemm& g = pair.whole;
          g = {.kind = kind.kind, .a = kind.types[0], .b = kind.types[0], .d = kind.results[0]};
          g.m = m;
          g.n = n;
          g.sparse = sparse;
          g.layout_a = g.layout_b = {n == 48 ? 0 : 128, false};
          if (scaled) choose_scales(g, random);
          fill(g, random);
          ASSERT_EQ(difference(pair), "") << text(g);
        }
}

// Commits arrive late, and the CTAs come in other orders.
TEST(EmulatorTensorPairs, EqualTheModelUnderSchedules) {
  std::mt19937 random(3);
  for (const Kind& kind : kinds) {
    const PairGemm pair = random_pair(kind, random() % 2 ? 128 : 256, random);
    for (const char* schedule : {"1", "2"})
      ASSERT_EQ(difference(pair, {.schedule = schedule, .checks = Checks::all}), "")
          << text(pair.whole);
  }
}

TEST(EmulatorTensorPairs, AreDecidedWithoutOtherOrders) {
  std::mt19937 random(3);
  for (const int issuer : {0, 1}) {
    PairGemm pair{.whole = {.m = 256, .n = 32, .steps = 2}, .issuer = issuer};
    fill(pair.whole, random);
    const auto exploration = std::make_shared<detail::Exploration>();
    exploration->proves = true;
    EXPECT_EQ(difference(pair, {.exploration = exploration, .checks = Checks::all}), "");
    for (const detail::Obstacle& each : exploration->obstacles) ADD_FAILURE() << each.text;
  }
}

}  // namespace
}  // namespace tartan::test::tensor
