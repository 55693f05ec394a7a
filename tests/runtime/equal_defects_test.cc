// SPDX-License-Identifier: Apache-2.0
// Pairs of tests/data/defects that `tartan equal` once called the same function, compiled by nvcc.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "runtime/equal.h"

namespace tartan {
namespace {

Manifest manifest_of(const std::string& name) {
  auto manifest = read_manifest(TEST_DATA "/defects/" + name + ".json");
  EXPECT_TRUE(manifest) << (manifest ? "" : manifest.diags().text());
  return manifest ? *std::move(manifest) : Manifest{};
}

Equality compared(const char* a, const char* b, std::uint64_t seed) {
  return equal(manifest_of(a), manifest_of(b), {.seed = seed, .explain = 0});
}

TEST(EqualDefects, DifferentFunctions) {
  constexpr std::pair<const char*, const char*> pairs[] = {
      {"equal/deq_row", "equal/deq_col"},     {"equal/deq_row", "equal/deq_unsigned"},
      {"equal/f_deq_row", "equal/f_deq_col"}, {"equal/t_ifl", "equal/t_ifl2"},
      {"equal/t_ga", "equal/t_gc"},           {"equal/t_la", "equal/t_lc"},
      {"equal/t_ma", "equal/t_mb"},           {"equal/t_qa", "equal/t_qb"},
      {"equal/t_d4", "equal/t_d4b"},          {"equal/bias_relu", "equal/bias_relu6"},
      {"equal/ident", "equal/clamp100"},      {"equal/t_c0", "equal/t_c1"},
      {"equal/t_c0", "equal/t_c6"},           {"equal/neg_one", "equal/sqrt_one"},
      {"equal/ident_one", "equal/sqrt_one"}};
  for (const auto& [a, b] : pairs)
    for (const std::uint64_t seed : {1, 2}) {
      const Equality out = compared(a, b, seed);
      EXPECT_EQ(out.verdict, Equality::Verdict::different)
          << a << ", " << b << ", seed " << seed << '\n'
          << out.complaints(false) << out.text();
    }
}

TEST(EqualDefects, NobodyKnows) {
  for (const auto& [a, b] : {std::pair("equal/softplus", "equal/softplus_thr"),
                             std::pair("equal/f_gemm16", "equal/f_gemm_splitk")}) {
    const Equality out = compared(a, b, 1);
    EXPECT_EQ(out.verdict, Equality::Verdict::undecided) << a << '\n' << out.text();
  }
}

TEST(EqualDefects, WhatRunRejectsIsNotCompared) {
  const Equality out = compared("31/wrong", "31/right", 1);
  EXPECT_EQ(out.exit_code(), 3) << out.complaints(false) << out.text();
}

}  // namespace
}  // namespace tartan
