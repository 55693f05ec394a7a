// SPDX-License-Identifier: Apache-2.0
// StepClock: which steps are counted, and what they took.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <chrono>
#include <optional>
#include <thread>

#include "tests/runtime/temporary_cache.h"

namespace tartan {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Its description takes at least so long.
Kernel slow(milliseconds pause) {
  return kernel("slow", {.block = 32}, [=](Builder& k) {
    std::this_thread::sleep_for(pause);
    auto C = k.global("C", s32, row_major(1, 32));
    k.write(C, 0, k.lane(), k.constant(s32, 1));
  });
}

// The steps that were taken, by their first letters.
std::string taken(const StepTimes& times) {
  std::string out;
  const auto add = [&](double step, char letter) {
    EXPECT_GE(step, 0);
    if (step > 0) out += letter;
  };
  add(times.describe, 'd'), add(times.generate, 'g'), add(times.verify, 'v');
  add(times.cache, 'c'), add(times.assemble, 'a'), add(times.load, 'l');
  return out;
}

TEST(StepTimes, OfCompileAndLoad) {
  StepTimes times, loading;
  std::optional<Result<Compiled>> made;
  const auto start = Clock::now();
  {
    const StepClock clock(times);
    made = compile(slow(milliseconds(20)), Arch{80, 0});
  }
  const double wall = since(start);
  const Result<Compiled>& compiled = *made;
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(taken(times), "dgv");
  EXPECT_GE(times.describe, 20'000);
  EXPECT_LT(times.describe, times.total());
  EXPECT_LE(times.total(), wall * (1 + 1e-9)) << "no moment is in two steps";

  Device device = *Device::open("emulator");
  {
    const StepClock clock(loading);
    ASSERT_TRUE(device.load(compiled->ptx)->kernel("slow"));
  }
  EXPECT_EQ(taken(loading), "l");
  (void)compile(slow(milliseconds(1)), Arch{80, 0});
  EXPECT_EQ(taken(times), "dgv") << "the clock has gone";
}

TEST(StepTimes, OfACache) {
  const test::TemporaryCache folder;
  StepTimes first, again, keyed, keyed_again;
  const auto timed = [&](const Kernel& kernel, StepTimes& out) {
    const StepClock clock(out);
    EXPECT_TRUE(compile(kernel, Arch{80, 0}, folder.open()));
  };
  timed(slow(milliseconds(0)), first);
  timed(slow(milliseconds(0)), again);
  timed(slow(milliseconds(0)).keyed("slow"), keyed);
  timed(slow(milliseconds(0)).keyed("slow"), keyed_again);
  EXPECT_EQ(taken(first), "dgvc");
  EXPECT_EQ(taken(again), "dc") << "found by its code";
  EXPECT_EQ(taken(keyed), "dgvc") << "under its key there is nothing yet";
  EXPECT_EQ(taken(keyed_again), "c") << "found by its key";
}

TEST(StepTimes, OfALoaderStayWithTheKernel) {
  const test::TemporaryCache folder;
  const Loader loader(*Device::open("emulator"), folder.open());
  StepTimes first, second;
  const auto load = [&](StepTimes& times) {
    const StepClock clock(times);
    return *loader.load(slow(milliseconds(20)).keyed("slow"));
  };
  const auto ready = load(first);
  EXPECT_EQ(taken(ready->times), "dgvcl");
  EXPECT_GE(ready->times.describe, 20'000);
  EXPECT_EQ(first.describe, ready->times.describe) << "the inner clock's go to the outer one";
  EXPECT_GE(first.total(), ready->times.total());
  EXPECT_EQ(load(second), ready);
  EXPECT_EQ(taken(second), "c") << "a look at what it has";
  EXPECT_GE(ready->times.describe, 20'000);
}

TEST(StepTimes, AreOfOneThread) {
  StepTimes mine, others;
  const StepClock clock(mine);
  std::thread([&] {
    const StepClock clock(others);
    EXPECT_TRUE(compile(slow(milliseconds(0)), Arch{80, 0}));
  }).join();
  EXPECT_EQ(taken(others), "dgv");
  EXPECT_EQ(taken(mine), "");
}

TEST(StepTimes, AddUp) {
  StepTimes sum, one;
  {
    const StepClock outer(sum);
    for (int i = 0; i < 2; ++i) {
      const StepClock inner(one);
      EXPECT_TRUE(compile(slow(milliseconds(5)), Arch{80, 0}));
    }
  }
  EXPECT_GE(one.describe, 10'000);
  EXPECT_DOUBLE_EQ(sum.describe, one.describe);
  EXPECT_DOUBLE_EQ(sum.total(), one.total());
}

}  // namespace
}  // namespace tartan
