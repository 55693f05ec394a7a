// SPDX-License-Identifier: Apache-2.0
// Pixels under the taps of filters, of images of one to three dimensions, on the emulator with all
// checks, against loops in C++.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <vector>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

struct Case {
  std::vector<int> extents;  // images, their dimensions, channels
  Filter filter;
  int pixels = 16, channels = 32;  // of a tile
  bool fixed = false;              // extents are constants
  bool swizzled = false;
};

int positions(const Case& with) {
  int out = 1;
  for (std::size_t d = 0; d < with.filter.size.size(); ++d)
    out *= with.filter.positions(d, with.extents[d + 1]);
  return out;
}

int taps(const Case& with) {
  int out = 1;
  for (const int each : with.filter.size) out *= each;
  return out;
}

// One row more than all positions need, so that the last tiles lie beyond the last image.
int tiles(const Case& with) { return with.extents[0] * positions(with) / with.pixels + 2; }

// Tile t is pixel tile t / taps at tap t % taps.
Kernel pixels(const Case& with, Type type, int producers) {
  return kernel("pixels", {.block = 128, .producers = producers}, [=](Builder& k) {
    std::vector<Scalar> extents;
    for (std::size_t d = 0; d < with.extents.size(); ++d)
      extents.push_back(
          with.fixed ? Scalar(with.extents[d])
                     : k.param(fmt::format("n{}", d), s32, d + 1 == with.extents.size() ? 16 : 1));
    auto x = k.tensor("X", type, extents);
    const int count = tiles(with) * taps(with);
    auto out = k.global("out", type, row_major(count * with.pixels, with.channels));
    Layout layout = row_major(with.pixels, with.channels);
    if (with.swizzled) layout = layout.swizzled({3, 3, 3});
    auto s = k.shared("s", type, RingLayout{layout, 2});
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, count,
          [&](Scalar t, Scalar stage) {
            Scalar left = t % taps(with);
            std::vector<Scalar> tap(with.filter.size.size());
            for (std::size_t d = tap.size(); d-- > 0;) {
              tap[d] = left % with.filter.size[d];
              left = left / with.filter.size[d];
            }
            k.copy_pixels(x, s[stage], with.filter, t / taps(with) * with.pixels, tap, 0);
          },
          [&](Scalar t, Scalar stage) {
            k.copy(s[stage], out.tile({t, 0}, {with.pixels, with.channels}));
          });
    });
  });
}

template <typename T>
std::vector<T> expected_of(const Case& with, const std::vector<T>& x) {
  const std::size_t dimensions = with.filter.size.size();
  std::vector<T> out;
  for (int tile = 0; tile < tiles(with); ++tile)
    for (int tap = 0; tap < taps(with); ++tap)
      for (int i = 0; i < with.pixels; ++i) {
        const int number = tile * with.pixels + i;
        int left = number % positions(with), taps_left = tap;
        std::int64_t at = 0, step = 1;
        bool inside = number / positions(with) < with.extents[0];
        for (std::size_t d = dimensions; d-- > 0;) {
          const int count = with.filter.positions(d, with.extents[d + 1]);
          const int pixel = left % count * with.filter.stride_of(d) - with.filter.padding_of(d) +
                            taps_left % with.filter.size[d] * with.filter.dilation_of(d);
          left /= count, taps_left /= with.filter.size[d];
          inside &= pixel >= 0 && pixel < with.extents[d + 1];
          at += step * pixel, step *= with.extents[d + 1];
        }
        at = (at + step * (number / positions(with))) * with.extents.back();
        for (int c = 0; c < with.channels; ++c)
          out.push_back(inside && c < with.extents.back() ? x[static_cast<std::size_t>(at + c)]
                                                          : T(0.0F));
      }
  return out;
}

template <typename T>
void expect_pixels(const Case& with, Type type) {
  std::size_t count = 1;
  for (const int each : with.extents) count *= static_cast<std::size_t>(each);
  std::vector<T> x;
  for (std::size_t i = 0; i < count; ++i) x.push_back(T(static_cast<float>(i * 7 % 101 + 1)));
  const std::vector<T> expected = expected_of(with, x);
  const std::size_t rank = with.extents.size();
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int producers : {0, 1}) {
      SCOPED_TRACE(fmt::format("{} producers {} {} rank {}", target, producers, name(type), rank));
      if (!test::engine_runs(*Target::parse(target))) continue;
      const auto compiled = compile(pixels(with, type, producers), Target::parse(target)->arch);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      const std::string tma =
          fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.im2col", rank);
      EXPECT_EQ(compiled->ptx.find(tma) != std::string::npos,
                producers && std::string_view(target) == "sm_90a")
          << explain(compiled->choices);
      Device device = test::open_engine({.hardware = target, .checks = Checks::all});
      std::vector<T> got(expected.size(), T(7.0F));
      const auto& n = with.extents;
      const auto done =
          with.fixed  ? run(device, *compiled, {1}, in(x), out(got))
          : rank == 3 ? run(device, *compiled, {1}, n[0], n[1], n[2], in(x), out(got))
          : rank == 4 ? run(device, *compiled, {1}, n[0], n[1], n[2], n[3], in(x), out(got))
                      : run(device, *compiled, {1}, n[0], n[1], n[2], n[3], n[4], in(x), out(got));
      ASSERT_TRUE(done) << done.diags().text();
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(static_cast<float>(got[i]), static_cast<float>(expected[i])) << i;
    }
}

TEST(PixelCopy, ReadsWhatAFilterReads) {
  expect_pixels<host::f16>({.extents = {2, 5, 6, 64},
                            .filter = {.size = {3, 3}, .padding = {1, 1}},
                            .channels = 64,
                            .swizzled = true},
                           f16);
  expect_pixels<host::f16>(
      {.extents = {2, 9, 7, 32},
       .filter = {.size = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .dilation = {2, 1}},
       .fixed = true},
      f16);
}

TEST(PixelCopy, ReadsLinesAndVolumes) {
  expect_pixels<float>({.extents = {3, 21, 32},
                        .filter = {.size = {4}, .stride = {2}, .padding = {3}, .dilation = {3}},
                        .pixels = 8},
                       f32);
  expect_pixels<std::int8_t>(
      {.extents = {2, 4, 3, 5, 32},
       .filter = {.size = {2, 1, 3}, .stride = {1, 2, 1}, .padding = {1, 0, 1}}},
      s8);
}

TEST(PixelCopy, HasZerosBehindTheLastChannel) {
  expect_pixels<host::f16>(
      {.extents = {1, 3, 4, 16}, .filter = {.size = {3, 3}, .padding = {1, 1}}}, f16);
}

// A tap that is no tap of the filter, known at run time only.
TEST(PixelCopy, StopsAtATapBeyondTheFilter) {
  if (test::on_gpu()) GTEST_SKIP() << "findings are the emulator's";
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int taps : {3, 4}) {
      const Kernel lines = kernel("lines", {.block = 32, .producers = 1}, [](Builder& k) {
        auto count = k.param("taps", s32);
        auto x = k.tensor("X", f16, {2, 32, 32});
        auto to = k.global("to", f16, row_major(64, 32));
        auto s = k.shared("s", f16, RingLayout{row_major(16, 32), 2});
        k.roles([&] {
          k.pipeline(
              {.stages = 2}, count,
              [&](Scalar t, Scalar stage) { k.copy_pixels(x, s[stage], {.size = {3}}, 0, {t}, 0); },
              [&](Scalar t, Scalar stage) {
                k.copy(s[stage], to.tile({t, 0}, {16, 32}));
              });
        });
      });
      SCOPED_TRACE(fmt::format("{} {} taps", target, taps));
      Device device = test::open_engine({.hardware = target, .checks = Checks::all});
      const std::vector<host::f16> x(2 * 32 * 32);
      std::vector<host::f16> got(64 * 32);
      const auto done = run(device, lines, {1}, taps, in(x), in_out(got));
      EXPECT_EQ(static_cast<bool>(done), taps == 3);
      if (!done) {
        EXPECT_NE(done.diags().text().find("trap"), std::string::npos) << done.diags().text();
        EXPECT_NE(done.diags().text().find("pixel_copy_test.cc:"), std::string::npos);
      }
    }
}

TEST(PixelCopy, MistakesAreToldAtTheirLine) {
  const auto refused = [](const Filter& filter, const std::vector<Scalar>& tap,
                          std::string_view text, const std::vector<Scalar>& extents = {2, 8, 8, 32},
                          Type type = f16) {
    const Kernel made = kernel("wrong", {.block = 32}, [&](Builder& k) {
      auto x = k.tensor("X", type, extents);
      auto s = k.shared("s", f16, row_major(16, 32));
      k.copy_pixels(x, s, filter, 0, tap, 0);
    });
    test::expect_told(compile(made, *Target::parse("sm_80")), {text});
  };
  refused({.size = {3, 3}}, {0, 0}, "images of 1 to 3 dimensions", {8, 32});
  refused({.size = {3}}, {0, 0}, "sizes of a filter: expected 2, one for each dimension");
  refused({.size = {3, 0}}, {0, 0}, "sizes of a filter: expected 1 to 32768, found 0");
  refused({.size = {3, 3}, .stride = {9, 1}}, {0, 0}, "strides of a filter: expected 1 to 8");
  refused({.size = {3, 3}, .padding = {1}}, {0, 0}, "paddings of a filter: expected 2");
  refused({.size = {3, 3}}, {0}, "a tap: expected 2 numbers");
  refused({.size = {3, 3}}, {0, 3}, "a tap: expected 0 to 2, found 3");
  refused({.size = {3, 3}}, {0, 0}, "copy does not convert types", {2, 8, 8, 32}, f32);
}

}  // namespace
}  // namespace tartan
