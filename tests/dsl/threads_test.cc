// SPDX-License-Identifier: Apache-2.0
// Many threads that describe, compile, load and launch at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tartan/tartan.h"

namespace tartan {
namespace {

Kernel multiplied(std::int64_t factor) {
  return kernel("multiplied", {.block = 32}, [=](Builder& k) {
    auto out = k.global("out", s32, row_major(32, 1));
    k.write(out, k.thread(), 0, k.thread() * factor);
  });
}

TEST(DslThreads, CompileLoadAndLaunch) {
  auto device = Device::open("emulator");
  constexpr int count = 16;
  std::atomic<int> ready = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      for (++ready; ready < count;) std::this_thread::yield();
      for (const char* target : {"sm_80", "sm_90a"}) {
        const auto compiled = compile(multiplied(i + 2), *Target::parse(target));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        auto module = device->load(compiled->ptx, compiled->name);
        ASSERT_TRUE(module) << module.diags().text();
        auto kernel = module->kernel("multiplied");
        auto out = device->allocate(32 * 4);
        ASSERT_TRUE(launch(*kernel, *compiled, {1}, Arguments().add(*out)));
        EXPECT_EQ(out->read_all<std::int32_t>()->back(), (i + 2) * 31);
      }
    });
}

}  // namespace
}  // namespace tartan
