// SPDX-License-Identifier: Apache-2.0
// Pipelines of any length: prefetched k-tiles, and stages that are released early.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <numeric>

#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using testing_gemm::Bytes;
using testing_gemm::Launch;

constexpr int rows = 32, cols = 4, most = 5;

enum class Use {
  plain,
  leaves_early,
  leaves_late,
  never_leaves,
  peeled,
  peeled_early,
  peeled_ahead
};

// Each thread sums its row of as many tiles as the parameter says: total = total * 3 + x, so that
// the order matters.
Kernel sums_kernel(Use use, int stages, int producers) {
  return kernel("sums", {.block = rows, .producers = producers}, [=](Builder& k) {
    const auto count = k.param("count", s32);
    auto A = k.global("A", s32, row_major(rows, cols * most));
    auto out = k.global("out", s32, row_major(rows, 1));
    const Layout one = row_major(rows, cols);
    auto s = k.shared("s", s32, RingLayout{one, stages});
    k.roles([&] {
      auto total = k.variable(k.constant(s32, 0)), first = k.variable(k.constant(s32, 0));
      const auto fill = [&](Scalar t, Scalar stage) {
        k.copy(A.tile({0, t}, {rows, cols}), s[stage]);
      };
      const auto add = [&](const Scalar& x) { total = Scalar(total) * 3 + x; };
      const auto add_from = [&](const Scalar& stage, int begin, int end) {
        for (int j = begin; j < end; ++j) add(k.read(s[stage], k.thread(), j));
      };
      if (use == Use::plain) {
        k.pipeline({.stages = stages}, count, fill,
                   [&](Scalar, Scalar stage) { add_from(stage, 0, cols); });
      } else if (use >= Use::peeled) {
        const PipelineOptions with{.stages = stages, .peel_first = true};
        const auto begin = [&](const Scalar& t, const Scalar& x) {
          if (t.constant()) total = x;
          else add(x);
        };
        const auto use_early = [&](Scalar t, Scalar stage, const std::function<void()>& next) {
          begin(t, use == Use::peeled_ahead ? Scalar(first) : k.read(s[stage], k.thread(), 0));
          add_from(stage, 1, cols - 1);
          const Scalar last = k.read(s[stage], k.thread(), cols - 1);
          next();
          add(last);
        };
        if (use == Use::peeled_ahead)
          k.pipeline(
              with, count, fill, [&](Scalar stage) { first = k.read(s[stage], k.thread(), 0); },
              use_early);
        else if (use == Use::peeled_early) k.pipeline(with, count, fill, {}, use_early);
        else
          k.pipeline(with, count, fill, [&](Scalar t, Scalar stage) {
            begin(t, k.read(s[stage], k.thread(), 0));
            add_from(stage, 1, cols);
          });
      } else {
        k.pipeline(
            {.stages = stages}, count, fill,
            [&](Scalar stage) { first = k.read(s[stage], k.thread(), 0); },
            [&](Scalar, Scalar stage, const std::function<void()>& next) {
              add(first);
              add_from(stage, 1, cols - 1);
              const Scalar last = k.read(s[stage], k.thread(), cols - 1);
              if (use == Use::leaves_early) next();
              add(last);
              if (use == Use::leaves_late) next();
            });
      }
      k.write(out, k.thread(), 0, total);
    });
  });
}

std::vector<std::int32_t> expected(const std::vector<std::int32_t>& a, int count) {
  std::vector<std::int32_t> out;
  for (int i = 0; i < rows; ++i) {
    std::uint32_t total = 0;  // wraps around, as the kernel's does
    for (int j = 0; j < cols * count; ++j)
      total =
          total * 3 + static_cast<std::uint32_t>(a[static_cast<std::size_t>(i * cols * most + j)]);
    out.push_back(static_cast<std::int32_t>(total));
  }
  return out;
}

Launch launch_of(const std::vector<std::int32_t>& a, int count) {
  return {{1}, [=](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
            const auto bytes = std::as_bytes(std::span(a));
            buffers.push_back(testing_gemm::buffer_of(device, Bytes(bytes.begin(), bytes.end())));
            Buffer out = *device.allocate(4 * rows);
            EXPECT_TRUE(out.fill(0xFF));
            arguments.add(count).add(buffers.back()).add(out);
            return out;
          }};
}

TEST(DslPipeline, EveryTileInOrder) {
  std::vector<std::int32_t> a(rows * cols * most);
  std::iota(a.begin(), a.end(), 7);
  for (const char* target : {"sm_75", "sm_80", "sm_90"})
    for (const int producers : {0, 1})
      for (const int stages : {1, 2, 3})
        for (const Use use : {Use::plain, Use::leaves_early, Use::leaves_late, Use::never_leaves,
                              Use::peeled, Use::peeled_early, Use::peeled_ahead})
          for (const int count : {0, 1, 2, most}) {
            if (testing_gemm::gpu() && std::string_view(target) != "sm_90") continue;
            SCOPED_TRACE(fmt::format("{}, {} producers, {} stages, use {}, {} tiles", target,
                                     producers, stages, static_cast<int>(use), count));
            const Bytes got =
                testing_gemm::run(sums_kernel(use, stages, producers),
                                  testing_gemm::target_of(target), launch_of(a, count));
            std::vector<std::int32_t> values(got.size() / 4);
            std::memcpy(values.data(), got.data(), got.size());
            EXPECT_EQ(values, expected(a, count));
          }
}

TEST(DslPipeline, AStageIsLeftOnce) {
  for (const int producers : {0, 1})
    for (const int stages : {1, 2}) {
      const Kernel twice = kernel("twice", {.block = 32, .producers = producers}, [=](Builder& k) {
        auto s = k.shared("s", s32, RingLayout{row_major(32, 4), stages});
        auto A = k.global("A", s32, row_major(32, 4));
        k.roles([&] {
          k.pipeline(
              {.stages = stages}, 2, [&](Scalar, Scalar stage) { k.copy(A, s[stage]); },
              [](Scalar) {},
              [](Scalar, Scalar, const std::function<void()>& next) { next(), next(); });
        });
      });
      const auto compiled = compile(twice, *Target::parse("sm_80"));
      ASSERT_FALSE(compiled);
      EXPECT_NE(compiled.diags().text().find("next() is called twice for one stage"),
                std::string::npos)
          << compiled.diags().text();
    }
}

}  // namespace
}  // namespace tartan
