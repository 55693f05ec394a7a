// SPDX-License-Identifier: Apache-2.0
// Barriers for which not all of their threads come: behind conditions of the thread's index, in
// loops that threads go around unequally often, with too few of a number of threads. What is right
// compiles without a word, and runs.
#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

constexpr int block = 128;
using Body = std::function<void(Builder&, const Scalar& thread, const Scalar& n)>;

Kernel kernel_of(const Body& body, bool roles, bool dynamic) {
  return kernel("barriers", {.block = block, .producers = roles ? 4 : 0}, [=](Builder& k) {
    auto in = k.global("in", f32, row_major(1, block)),
         out = k.global("out", f32, row_major(1, block));
    auto n = k.param("n", s32);
    if (dynamic) (void)k.shared("room", f32, row_major(100, 128));
    auto ring = k.shared("ring", f32, RingLayout{row_major(1, block), 2});
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, 2,
          [&](Scalar, Scalar s) {
            k.copy(in.tile({0, 0}, {1, block}), ring[s]);
          },
          [&](Scalar, Scalar s) { k.write(out, 0, k.thread(), k.read(ring[s], 0, k.thread())); });
      body(k, k.thread(), n);
    });
  });
}

void for_all(const Body& body, const std::function<void(const Result<Compiled>&)>& check) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const bool roles : {false, true})
      for (const bool dynamic : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << target << ", roles " << roles << ", dynamic " << dynamic);
        check(compile(kernel_of(body, roles, dynamic), *Arch::parse(target)));
      }
}

void expect_refused(const Body& body, const std::vector<std::string_view>& told,
                    const std::source_location& at = std::source_location::current()) {
  for_all(body, [&](const Result<Compiled>& compiled) { test::expect_told(compiled, told, at); });
}

void expect_right(const Body& body) {
  for_all(body, [](const Result<Compiled>& compiled) {
    ASSERT_TRUE(compiled) << compiled.diags().text();
    Device device = test::open_engine({.hardware = compiled->target.arch.text()});
    std::vector<float> from(block), to(block);
    const auto done = run(device, *compiled, {1}, in(from), out(to), 3);
    EXPECT_TRUE(done) << done.diags().text();
  });
}

TEST(BarrierReach, IsAllThreadsOfBothArms) {
  expect_refused(
      [](Builder& k, const Scalar& thread, const Scalar&) {
        k.when(
            thread < 64, [] {}, [&] { k.barrier(); });
      },
      {"barrier: expected all 128 threads, found 64, as the condition or loop at"});
  expect_right([](Builder& k, const Scalar& thread, const Scalar&) {
    k.when(
        thread < 64, [&] { k.barrier(); }, [&] { k.barrier(); });
  });
  expect_right([](Builder& k, const Scalar&, const Scalar& n) {
    k.when(
        n < 64, [&] { k.barrier(); }, [] {});
  });
}

TEST(BarrierReach, IsAllThreadsInEachIteration) {
  expect_refused([](Builder& k, const Scalar& thread,
                    const Scalar&) { k.loop(thread, 300, block, [&](Scalar) { k.barrier(); }); },
                 {"barrier: expected all 128 threads, found 44, as the condition or loop at"});
  expect_refused(
      [](Builder& k, const Scalar& thread, const Scalar&) {
        auto i = k.variable(k.constant(u32, 0));
        k.loop_while([&] { return Scalar(i) < thread; }, [&] { k.barrier(), i = Scalar(i) + 1; });
      },
      {"barrier: expected all 128 threads, found", "as the condition or loop at"});
  expect_right([](Builder& k, const Scalar& thread, const Scalar& n) {
    k.loop(thread, 384, block, [&](Scalar) { k.barrier(); });
    k.loop(0, n, 1, [&](Scalar) { k.barrier(); });
  });
}

TEST(BarrierReach, IsAsManyThreadsAsANamedBarrierWaitsFor) {
  expect_refused([](Builder& k, const Scalar& thread,
                    const Scalar&) { k.when(thread < 64, [&] { k.barrier(3, 96); }); },
                 {"barrier of 96 threads: only 64 reach it"});
  expect_right([](Builder& k, const Scalar& thread, const Scalar&) {
    k.when(thread < 64, [&] { k.barrier(3, 64); });
    k.when(thread < 32, [&] { k.barrier(4, 64); });
    k.when(thread >= 96, [&] { k.barrier(4, 64); });
  });
  expect_right([](Builder& k, const Scalar& thread, const Scalar&) {
    k.when(
        thread < 64, [&] { k.barrier(3, 128); }, [&] { k.arrive(3, 128); });
  });
}

}  // namespace
}  // namespace tartan
