// SPDX-License-Identifier: Apache-2.0
// Many threads on one device, and many modules one after the other: on the emulator and on the CUDA
// driver's test double. The preset `thread` runs this under the thread sanitizer.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <thread>

#include "tests/runtime/cuda_double.h"
#include "tests/support/index_kernel.h"

namespace tartan {
namespace {

const std::string ptx = ".version 7.8\n.target sm_80\n.address_size 64\n" + test::index_kernel +
                        ".global .u32 counter[4096];\n";

// Calls `work` from 16 threads at a time, which begin together.
template <typename Work>
void from_threads(const Work& work) {
  constexpr int count = 16;
  std::atomic<int> ready = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      for (++ready; ready < count;) std::this_thread::yield();
      work(static_cast<std::uint32_t>(i));
    });
}

void load_and_launch(Device& device, std::uint32_t factor) {
  auto module = device.load(ptx, "test.ptx");
  ASSERT_TRUE(module) << module.diags().text();
  auto kernel = module->kernel("index");
  auto out = device.allocate(64 * 4);
  auto stream = device.stream();
  ASSERT_TRUE(kernel && out && stream);
  ASSERT_TRUE(out->fill(0xff, *stream));
  const auto arguments = Arguments().add(*out).add(factor);
  ASSERT_TRUE(kernel->launch({.grid = {2}, .block = {32}}, arguments, &*stream));
  ASSERT_TRUE(stream->synchronize());
  const auto values = out->read_all<std::uint32_t>();
  ASSERT_TRUE(values);
  if (!device.emulated()) return;  // the double runs nothing
  for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ((*values)[i], factor * i);
}

TEST(EmulatorThreads, LoadAndLaunchOnOneDevice) {
  auto device = Device::open("emulator");
  from_threads([&](std::uint32_t i) {
    for (std::uint32_t round = 0; round < 4; ++round) load_and_launch(*device, i + round);
  });
  EXPECT_TRUE(device->findings().empty());
}

TEST(EmulatorThreads, LaunchOneKernel) {
  auto device = Device::open("emulator");
  auto kernel = device->load(ptx)->kernel("index");
  from_threads([&](std::uint32_t factor) {
    auto out = device->allocate(64 * 4);
    ASSERT_TRUE(kernel->launch({.grid = {2}, .block = {32}}, Arguments().add(*out).add(factor)));
    EXPECT_EQ(out->read_all<std::uint32_t>()->back(), factor * 63);
  });
}

TEST(EmulatorThreads, ThousandModulesLeaveNothing) {
  auto device = Device::open("emulator");
  std::size_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    load_and_launch(*device, 3);
    if (i == 100) before = mallinfo2().uordblks;
  }
  EXPECT_LT(mallinfo2().uordblks, before + (std::size_t{1} << 20)) << "a module has 16 KB and more";
}

using CudaThreads = test::CudaDouble;

TEST_F(CudaThreads, LoadAndLaunchOnOneDevice) {
  from_threads([&](std::uint32_t i) {
    for (int round = 0; round < 4; ++round) load_and_launch(*device, i);
  });
  EXPECT_EQ(fake.launches.size(), 64u);
  EXPECT_EQ(fake.modules + fake.streams, 0);
  EXPECT_TRUE(fake.memory.empty());
}

TEST_F(CudaThreads, OpenAndAssembleAtOnce) {
  from_threads([&](std::uint32_t) {
    auto own = Device::open("cuda");
    ASSERT_TRUE(own);
    EXPECT_TRUE(own->assemble(ptx));
    load_and_launch(*own, 1);
  });
  EXPECT_EQ(fake.contexts, 1);
  EXPECT_EQ(fake.links, 0);
}

TEST_F(CudaThreads, LoseOneContext) {
  auto kernel = load("other");
  int launches = 0;  // the double makes one at a time
  fake.kernel = [&](const FakeLaunch&) {
    if (++launches == 20) fake.kernel_fails(700);
  };
  from_threads([&](std::uint32_t) {
    for (int round = 0; round < 4; ++round) {
      const auto launched = kernel.launch({.block = {32}}, {});
      if (launched) continue;
      EXPECT_NE(complaint(launched).find("open a new Device"), std::string::npos);
      EXPECT_TRUE(Device::open("cuda"));
    }
  });
  EXPECT_FALSE(device->synchronize());
  EXPECT_EQ(device->findings().size(), 1u);
  EXPECT_EQ(fake.contexts, 0);
}

TEST_F(CudaThreads, ThousandModulesLeaveNothing) {
  for (int i = 0; i < 1000; ++i) load_and_launch(*device, 3);
  EXPECT_EQ(fake.modules, 0);
  EXPECT_EQ(fake.streams, 0);
  EXPECT_TRUE(fake.memory.empty());
}

}  // namespace
}  // namespace tartan
