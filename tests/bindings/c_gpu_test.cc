// SPDX-License-Identifier: Apache-2.0
// The C interface on a GPU, which is the driver's test double: what reaches the driver.
#include <gtest/gtest.h>
#include <tartan/c.h>
#include <tartan/config.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
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

// Attention of an unknown number of keys is launched by the kernel for as many as there are.
class CAttention : public COnGpu {
 protected:
  // "" if it is loaded.
  std::string load(const char* options) {
    const std::string wrong = taken(tartan_compile("attention", "sm_90a", options, &kernel));
    return wrong.empty() ? taken(tartan_load(device, kernel, &function)) : wrong;
  }

  // Queries and keys, a window if `window` is given, and sequences if `sequences` is: the threads
  // of a block, and the grid.
  std::vector<unsigned> launched(std::vector<std::int32_t> sizes, float scale,
                                 std::vector<std::int32_t> more, std::size_t pointers,
                                 std::vector<unsigned> grid) {
    const std::uint64_t address = 1 << 20;
    std::vector<tartan_argument> arguments;
    for (const auto& size : sizes) arguments.push_back({&size, sizeof size, 0});
    arguments.push_back({&scale, sizeof scale, 0});
    for (const auto& each : more) arguments.push_back({&each, sizeof each, 0});
    arguments.resize(arguments.size() + pointers, {&address, sizeof address, 0});
    tartan_launch_options options = {};
    options.size = sizeof options;
    std::copy(grid.begin(), grid.end(), options.grid);
    const std::size_t before = fake.launches.size();
    EXPECT_EQ(taken(tartan_launch(function, &options, arguments.data(), arguments.size())), "");
    if (fake.launches.size() == before) return {};
    const FakeLaunch& last = fake.launches.back();
    return {last.block[0], last.grid[0], last.grid[1], last.grid[2]};
  }
};

// A block of one warpgroup and a producer warp, or of three and a producer warpgroup.
constexpr unsigned few = 160, many = 512;
using Shape = std::vector<unsigned>;

TEST_F(CAttention, IsLaunchedByTheKernelForItsKeys) {
  fake.multiprocessors = 132;
  const std::string wrong = load(R"({"causal": true})");
  if (wrong.find("no code generation") != std::string::npos) GTEST_SKIP() << wrong;
  ASSERT_EQ(wrong, "");
  EXPECT_NE(std::string(tartan_kernel_info(kernel)).find(R"("variants":["keys=2048"])"),
            std::string::npos)
      << tartan_kernel_info(kernel);
  const auto shape = [&](std::int32_t queries, std::int32_t keys, std::vector<unsigned> grid) {
    return launched({queries, keys, 32, 8}, .125F, {}, 5, std::move(grid));
  };
  EXPECT_EQ(shape(100, 100, {0, 0, 4}), (Shape{few, 2, 32, 4}));
  EXPECT_EQ(shape(4096, 2048, {0, 0, 4}), (Shape{few, 64, 32, 4}));
  EXPECT_EQ(shape(4096, 2049, {0, 0, 4}), (Shape{many, 33, 1, 4}));
  EXPECT_EQ(shape(0, 100, {0, 0, 4}), Shape()) << "no query";
  // Tiles and heads that the caller divides are those of the kernel that was compiled.
  EXPECT_EQ(shape(100, 100, {1, 32, 4}), (Shape{many, 1, 32, 4}));
  EXPECT_EQ(shape(100, 100, {0, 32, 4}), (Shape{many, 1, 32, 4}));
  EXPECT_EQ(shape(100, 100, {7, 0, 4}), (Shape{many, 7, 32, 4}));
}

TEST_F(CAttention, OfSequencesIsLaunchedByTheLongest) {
  const std::string wrong = load(R"({"packed": true, "causal": true})");
  if (wrong.find("no code generation") != std::string::npos) GTEST_SKIP() << wrong;
  ASSERT_EQ(wrong, "");
  // 10 sequences; the grid has room for queries of the longest, in blocks of 192.
  const auto shape = [&](std::int32_t rows, std::vector<unsigned> grid) {
    return launched({rows, rows, 32, 8}, .125F, {10}, 7, std::move(grid));
  };
  EXPECT_EQ(shape(5000, {10, 0, 0}), (Shape{few, 30, 32, 10}));
  EXPECT_EQ(shape(5000, {11, 0, 0}), (Shape{many, 11, 32, 10})) << "up to 2112 queries";
  EXPECT_EQ(shape(2000, {11, 0, 0}), (Shape{few, 32, 32, 10})) << "no more than all queries";
  EXPECT_EQ(shape(30000, {1, 0, 0}), (Shape{many, 1, 32, 10})) << "3000 keys in the mean";
  EXPECT_EQ(shape(5000, {10, 16, 5}), (Shape{few, 30, 16, 5}));
}

TEST_F(CAttention, OfAWindowIsLaunchedByIt) {
  const std::string wrong = load(R"({"window": true, "causal": true, "head-dim": 128})");
  if (wrong.find("no code generation") != std::string::npos) GTEST_SKIP() << wrong;
  ASSERT_EQ(wrong, "");
  const auto blocks = [&](std::int32_t window) {
    return launched({4096, 4096, 32, 8}, .125F, {window}, 5, {0, 0, 1}).at(0);
  };
  EXPECT_EQ(blocks(768), few);
  EXPECT_EQ(blocks(769), 384u);
  EXPECT_EQ(blocks(-1), few) << "a window that hides everything";
}

TEST_F(CAttention, OfAKnownNumberOfKeysHasOneKernel) {
  const std::string wrong = load(R"({"causal": true, "keys": 4096})");
  if (wrong.find("no code generation") != std::string::npos) GTEST_SKIP() << wrong;
  ASSERT_EQ(wrong, "");
  EXPECT_NE(std::string(tartan_kernel_info(kernel)).find(R"("variants":[])"), std::string::npos);
  EXPECT_EQ(launched({100, 100, 32, 8}, .125F, {}, 5, {0, 0, 1}).at(0), many);
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
