// SPDX-License-Identifier: Apache-2.0
// tests/dsl/roles_testing.h - a product with producers and consumers around the body of a test, its
// run and what it must give.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tartan/tartan.h"
#include "tests/support/engine.h"
#include "tests/support/numbers.h"

namespace tartan::roles_testing {

inline constexpr int size = 64;

inline int element_a(int i) { return i * 7 % 13 - 6; }
inline int element_b(int i) { return i * 5 % 7 - 3; }

// The kernel around a test's body: C = A * B with tiles of 64 x 64 x 64.
struct Parts {
  Builder& k;
  TiledMma mma;
  Global a, b, c;
  Ring sa, sb;
  Accumulator sum;

  void add(const Scalar& stage) { sum = mma(sum, sa[stage], sb[stage]); }
  void fill(const Scalar& t, const Scalar& stage) {
    k.copy(a.tile({0, t}, {size, size}), sa[stage]);
    k.copy(b.tile({t, 0}, {size, size}), sb[stage]);
  }
};
using Body = std::function<void(Parts&)>;

inline Kernel product(int depth, const Body& body, int producers = 4, int stages = 2) {
  return kernel("product", {.block = 128, .producers = producers}, [=](Builder& k) {
    const Tile tile{.m = size, .n = size, .k = size, .warps_m = 4, .warps_n = 1};
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto a = k.global("A", f16, row_major(size, depth)),
         b = k.global("B", f16, col_major(depth, size)),
         c = k.global("C", f32, row_major(size, size));
    auto sa = k.shared("sA", f16, mma.shared_a(stages)),
         sb = k.shared("sB", f16, mma.shared_b(stages));
    Parts parts{k, mma, a, b, c, sa, sb, mma.accumulator()};
    body(parts);
  });
}

inline Target target_of(const char* name) {
  Target target = *Target::parse(name);
  target.ptx = {9, 0};  // which the assembler of CUDA 13.0 takes
  return target;
}

class RolesTest : public testing::TestWithParam<const char*> {
 protected:
  // The contents of C, which held sevens before. A is four matrices long.
  std::vector<double> run(int depth, const Body& body, int stages = 2) {
    const auto compiled = compile(product(depth, body, 4, stages), target_of(GetParam()));
    EXPECT_TRUE(compiled) << compiled.diags().text();
    if (!compiled) return {};
    Device device = test::open_engine({.max_steps = 3'000'000});
    LoadedKernel kernel = *device.load(compiled->ptx)->kernel("product");
    const auto buffer = [&](Type type, int count, auto element) {
      std::vector<int> values;
      for (int i = 0; i < count; ++i) values.push_back(element(i));
      const auto bytes = testing_numbers::encode(type, values);
      Buffer out = *device.allocate(bytes.size());
      EXPECT_TRUE(out.write(bytes));
      return out;
    };
    const Buffer a = buffer(f16, 4 * size * depth, element_a),
                 b = buffer(f16, depth * size, element_b),
                 c = buffer(f32, size * size, [](int) { return 7; });
    const auto started = launch(kernel, *compiled, {}, Arguments().add(a).add(b).add(c));
    EXPECT_TRUE(started) << started.diags().text();
    const auto done = device.synchronize();
    EXPECT_TRUE(done) << done.diags().text();
    for (const Finding& finding : device.findings())
      ADD_FAILURE() << finding.id << ": " << finding.message;
    return testing_numbers::decode(f32, *c.read_all<std::byte>());
  }

  // The sum over columns [first, last) of A, starting at element `from`.
  static std::vector<double> expected(int depth, int first, int last,
                                      std::initializer_list<int> from = {0}) {
    std::vector<double> out;
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        int sum = 0;
        for (const int begin : from)
          for (int q = first; q < last; ++q)
            sum += element_a(begin + i * depth + q) * element_b(j * depth + q);
        out.push_back(sum);
      }
    return out;
  }

  std::string refusal(int depth, const Body& body, int producers = 4) {
    const auto compiled = compile(product(depth, body, producers), target_of(GetParam()));
    return compiled ? "" : compiled.diags().text();
  }
  void expect_refused(const Body& body, std::string_view part, std::string_view id) {
    const std::string text = refusal(2 * size, body);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find(id), std::string::npos) << text;
    EXPECT_NE(text.find("tests/dsl/roles_"), std::string::npos) << text;
  }
};

}  // namespace tartan::roles_testing
