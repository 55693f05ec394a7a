// SPDX-License-Identifier: Apache-2.0
// The C interface on a GPU, which is the driver's test double: what reaches the driver.
#include <gtest/gtest.h>
#include <tartan/c.h>
#include <tartan/config.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/double_cubin.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/runtime/temporary_cache.h"

namespace {

std::string taken(tartan_error* error) {
  const std::string text = tartan_error_text(error);
  tartan_error_free(error);
  return text;
}

class COnGpu : public testing::Test {
 protected:
  void SetUp() override {
    fake = FakeCuda();
    ASSERT_EQ(taken(tartan_open("cuda", nullptr, &device)), "");
  }
  void TearDown() override {
    fake.kernel = {};
    fake.failures.clear();
    tartan_function_free(function);
    tartan_kernel_free(kernel);
    tartan_device_free(device);
  }

  FakeCuda& fake = fake_cuda();
  tartan_device* device = nullptr;
  tartan_kernel* kernel = nullptr;
  tartan_function* function = nullptr;
};

TEST_F(COnGpu, NamesTheDeviceAndReportsTheDriversErrors) {
  EXPECT_STREQ(tartan_device_name(device), "Fake GPU (sm_90), driver 13.0");
  EXPECT_STREQ(tartan_device_arch(device), "sm_90a");
  EXPECT_STREQ(tartan_device_gpu(device), TARTAN_HAS_LLVM ? "H100" : "");  // the usual one of sm_90
  EXPECT_EQ(tartan_device_multiprocessors(device), fake.multiprocessors);
  EXPECT_EQ(tartan_device_emulated(device), 0);
  fake.failures["cuMemAlloc"] = 1;
  tartan_buffer* buffer = nullptr;
  tartan_error* error = tartan_allocate(device, 8, &buffer);
  EXPECT_STREQ(tartan_error_rule(error), "driver");
  EXPECT_NE(taken(error).find("cuMemAlloc"), std::string::npos);
  EXPECT_EQ(buffer, nullptr);
}

TEST_F(COnGpu, BuffersAreTheDrivers) {
  tartan_buffer* buffer = nullptr;
  ASSERT_EQ(taken(tartan_allocate(device, 8, &buffer)), "");
  EXPECT_EQ(fake.memory.count(tartan_buffer_address(buffer)), 1u);
  const char from[] = "1234567";
  char to[8] = {};
  EXPECT_EQ(taken(tartan_write(buffer, 0, from, 8)), "");
  EXPECT_EQ(taken(tartan_read(buffer, 0, to, 8)), "");
  EXPECT_STREQ(to, from);
  tartan_buffer_free(buffer);
  EXPECT_TRUE(fake.memory.empty());
}

TEST_F(COnGpu, FindsNoGpu) {
  fake.devices = 0;
  tartan_device* none = device;
  tartan_error* error = tartan_open("cuda", nullptr, &none);
  EXPECT_EQ(none, nullptr);
  EXPECT_STREQ(tartan_error_rule(error), "no-device");
  tartan_error_free(error);
}

// A product of 300 x 200 in m and n, in the caller's stream: grid and tensor maps are computed.
TEST_F(COnGpu, LaunchesInTheCallersStream) {
  if (taken(tartan_compile("gemm", "sm_90a",
                           R"({"m": 0, "n": 0, "k": 0, "type": "bf16", "tile": "128x128x64",
                               "warps": "4x1", "producers": 4})",
                           &kernel))
          .find("no code generation") != std::string::npos)
    GTEST_SKIP() << "this build has no code generation";
  ASSERT_EQ(taken(tartan_load(device, kernel, &function)), "");
  const std::int32_t sizes[] = {300, 200, 64};
  std::vector<std::byte> memory(4 * 300 * 200 + 256);
  const auto address = (reinterpret_cast<std::uint64_t>(memory.data()) + 255) / 256 * 256;
  tartan_argument arguments[6] = {};
  for (int i = 0; i < 3; ++i) arguments[i] = {&sizes[i], sizeof sizes[i], 0};
  for (int i = 3; i < 6; ++i) arguments[i] = {&address, sizeof address, 4 * 300 * 200};
  std::uint64_t passed = 0;
  std::int32_t rows = 0;
  bool has_maps = false;
  fake.kernel = [&](const FakeLaunch& launch) {
    std::memcpy(&rows, launch.params[0], sizeof rows);
    std::memcpy(&passed, launch.params[5], sizeof passed);
    for (int i = 6; i < 8; ++i)  // the maps of A and B, 128 bytes each
      for (int byte = 0; byte < 128; ++byte)
        has_maps |= static_cast<const char*>(launch.params[i])[byte] != 0;
  };
  int stream = 0;
  tartan_launch_options options = {};
  options.size = sizeof options;
  options.stream = &stream;
  ASSERT_EQ(taken(tartan_launch(function, &options, arguments, 6)), "");
  ASSERT_EQ(fake.launches.size(), 1u);
  const FakeLaunch& launch = fake.launches[0];
  EXPECT_EQ(launch.stream, &stream);
  EXPECT_EQ(launch.grid[0], 3u * 2u);
  EXPECT_EQ(launch.grid[1], 1u);
  EXPECT_EQ(launch.block[0], 128u + 128u);
  EXPECT_EQ(rows, 300);
  EXPECT_EQ(passed, address);
  EXPECT_TRUE(has_maps);

  arguments[5].extent -= 1;
  const std::string small = taken(tartan_launch(function, &options, arguments, 6));
  EXPECT_NE(small.find("C (parameter 5)"), std::string::npos) << small;
  EXPECT_EQ(fake.launches.size(), 1u) << "nothing was launched";
}

// Persistent attention: as many CTAs as run at a time, unless the caller divides the heads.
TEST_F(COnGpu, PersistentAttentionFillsTheGpu) {
  fake.multiprocessors = 132;
  if (taken(tartan_compile("attention", "sm_90a", R"({"causal": true})", &kernel))
          .find("no code generation") != std::string::npos)
    GTEST_SKIP() << "this build has no code generation";
  ASSERT_EQ(taken(tartan_load(device, kernel, &function)), "");
  std::int32_t sizes[] = {4096, 4096, 32, 8};
  const float scale = 0.125F;
  const std::uint64_t address = 1 << 20;
  tartan_argument arguments[10] = {};
  for (int i = 0; i < 4; ++i) arguments[i] = {&sizes[i], sizeof sizes[i], 0};
  arguments[4] = {&scale, sizeof scale, 0};
  for (int i = 5; i < 10; ++i) arguments[i] = {&address, sizeof address, 0};
  using Grid = std::vector<unsigned>;
  const auto grid_of = [&](unsigned x, unsigned y, unsigned z) {
    tartan_launch_options options = {};
    options.size = sizeof options;
    options.grid[0] = x, options.grid[1] = y, options.grid[2] = z;
    const std::size_t before = fake.launches.size();
    EXPECT_EQ(taken(tartan_launch(function, &options, arguments, 10)), "");
    if (fake.launches.size() == before) return Grid();
    return Grid(fake.launches.back().grid, fake.launches.back().grid + 3);
  };
  EXPECT_EQ(grid_of(0, 0, 4), (Grid{33, 1, 4}));
  EXPECT_EQ(grid_of(0, 0, 1), (Grid{132, 1, 1}));
  EXPECT_EQ(grid_of(0, 0, 100), (Grid{704, 1, 100})) << "one for each tile of 192 queries";
  EXPECT_EQ(grid_of(0, 32, 4), (Grid{22, 32, 4}));
  EXPECT_EQ(grid_of(11, 0, 4), (Grid{11, 32, 4}));
  sizes[0] = 200, sizes[2] = 8;
  EXPECT_EQ(grid_of(0, 0, 2), (Grid{16, 1, 2})) << "no more than tiles";
  sizes[0] = 0;
  EXPECT_EQ(grid_of(0, 0, 2), Grid()) << "no query";
}

TEST_F(COnGpu, ACacheKeepsPtxAndMachineCode) {
  const tartan::test::TemporaryCache folder;
  fake.cubin = tartan::test::double_cubin("gemm           ");
  const auto ready = [&](const char* options) {
    tartan_function_free(function);
    tartan_kernel_free(kernel);
    fake.calls.clear();
    std::string wrong = taken(tartan_compile("gemm", "sm_90a", options, &kernel));
    return wrong.empty() ? taken(tartan_load(device, kernel, &function)) : wrong;
  };
  const auto entries = [&] { return folder.open().stats().entries; };
  ASSERT_EQ(taken(tartan_use_cache(folder.path().c_str())), "");
  const std::string first = ready("{}");
  if (first.find("no code generation") != std::string::npos) GTEST_SKIP() << first;
  ASSERT_EQ(first, "");
  EXPECT_TRUE(fake.called("cuLinkComplete"));
  EXPECT_EQ(entries(), 2u) << "by its key, and machine code";

  // As another process opens it.
  ASSERT_EQ(taken(tartan_use_cache(folder.path().c_str())), "");
  const std::string ptx = tartan_kernel_ptx(kernel);
  ASSERT_EQ(ready("{}"), "");
  EXPECT_FALSE(fake.called("cuLinkComplete"));
  EXPECT_EQ(tartan_kernel_ptx(kernel), ptx);

  char* problems = nullptr;
  ASSERT_EQ(taken(tartan_cache_problems(&problems)), "");
  EXPECT_EQ(std::string(problems).find("message"), std::string::npos) << problems;
  tartan_string_free(problems);
  std::filesystem::remove_all(folder.path());
  ASSERT_EQ(ready(R"({"type": "bf16"})"), "") << "without a folder it works, too";
  ASSERT_EQ(taken(tartan_cache_problems(&problems)), "");
  EXPECT_NE(std::string(problems).find(folder.path()), std::string::npos) << problems;
  tartan_string_free(problems);

  ASSERT_EQ(taken(tartan_use_cache("")), "");
  ASSERT_EQ(ready(R"({"type": "f32"})"), "");
  EXPECT_EQ(entries(), 0u);
  tartan_error* error = tartan_use_cache("/dev/null");
  EXPECT_STREQ(tartan_error_rule(error), "file");
  tartan_error_free(error);
}

TEST_F(COnGpu, AdoptsAContext) {
  int theirs = 0;  // a CUcontext
  tartan_device* adopted = nullptr;
  EXPECT_NE(taken(tartan_adopt(nullptr, &adopted)).find("no context is current"),
            std::string::npos);
  ASSERT_EQ(taken(tartan_adopt(&theirs, &adopted)), "");
  EXPECT_STREQ(tartan_device_arch(adopted), "sm_90a");
  EXPECT_EQ(taken(tartan_synchronize(adopted)), "");
  EXPECT_EQ(fake.current_context, &theirs);
  tartan_device_free(adopted);
}

}  // namespace
