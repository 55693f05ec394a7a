// SPDX-License-Identifier: Apache-2.0
// Loader: what is compiled and loaded once, on the emulator. tests/runtime/loader_test.cc has
// machine code.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <array>
#include <thread>

#include "tests/runtime/temporary_cache.h"

namespace tartan {
namespace {

Kernel counted(int value, int& described) {
  return kernel("counted", {.block = 32}, [value, &described](Builder& k) {
    ++described;
    auto C = k.global("C", s32, row_major(1, 32));
    k.write(C, 0, k.lane(), k.constant(s32, value));
  });
}

std::vector<int> result_of(Device& device, const ReadyKernel& ready) {
  const Buffer out = *device.allocate(32 * 4);
  const Status launched = ready.launch({1}, Arguments().add(out));
  EXPECT_TRUE(launched) << launched.diags().text();
  EXPECT_TRUE(device.synchronize());
  return *out.read_all<int>();
}

TEST(LoaderOnEmulator, AKernelWithAKeyIsDescribedOnce) {
  const test::TemporaryCache folder;
  Device device = *Device::open("emulator");
  int described = 0;
  const Loader loader(device, folder.open());
  const auto first = loader.load(counted(7, described).keyed("seven"));
  ASSERT_TRUE(first) << first.diags().text();
  const auto second = loader.load(counted(7, described).keyed("seven"));
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(described, 1);
  EXPECT_EQ(result_of(device, **second), std::vector<int>(32, 7));
  const auto older = loader.load(counted(7, described).keyed("seven"), Arch{80, 0});
  ASSERT_TRUE(older);
  EXPECT_NE(*first, *older);
  EXPECT_EQ(described, 2);

  const auto plain = loader.load(counted(8, described));
  ASSERT_TRUE(plain);
  EXPECT_EQ(*loader.load(counted(8, described)), *plain);
  EXPECT_EQ(described, 4);
  EXPECT_EQ(result_of(device, **plain), std::vector<int>(32, 8));
}

Status multiply(const Loader& loader, const kernels::Gemm& options, int m, int n,
                const Arguments& arguments) {
  const auto product = loader.load(kernels::gemm(options));
  if (!product) return product.diags();
  return (*product)->launch({options.blocks(m, n)}, arguments);
}

// The example of docs/cache.md.
TEST(LoaderOnEmulator, BuiltInKernelsAreFoundByTheirOptions) {
  const test::TemporaryCache folder;
  Device device = *Device::open("emulator", {.hardware = "sm_80"});
  constexpr int size = 64;
  const std::vector<host::f16> ones(size * size, host::f16(1.0));
  Buffer a = *device.allocate(size * size * 2), c = *device.allocate(size * size * 4);
  ASSERT_TRUE(a.write(ones));
  const Arguments arguments = Arguments().add(size).add(size).add(size).add(a).add(a).add(c);
  for (int process = 0; process < 2; ++process) {
    const Cache cache = folder.open();
    const Loader loader(device, cache);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(c.fill(0));
      const Status done = multiply(loader, {.m = 0, .n = 0, .k = 0}, size, size, arguments);
      ASSERT_TRUE(done) << done.diags().text();
      ASSERT_TRUE(device.synchronize());
      EXPECT_EQ(*c.read_all<float>(), std::vector<float>(size * size, size));
    }
    EXPECT_EQ(cache.stats().misses, process == 0 ? 1u : 0u);
    EXPECT_EQ(cache.stats().hits, process == 0 ? 0u : 1u);
  }
}

TEST(LoaderOnEmulator, MistakesAreReported) {
  const test::TemporaryCache folder;
  const Loader loader(*Device::open("emulator"), folder.open());
  const auto wrong = kernel("wrong", {.block = 32}, [](Builder& k) {
    auto C = k.global("C", s32, row_major(1, 32));
    k.write(C, 0, 32, k.constant(s32, 0.5));
  });
  EXPECT_FALSE(loader.load(wrong.keyed("wrong")));
  EXPECT_FALSE(loader.load(wrong.keyed("wrong")));
}

TEST(LoaderOnEmulator, ThreadsShareIt) {
  const test::TemporaryCache folder;
  Device device = *Device::open("emulator");
  const Loader loader(device, folder.open());
  std::array<std::shared_ptr<const ReadyKernel>, 16> ready;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ready.size(); ++i)
    threads.emplace_back([&, i] {
      const int value = static_cast<int>(i % 4);
      int mine = 0;
      const auto loaded = loader.load(counted(value, mine).keyed(std::to_string(value)));
      if (loaded) ready[i] = *loaded;
    });
  for (std::thread& each : threads) each.join();
  for (std::size_t i = 0; i < ready.size(); ++i) {
    ASSERT_TRUE(ready[i]) << i;
    EXPECT_EQ(result_of(device, *ready[i]), std::vector<int>(32, static_cast<int>(i % 4)));
  }
}

// The registers that producers give away are there: nothing is spilled. Consumers that need none of
// them leave room for a second CTA.
TEST(LoaderOnGpu, ConsumersHaveTheirRegisters) {
  auto device = Device::open("cuda");
  if (!device || device->arch() != Arch{90, 'a'}) GTEST_SKIP() << "no GPU of sm_90a";
  const test::TemporaryCache folder;
  const Loader loader(*device, folder.open());
  const Target target = Target::of(device->arch());
  for (const int dim : {64, 128, 256}) {
    const auto attention = loader.load(
        kernels::attention(kernels::tuned(kernels::Attention{.head_dim = dim}, target)));
    ASSERT_TRUE(attention) << attention.diags().text();
    const auto resources = (*attention)->kernel.resources();
    ASSERT_TRUE(resources) << resources.diags().text();
    EXPECT_EQ(resources->local_bytes, 0U) << "head dimension " << dim;
  }
  kernels::Gemm gemm{.m = 40, .n = 8632, .k = 604, .a = e4m3, .b = e4m3};
  gemm.tile = {.m = 64, .n = 64, .k = 128, .warps_m = 4, .warps_n = 1};
  gemm.stages = 5, gemm.producers = 8, gemm.multiple = gemm.multiple_c = 4;
  const auto small = loader.load(kernels::gemm(gemm));
  ASSERT_TRUE(small) << small.diags().text();
  const Compiled& compiled = (*small)->compiled;
  EXPECT_GE(*(*small)->kernel.blocks_per_sm(static_cast<std::uint32_t>(compiled.block),
                                            static_cast<std::uint32_t>(compiled.dynamic_shared)),
            2);
}

}  // namespace
}  // namespace tartan
