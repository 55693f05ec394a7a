// SPDX-License-Identifier: Apache-2.0
// The CUDA engine on a real GPU. Skipped without one.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "tartan/bundle.h"
#include "tartan/runtime/device.h"
#include "tests/support/device_features.h"
#include "tests/support/index_kernel.h"

namespace tartan {
namespace {

const std::string ptx = R"(.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
)" + test::index_kernel +
                        R"(.visible .entry last_shared(.param .u64 out, .param .u32 offset)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [offset];
  mov.u32 %r2, dynamic;
  add.u32 %r3, %r2, %r1;
  mov.u32 %r4, 77;
  st.shared.u32 [%r3], %r4;
  ld.shared.u32 %r5, [%r3];
  st.global.u32 [%rd1], %r5;
  ret;
}
.visible .entry store(.param .u64 address)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [address];
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry stop()
{
  trap;
  ret;
}
)";

class CudaGpu : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open("cuda");
    if (!opened) GTEST_SKIP() << opened.diags().text();
    device = *opened;
  }

  LoadedKernel load(const std::string& name) {
    auto module = device->load(ptx, "test.ptx");
    EXPECT_TRUE(module) << module.diags().text();
    return *module->kernel(name);
  }

  std::optional<Device> device;
};

TEST_F(CudaGpu, ReportsNameAndArchitecture) {
  EXPECT_FALSE(device->emulated());
  EXPECT_NE(device->name().find("(sm_"), std::string::npos) << device->name();
  EXPECT_NE(find_arch(device->arch()), nullptr);
  EXPECT_FALSE(Device::best()->emulated());
}

TEST_F(CudaGpu, BlocksOfACooperativeLaunchMeet) { test::expect_blocks_meet(*device); }

TEST_F(CudaGpu, VariablesAreBuffers) { test::expect_variables_are_buffers(*device); }

TEST_F(CudaGpu, RunsAKernel) {
  LoadedKernel kernel = load("index");
  auto out = device->allocate(3 * 64 * 4);
  auto stream = device->stream();
  auto start = device->event(), end = device->event();
  ASSERT_TRUE(out && stream && start && end);
  ASSERT_TRUE(out->fill(0xff));
  ASSERT_TRUE(start->record(&*stream));
  ASSERT_TRUE(kernel.launch({.grid = {3}, .block = {64}}, Arguments().add(*out).add(5u), &*stream));
  ASSERT_TRUE(end->record(&*stream));
  ASSERT_TRUE(stream->synchronize());
  const auto values = out->read_all<std::uint32_t>();
  ASSERT_TRUE(values);
  for (std::uint32_t i = 0; i < 192; ++i) ASSERT_EQ((*values)[i], 5 * i);
  const auto time = end->milliseconds_since(*start);
  ASSERT_TRUE(time);
  EXPECT_GT(*time, 0);
  EXPECT_LT(*time, 10'000);
}

TEST_F(CudaGpu, AllSharedMemory) {
  const std::uint32_t most = static_cast<std::uint32_t>(find_arch(device->arch())->shared_bytes);
  LoadedKernel kernel = load("last_shared");
  auto out = device->allocate(4);
  ASSERT_TRUE(
      kernel.launch({.block = {1}, .dynamic_shared = most}, Arguments().add(*out).add(most - 4)));
  ASSERT_TRUE(device->synchronize());
  EXPECT_EQ((*out->read_all<std::uint32_t>())[0], 77u);
  EXPECT_FALSE(
      kernel.launch({.block = {1}, .dynamic_shared = most + 1024}, Arguments().add(*out).add(0u)));
}

TEST_F(CudaGpu, RefusedModuleCarriesTheLog) {
  const auto module = device->load(
      ".version 7.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n  frobnicate.u32 1;\n}\n");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.diags()[0].id, "module-load");
  EXPECT_NE(module.diags().text().find("<ptx>:6: error: "), std::string::npos)
      << module.diags().text();
}

TEST_F(CudaGpu, OutOfMemory) {
  const auto buffer = device->allocate(std::size_t{1} << 46);
  ASSERT_FALSE(buffer);
  EXPECT_NE(buffer.diags()[0].message.find("70368744177664"), std::string::npos);
}

// A failed kernel ends its process's context: each of these runs in its own process.
[[noreturn]] void run_to_failure(const std::string& name, std::optional<std::uint64_t> address) {
  auto device = Device::open("cuda");
  auto kernel = device->load(ptx)->kernel(name);
  auto buffer = device->allocate(16);
  Arguments arguments;
  if (address) arguments.add(*address + (*address < 16 ? buffer->address() : 0));
  const auto launched = kernel->launch({.block = {1}}, arguments);
  const auto status = device->synchronize();
  if (launched && !status)
    std::cerr << status.diags().text() << device->findings().size() << " finding";
  std::exit(0);
}

TEST_F(CudaGpu, FailedKernels) {
  device.reset();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_to_failure("store", 1 << 20), testing::ExitedWithCode(0),
              "memory-fault.\n1 finding");
  EXPECT_EXIT(run_to_failure("store", 1), testing::ExitedWithCode(0),
              "misaligned-access.\n1 finding");
  EXPECT_EXIT(run_to_failure("stop", std::nullopt), testing::ExitedWithCode(0), "trap.\n1 finding");
}

// The driver reads a bundle by itself, and takes the module that Bundle::best() names.
TEST_F(CudaGpu, DriverPicksTheModuleOfABundle) {
  std::vector<BundleImage> images;
  for (const std::string target : {"sm_80", "sm_90", "sm_90a", "sm_100"})
    images.push_back({*Arch::parse(target), false,
                      ".version 8.6\n.target " + target +
                          "\n.address_size 64\n.visible .entry on_" + target +
                          "()\n{\n  ret;\n}\n"});
  for (const bool reversed : {false, true}) {
    if (reversed) std::ranges::reverse(images);
    const Bundle bundle(images);
    const std::string bytes = bundle.bytes();
    const BundleImage* const best = bundle.best(device->arch().sm);
    ASSERT_NE(best, nullptr);
    const std::string expected = "on_" + best->arch.text();
    const auto picked = device->load(std::as_bytes(std::span(bytes)), "bundle", {{expected, {}}});
    ASSERT_TRUE(picked) << picked.diags().text();
    auto kernel = picked->kernel(expected);
    ASSERT_TRUE(kernel) << kernel.diags().text();
    EXPECT_TRUE(kernel->launch({}, {}));
    EXPECT_TRUE(device->synchronize());
  }
}

}  // namespace
}  // namespace tartan
