// SPDX-License-Identifier: Apache-2.0
// The host references, against results computed by hand.
#include "tartan/runtime/reference.h"

#include <gtest/gtest.h>

#include <limits>

#include "tartan/runtime/host_types.h"

namespace tartan {
namespace {

using Doubles = std::vector<double>;

TEST(Reference, ProductTakesBothMajorOrdersAndLeadingDimensions) {
  const std::vector<int> a{1, 2, 3, 4, 5, 6};                // 2 x 3
  const std::vector<int> b{7, 9, 11, 8, 10, 12};             // 3 x 2, columns contiguous
  const std::vector<int> padded{7, 8, 0, 9, 10, 0, 11, 12};  // the same, rows 3 apart
  const auto A = reference::row_major(a, 2, 3);
  EXPECT_EQ(reference::product(A, reference::col_major(b, 3, 2)), (Doubles{58, 64, 139, 154}));
  EXPECT_EQ(reference::product(A, reference::row_major(padded, 3, 2, 3)),
            (Doubles{58, 64, 139, 154}));
  EXPECT_EQ(reference::product(A.transposed(), A), (Doubles{17, 22, 27, 22, 29, 36, 27, 36, 45}));
}

TEST(Reference, ElementsMayBeHostTypes) {
  const std::vector<host::f16> a{host::f16(0.5), host::f16(-2)};
  EXPECT_EQ(reference::product(reference::row_major(a, 1, 2), reference::col_major(a, 2, 1)),
            (Doubles{4.25}));
}

TEST(Reference, SoftmaxOfRows) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Doubles x{0, std::log(3), 1000, 1000, -infinity, 5, -infinity, -infinity};
  const Doubles got = reference::softmax(reference::row_major(x, 4, 2));
  EXPECT_EQ(reference::difference(got, {0.25, 0.75, 0.5, 0.5, 0, 1, 0, 0}, 2, {1e-12}), "");
}

TEST(Reference, AttentionSeesTheKeysUpToTheQuery) {
  const Doubles q{0, 0}, k{1, 2, 3}, v{3, 6, 12};  // equal scores: the mean of what is seen
  const auto Q = reference::row_major(q, 2, 1), K = reference::row_major(k, 3, 1),
             V = reference::row_major(v, 3, 1);
  EXPECT_EQ(reference::difference(reference::attention(Q, K, V), {7, 7}, 1, {1e-12}), "");
  EXPECT_EQ(
      reference::difference(reference::attention(Q, K, V, {.causal = true}), {4.5, 7}, 1, {1e-12}),
      "");
  const Doubles one{1};  // weights 3 : 1 with ln 3 between the scores
  EXPECT_EQ(reference::difference(reference::attention(reference::row_major(one, 1, 1),
                                                       reference::row_major(Doubles{2, 1}, 2, 1),
                                                       reference::row_major(Doubles{8, 4}, 2, 1),
                                                       {.scale = std::log(3)}),
                                  {7}, 1, {1e-12}),
            "");
}

TEST(Reference, AttentionHasWindowsCapsAndSinks) {
  const Doubles q{0, 0}, k{1, 2, 3}, v{3, 6, 12};
  const auto Q = reference::row_major(q, 2, 1), K = reference::row_major(k, 3, 1),
             V = reference::row_major(v, 3, 1);
  const auto expect = [&](const reference::AttentionOptions& options, const Doubles& expected) {
    EXPECT_EQ(reference::difference(reference::attention(Q, K, V, options), expected, 1, {1e-12}),
              "");
  };
  expect({.causal = true, .window = 2}, {4.5, 9});
  expect({.causal = true, .window = 1}, {6, 12});
  expect({.causal = true, .window = 0}, {0, 0});
  expect({.causal = true, .sink = std::log(2)}, {9 / 4.0, 21 / 5.0});
  const Doubles one{1}, far{1e9, -1e9}, values{8, 4};  // ln 3 between the capped scores
  EXPECT_EQ(
      reference::difference(
          reference::attention(reference::row_major(one, 1, 1), reference::row_major(far, 2, 1),
                               reference::row_major(values, 2, 1), {.cap = std::log(3) / 2}),
          {7}, 1, {1e-12}),
      "");
}

TEST(Reference, DifferenceNamesTheFirstPlace) {
  const Doubles expected{1, 2, 3, 4};
  EXPECT_EQ(reference::difference(std::vector<float>{1, 2, 3.5, 5}, expected, 2),
            "2 of 4 elements differ; the first at (1, 0): expected 3, got 3.5");
  EXPECT_EQ(reference::difference(std::vector<float>{1, 2, 3.5, 5}, expected, 2, {0.1, 0.7}), "");
  EXPECT_EQ(reference::difference(std::vector<float>{1}, expected, 2),
            "expected 4 elements, got 1");
  const double nan = std::nan(""), infinity = HUGE_VAL;
  EXPECT_EQ(reference::difference(Doubles{nan, infinity}, {nan, infinity}, 2), "");
  EXPECT_NE(reference::difference(Doubles{nan, infinity}, {1, 1}, 2, {1, 1}), "");
  EXPECT_NE(reference::difference(Doubles{1, -infinity}, {nan, infinity}, 2, {1, 1}), "");
}

}  // namespace
}  // namespace tartan
