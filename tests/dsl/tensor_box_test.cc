// SPDX-License-Identifier: Apache-2.0
// Boxes of tensors of two to five dimensions, inside and beyond their edges, on the emulator with
// all checks, against loops in C++.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <random>

#include "tests/support/engine.h"

namespace tartan {
namespace {

struct Case {
  std::vector<int> extents, size;
  std::vector<std::vector<int>> origins;  // one for each stage
  bool fixed = false;                     // extents are constants
  bool swizzled = false;
  bool aligned = true;  // boxes, along the last dimension
};

int product(const std::vector<int>& of) {
  int out = 1;
  for (const int each : of) out *= each;
  return out;
}

// Copies box number t to tile t of the result; the origins are read from memory.
Kernel boxes(const Case& with, Type type, int producers) {
  return kernel("boxes", {.block = 128, .producers = producers}, [=](Builder& k) {
    const int rank = static_cast<int>(with.extents.size());
    const int cols = with.size.back(), rows = product(with.size) / cols;
    std::vector<Scalar> extents;
    for (int d = 0; d < rank; ++d)
      extents.push_back(with.fixed ? Scalar(with.extents[static_cast<std::size_t>(d)])
                                   : k.param(fmt::format("n{}", d), s32, d + 1 == rank ? 16 : 1));
    auto x = k.tensor("X", type, extents);
    const int count = static_cast<int>(with.origins.size());
    auto places = k.global("places", s32, row_major(count, rank));
    auto out = k.global("out", type, row_major(count * rows, cols));
    Layout layout = row_major(rows, cols);
    if (with.swizzled) layout = layout.swizzled({3, 3, 3});
    auto s = k.shared("s", type, RingLayout{layout, 2});
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, count,
          [&](Scalar t, Scalar stage) {
            std::vector<Scalar> origin;
            for (int d = 0; d < rank; ++d) origin.push_back(k.read(places, t, d));
            if (with.aligned) origin.back() = multiple_of(origin.back(), 128 / bits(type));
            k.copy_box(x, s[stage], origin, with.size);
          },
          [&](Scalar t, Scalar stage) {
            k.copy(s[stage], out.tile({t, 0}, {rows, cols}));
          });
    });
  });
}

template <typename T>
void expect_boxes(const Case& with, Type type) {
  const int rank = static_cast<int>(with.extents.size());
  std::vector<T> x(static_cast<std::size_t>(product(with.extents)));
  std::mt19937 random(5);
  for (T& each : x) each = T(static_cast<float>(random() % 100 + 1));
  std::vector<std::int32_t> places;
  for (const auto& origin : with.origins) places.insert(places.end(), origin.begin(), origin.end());
  std::vector<T> expected;
  for (const auto& origin : with.origins)
    for (int i = 0; i < product(with.size); ++i) {
      int left = i, at = 0, step = 1;
      bool inside = true;
      for (int d = rank; d-- > 0;) {
        const auto u = static_cast<std::size_t>(d);
        const int place = origin[u] + left % with.size[u];
        left /= with.size[u];
        inside &= place >= 0 && place < with.extents[u];
        at += place * step, step *= with.extents[u];
      }
      expected.push_back(inside ? x[static_cast<std::size_t>(at)] : T(0.0F));
    }
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int producers : {0, 1}) {
      SCOPED_TRACE(fmt::format("{} producers {} {} rank {}", target, producers, name(type), rank));
      const auto compiled = compile(boxes(with, type, producers), Target::parse(target)->arch);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      const std::string tma = fmt::format("\tcp.async.bulk.tensor.{}d.shared", rank);
      EXPECT_EQ(compiled->ptx.find(tma) != std::string::npos,
                with.aligned && producers && std::string_view(target) == "sm_90a")
          << explain(compiled->choices);
      Device device = test::open_engine({.hardware = target, .checks = Checks::all});
      std::vector<T> got(expected.size(), T(7.0F));
      const auto& n = with.extents;
      const auto done =
          with.fixed  ? run(device, *compiled, {1}, in(x), in(places), out(got))
          : rank == 2 ? run(device, *compiled, {1}, n[0], n[1], in(x), in(places), out(got))
          : rank == 3 ? run(device, *compiled, {1}, n[0], n[1], n[2], in(x), in(places), out(got))
          : rank == 4
              ? run(device, *compiled, {1}, n[0], n[1], n[2], n[3], in(x), in(places), out(got))
              : run(device, *compiled, {1}, n[0], n[1], n[2], n[3], n[4], in(x), in(places),
                    out(got));
      ASSERT_TRUE(done) << done.diags().text();
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(static_cast<float>(got[i]), static_cast<float>(expected[i])) << i;
    }
}

TEST(TensorBox, HasZerosBeyondEveryEdge) {
  const Case image{
      .extents = {3, 7, 9, 64},
      .size = {1, 4, 5, 64},
      .origins = {{0, 0, 0, 0}, {1, -1, -2, 0}, {2, 5, 6, 0}, {3, 0, 0, 0}, {-1, 2, 2, 0}},
      .swizzled = true};
  expect_boxes<host::f16>(image, f16);
  expect_boxes<float>({{6, 5, 32}, {2, 3, 16}, {{0, 0, 0}, {-1, 3, 16}, {5, -2, 24}, {1, 1, -8}}},
                      f32);
  expect_boxes<std::int8_t>(
      {{2, 3, 4, 5, 32}, {2, 2, 2, 2, 32}, {{0, 0, 0, 0, 0}, {-1, 2, 3, -1, 0}, {1, 1, 1, 4, 16}}},
      s8);
  expect_boxes<host::f16>({{40, 48}, {16, 32}, {{0, 0}, {30, -16}, {-3, 32}}}, f16);
  expect_boxes<float>({.extents = {6, 5, 32},
                       .size = {2, 3, 16},
                       .origins = {{2, 0, 5}, {1, 3, -3}, {0, 0, 29}},
                       .aligned = false},
                      f32);
  Case fixed = image;
  fixed.fixed = true;
  expect_boxes<host::f16>(fixed, f16);
}

TEST(TensorBox, MisuseIsExplained) {
  const auto told = [](const std::function<void(Builder&, const Shared&)>& body) {
    const auto compiled = compile(kernel("box", {.block = 32},
                                         [&](Builder& k) {
                                           auto s = k.shared("s", f16, row_major(8, 16));
                                           body(k, s);
                                         }),
                                  *Target::parse("sm_80"));
    std::string out;
    for (const Diag& each : compiled.diags())
      out += fmt::format("{} [{}]\n", each.message, each.id);
    return out;
  };
  EXPECT_EQ(told([](Builder& k, const Shared& s) {
              auto n = k.param("n", s32);
              auto x = k.tensor("X", f16, {n, 4, 16});
              auto wide = k.tensor("W", f32, {n, 4, 16});
              k.tensor("V", f32, {n});
              k.copy_box(x, s, {0, 0}, {2, 4, 16});
              k.copy_box(x, s, {0, 0, 0}, {2, 3, 16});
              k.copy_box(x, s, {0, 0, 0}, {0, 4, 16});
              k.copy_box(wide, s, {0, 0, 0}, {2, 4, 16});
              k.copy_box(x, s, {0, k.constant(f32, 1), 0}, {2, 4, 16});
            }),
            "V: dimensions of a tensor: expected 2 to 5, found 1 [layout-mismatch]\n"
            "copy_box: X has 3 dimensions, found an origin of 2 and a size of 3 [operand-count]\n"
            "wrong tile shape for the box: expected 6x16 elements, s is 8x16:(16,1); take "
            "s.tile({row, col}, {6, 16}) [layout-mismatch]\n"
            "copy_box: sizes of a box: expected 1 to 65536, found 0 [operand-count]\n"
            "copy does not convert types: W is f32, s is f16 [layout-mismatch]\n"
            "the origin of a box: expected an integer, found a value of type f32; convert() it "
            "[scalar-type]\n");
}

}  // namespace
}  // namespace tartan
