// SPDX-License-Identifier: Apache-2.0
// The CUDA engine against a test double of the driver: the calls, their arguments, and the handling
// of each failure.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/jit.h"
#include "tartan/runtime/device.h"
#include "tests/runtime/cuda_double.h"

namespace tartan {
namespace {

struct Shape {
  std::uint32_t rows, columns, pitch;
};

using CudaEngine = test::CudaDouble;
using test::double_ptx;

TEST_F(CudaEngine, ReportsNameAndArchitecture) {
  EXPECT_FALSE(device->emulated());
  EXPECT_EQ(device->name(), "Fake GPU (sm_90), driver 13.0");
  EXPECT_EQ(device->arch(), (Arch{90, 'a'}));
  fake.capability = 86;
  EXPECT_EQ(device->arch(), (Arch{86, 0})) << "has no suffix a";
  fake.capability = 120;
  EXPECT_EQ(device->arch(), (Arch{120, 'a'}));
  fake.capability = 999;
  EXPECT_EQ(device->arch(), (Arch{121, 0})) << "the newest that is known";
}

TEST_F(CudaEngine, BestIsTheGpu) {
  EXPECT_FALSE(Device::best()->emulated());
  EXPECT_FALSE(Device::open("auto", {.hardware = "sm_90"})->emulated());
  EXPECT_FALSE(Device::best({.hardware = "nothing"})) << "wrong on every machine";
}

TEST_F(CudaEngine, OtherHardwareIsEmulated) {
  const auto chosen = Device::open("auto", {.hardware = "sm_80"});
  ASSERT_TRUE(chosen);
  EXPECT_TRUE(chosen->emulated());
  EXPECT_EQ(chosen->remark(),
            "running on the emulator with the arithmetic of sm_80: the GPU is Fake GPU (sm_90), "
            "driver 13.0");
  EXPECT_EQ(device->remark(), "");
}

TEST_F(CudaEngine, CopiesWaitForTheDevice) {
  auto buffer = device->allocate(8);
  ASSERT_TRUE(buffer);
  const std::vector<std::uint32_t> values{1, 2};
  ASSERT_TRUE(buffer->write(values));
  EXPECT_TRUE(fake.called("cuCtxSynchronize"));
  EXPECT_EQ(*buffer->read_all<std::uint32_t>(), values);
  ASSERT_TRUE(buffer->fill(0xab));
  EXPECT_EQ((*buffer->read_all<std::uint32_t>())[1], 0xababababu);
  EXPECT_EQ(fake.memory.size(), 1u);
}

TEST_F(CudaEngine, ParametersComeFromTheText) {
  const LoadedKernel kernel = load("scale");
  ASSERT_EQ(kernel.params().size(), 3u);
  EXPECT_EQ(kernel.params()[0].name, "data");
  EXPECT_EQ(kernel.params()[0].bytes, 8u);
  EXPECT_EQ(kernel.params()[1].bytes, 4u);
  EXPECT_EQ(kernel.params()[2].bytes, 12u);
  EXPECT_TRUE(load("other").params().empty());
}

TEST_F(CudaEngine, LaunchPassesEverything) {
  LoadedKernel kernel = load("scale");
  auto buffer = device->allocate(16);
  auto stream = device->stream();
  ASSERT_TRUE(buffer && stream);
  fake.kernel = [&](const FakeLaunch& launch) {
    std::uint64_t address = 0;
    float factor = 0;
    Shape shape{};
    std::memcpy(&address, launch.params[0], 8);
    std::memcpy(&factor, launch.params[1], 4);
    std::memcpy(&shape, launch.params[2], 12);
    EXPECT_EQ(address, buffer->address());
    EXPECT_EQ(factor, 0.5f);
    EXPECT_EQ(shape.pitch, 7u);
  };
  const Arguments arguments = Arguments().add(*buffer).add(0.5f).add(Shape{5, 6, 7});
  ASSERT_TRUE(
      kernel.launch({.grid = {2, 3, 4}, .block = {32, 2, 1}, .dynamic_shared = 100}, arguments));
  ASSERT_TRUE(kernel.launch({.grid = {1}, .block = {32}}, arguments, &*stream));
  ASSERT_EQ(fake.launches.size(), 2u);
  const FakeLaunch& first = fake.launches[0];
  EXPECT_EQ(std::vector(first.grid, first.grid + 3), (std::vector{2u, 3u, 4u}));
  EXPECT_EQ(std::vector(first.block, first.block + 3), (std::vector{32u, 2u, 1u}));
  EXPECT_EQ(first.shared, 100u);
  EXPECT_EQ(first.stream, nullptr);
  EXPECT_NE(fake.launches[1].stream, nullptr);
  EXPECT_EQ(fake.launches[1].stream, stream->handle());
}

TEST_F(CudaEngine, ClustersArePassed) {
  LoadedKernel kernel = load("other");
  const Launch launch{
      .grid = {4, 6, 2}, .block = {32, 2}, .dynamic_shared = 64, .cluster = {2, 3, 1}};
  ASSERT_TRUE(kernel.launch(launch, {}));
  ASSERT_EQ(fake.launches.size(), 1u);
  const FakeLaunch& first = fake.launches[0];
  EXPECT_EQ(std::vector(first.grid, first.grid + 3), (std::vector{4u, 6u, 2u}));
  EXPECT_EQ(std::vector(first.block, first.block + 3), (std::vector{32u, 2u, 1u}));
  EXPECT_EQ(std::vector(first.cluster, first.cluster + 3), (std::vector{2u, 3u, 1u}));
  EXPECT_EQ(first.shared, 64u);
  EXPECT_FALSE(fake.large_clusters);
  ASSERT_TRUE(kernel.launch({.grid = {16}, .block = {32}, .cluster = {16, 1, 1}}, {}));
  EXPECT_TRUE(fake.large_clusters);
  EXPECT_EQ(complaint(kernel.launch({.grid = {5}, .block = {32}, .cluster = {2, 1, 1}}, {})),
            "error: the grid of 5 x 1 x 1 blocks is not a multiple of the cluster of 2 x 1 x 1 "
            "[launch-arguments]");
}

TEST_F(CudaEngine, CooperativeLaunches) {
  LoadedKernel kernel = load("other");
  ASSERT_TRUE(kernel.launch({.grid = {4}, .block = {32}, .cooperative = true}, {}));
  ASSERT_TRUE(
      kernel.launch({.grid = {4}, .block = {32}, .cluster = {2, 1, 1}, .cooperative = true}, {}));
  ASSERT_TRUE(kernel.launch({.grid = {4}, .block = {32}}, {}));
  ASSERT_EQ(fake.launches.size(), 3u);
  EXPECT_TRUE(fake.launches[0].cooperative);
  EXPECT_EQ(fake.launches[0].cluster[0], 0u);
  EXPECT_TRUE(fake.launches[1].cooperative);
  EXPECT_EQ(fake.launches[1].cluster[0], 2u);
  EXPECT_FALSE(fake.launches[2].cooperative);
}

TEST_F(CudaEngine, DependentLaunchesAreSaidToBe) {
  LoadedKernel kernel = load("other");
  ASSERT_TRUE(kernel.launch({.grid = {4}, .block = {32}, .programmatic = true}, {}));
  ASSERT_TRUE(kernel.launch({.grid = {4}, .block = {32}, .cluster = {2, 1, 1}}, {}));
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_TRUE(fake.launches[0].programmatic);
  EXPECT_FALSE(fake.launches[0].cooperative);
  EXPECT_FALSE(fake.launches[1].programmatic);
}

TEST_F(CudaEngine, VariablesAreBuffers) {
  fake.variables["table"] = std::vector<std::byte>(12);
  auto module = device->load(
      std::string(double_ptx) + ".const .u32 table[3];\n.extern .global .u32 far;\n", "test.ptx");
  ASSERT_TRUE(module);
  auto table = module->variable("table");
  ASSERT_TRUE(table) << table.diags().text();
  EXPECT_EQ(table->size(), 12u);
  const std::vector<std::uint32_t> values{7, 8, 9};
  ASSERT_TRUE(table->write(values));
  EXPECT_EQ(*table->read_all<std::uint32_t>(), values);
  EXPECT_EQ(std::memcmp(fake.variables["table"].data(), values.data(), 12), 0);
  EXPECT_EQ(complaint(module->variable("far")),
            "error: test.ptx has no variable far in global or constant memory; it has table "
            "[unknown-variable]");
  EXPECT_TRUE(module->warnings().empty());
  fake.failures["cuModuleGetGlobal"] = 700;
  EXPECT_FALSE(module->variable("table"));
}

TEST_F(CudaEngine, SharedMemoryIsOptedIn) {
  LoadedKernel kernel = load("other");
  ASSERT_TRUE(kernel.launch({.block = {32}, .dynamic_shared = 48 * 1024}, {}));
  EXPECT_FALSE(fake.called("cuFuncSetAttribute"));
  ASSERT_TRUE(kernel.launch({.block = {32}, .dynamic_shared = 200'000}, {}));
  EXPECT_EQ(fake.max_dynamic_shared, 232448);
  EXPECT_EQ(complaint(kernel.launch({.block = {32}, .dynamic_shared = 232449}, {})),
            "error: kernel other has at most 232448 bytes of dynamic shared memory per block on "
            "this GPU, found 232449 [launch-arguments]");
}

TEST_F(CudaEngine, StaticSharedMemoryCounts) {
  fake.static_shared = 1024;
  LoadedKernel kernel = load("other");
  ASSERT_TRUE(kernel.launch({.block = {32}, .dynamic_shared = 48 * 1024}, {}));
  EXPECT_EQ(fake.max_dynamic_shared, 232448 - 1024);
}

TEST_F(CudaEngine, LaunchThatDoesNotFitNeverReachesTheDriver) {
  fake.max_threads = 256;
  LoadedKernel kernel = load("scale");
  const auto status = kernel.launch({.grid = {0}, .block = {1024, 2}}, Arguments().add(1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.diags().text(),
            "error: grid.x: expected 1 to 2147483647, found 0 [launch-arguments]\nerror: wrong "
            "number of arguments: kernel scale expects 3 arguments, found 1 [launch-arguments]\n");
  EXPECT_EQ(
      complaint(
          kernel.launch({.block = {32}}, Arguments().add(std::uint64_t{0}).add(1.0).add(Shape{}))),
      "error: argument 1 (factor) of kernel scale: expected 4 bytes, found 8 [launch-arguments]");
  EXPECT_EQ(complaint(load("other").launch({.block = {32, 32, 2}}, {})),
            "error: thread block too large: expected at most 1024 threads, found 32 x 32 x 2 = "
            "2048 [launch-arguments]");
  EXPECT_EQ(complaint(load("other").launch({.block = {512}}, {})),
            "error: kernel other supports at most 256 threads per block on this GPU (registers, "
            ".maxntid), found 512 [launch-arguments]");
  EXPECT_FALSE(fake.called("cuLaunchKernel"));
}

TEST_F(CudaEngine, UnknownKernelListsExistingOnes) {
  auto module = device->load(double_ptx, "test.ptx");
  ASSERT_TRUE(module);
  EXPECT_EQ(complaint(module->kernel("scael")),
            "error: test.ptx has no kernel scael; it has scale, other [unknown-kernel]");
}

TEST_F(CudaEngine, RefusedModuleCarriesTheLog) {
  fake.failures["cuModuleLoadDataEx"] = 218;
  fake.error_log = "ptxas application ptx input, line 5; error : Unknown thing\n";
  fake.info_log = "info: 12 registers";
  EXPECT_EQ(complaints(device->load(double_ptx, "test.ptx")),
            "error: test.ptx (.target sm_90) was rejected by the driver: cuModuleLoadDataEx: "
            "CUDA_ERROR_INVALID_PTX (218)\n  info: 12 registers [module-load]\n"
            "test.ptx:5: error: the driver's assembler: Unknown thing [module-load]");
}

TEST_F(CudaEngine, LongLogIsCut) {
  fake.failures["cuModuleLoadDataEx"] = 218;
  fake.error_log = std::string(1'000'000, 'x');
  const std::string text = complaint(device->load(double_ptx, "test.ptx"));
  EXPECT_NE(text.find("xxxx"), std::string::npos);
  EXPECT_LT(text.size(), 20'000u);
}

TEST_F(CudaEngine, OldDriverReportsItsNewestPtx) {
  fake.driver_version = 12010;
  const char* expected =
      "error: test.ptx is PTX 8.3, and the installed driver (CUDA 12.1) supports at most PTX 8.1: "
      "emit with --ptx 8.1, or install a newer driver [driver-version]";
  EXPECT_EQ(device->newest_ptx(), (Version{8, 1}));
  EXPECT_EQ(complaint(device->load(double_ptx, "test.ptx")), expected);
  EXPECT_EQ(complaint(device->assemble(double_ptx, "test.ptx")), expected);
  EXPECT_FALSE(fake.called("cuModuleLoadDataEx") || fake.called("cuLinkCreate"));
  fake.driver_version = 12030;
  EXPECT_TRUE(device->load(double_ptx, "test.ptx"));
}

TEST_F(CudaEngine, MultiprocessorsAreTheDrivers) {
  EXPECT_EQ(device->multiprocessors(), 114);
  const auto emulated = [](const char* hardware) {
    return Device::open("emulator", {.hardware = hardware})->multiprocessors();
  };
  EXPECT_EQ(emulated(""), 132);
  EXPECT_EQ(emulated("sm_80"), 108);
}

TEST_F(CudaEngine, BadTextNeverReachesTheDriver) {
  const auto module = device->load("this is no PTX", "bad.ptx");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.diags()[0].place.file, "bad.ptx");
  EXPECT_FALSE(fake.called("cuModuleLoadDataEx"));
}

TEST_F(CudaEngine, FailedKernelIsReportedWithItsConsequence) {
  ASSERT_TRUE(load("other").launch({.block = {32}}, {}));
  EXPECT_TRUE(device->findings().empty());
  fake.kernel_fails(700);
  EXPECT_EQ(
      complaint(device->synchronize()),
      "error: cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access "
      "was encountered; the error has destroyed the GPU context, and all memory in it: open a "
      "new Device [memory-fault]");
  EXPECT_EQ(complaint(device->allocate(4)),
            "error: cuMemAlloc_v2 failed: an earlier error has destroyed the GPU context "
            "(cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was "
            "encountered): open a new Device [memory-fault]");
  ASSERT_EQ(device->findings().size(), 1u) << "later calls say the same";
  EXPECT_EQ(device->findings()[0].id, "memory-fault");
  EXPECT_EQ(device->findings()[0].block, no_block);
  device->clear_findings();
  EXPECT_TRUE(device->findings().empty());
}

TEST_F(CudaEngine, EveryFailureNamesItsCall) {
  fake.failures["cuMemAlloc"] = 2;
  EXPECT_EQ(
      complaint(device->allocate(12345)),
      "error: the GPU cannot allocate 12345 bytes, 1000 of its 80000 are free: "
      "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2); free buffers, or end other processes that "
      "use the GPU (nvidia-smi lists them) [driver]");
  fake.failures["cuStreamCreate"] = 1;
  EXPECT_EQ(complaint(device->stream()),
            "error: cuStreamCreate: CUDA_ERROR_INVALID_VALUE (1) [driver]");
  fake.failures["cuEventCreate"] = 12345;
  EXPECT_EQ(complaint(device->event()), "error: cuEventCreate: unknown error (12345) [driver]");
  fake.failures["cuModuleGetFunction"] = 1;
  EXPECT_EQ(complaint(device->load(double_ptx)->kernel("other")),
            "error: cuModuleGetFunction: CUDA_ERROR_INVALID_VALUE (1) [driver]");
  fake.failures["cuCtxPushCurrent"] = 4;
  EXPECT_EQ(complaint(device->synchronize()),
            "error: cuCtxSynchronize: unknown error (4); the driver has shut down, as it does when "
            "the process ends: use no GPU after main() [driver]");
}

TEST_F(CudaEngine, EventsMeasure) {
  auto start = device->event(), end = device->event();
  ASSERT_TRUE(start && end);
  ASSERT_TRUE(start->record());
  ASSERT_TRUE(end->record());
  EXPECT_EQ(*end->milliseconds_since(*start), 1.5);
  fake.failures["cuEventSynchronize"] = 700;
  EXPECT_FALSE(end->milliseconds_since(*start));
}

TEST_F(CudaEngine, ObjectsKeepWhatTheyNeedAndFreeIt) {
  {
    std::optional<LoadedKernel> kernel = load("other");
    auto buffer = device->allocate(1);
    auto stream = device->stream();
    auto event = device->event();
    device.reset();
    EXPECT_EQ(fake.contexts, 1);
    EXPECT_EQ(fake.modules, 1);
    EXPECT_TRUE(kernel->launch({.block = {1}}, {}, &*stream));
    kernel.reset();
    EXPECT_EQ(fake.modules, 0);
    EXPECT_EQ(fake.memory.size(), 1u);
  }
  EXPECT_EQ(fake.memory.size(), 0u);
  EXPECT_EQ(fake.streams, 0);
  EXPECT_EQ(fake.events, 0);
  EXPECT_EQ(fake.contexts, 0);
}

TEST_F(CudaEngine, FreeingAfterDriverShutdownIsSilent) {
  std::optional<Buffer> buffer = *device->allocate(4);
  std::optional<Stream> stream = *device->stream();
  for (const char* entry : {"cuCtxPushCurrent", "cuDevicePrimaryCtxRelease"})
    fake.failures[entry] = 4;  // deinitialised
  buffer.reset();
  stream.reset();
  device.reset();
  EXPECT_EQ(fake.streams, 1) << "its destruction was not asked for without a context";
  EXPECT_TRUE(fake.called("cuDevicePrimaryCtxRelease"));
}

TEST_F(CudaEngine, AnyThreadMayCall) {
  std::thread([&] {
    auto buffer = device->allocate(4);
    ASSERT_TRUE(buffer);
    EXPECT_TRUE(buffer->write(std::vector<std::uint32_t>{1}));
  }).join();
}

TEST_F(CudaEngine, NoSuchGpu) {
  fake.devices = 2;
  EXPECT_TRUE(Device::open("cuda:1"));
  EXPECT_NE(complaint(Device::open("cuda:2")).find("no device cuda:2: the driver finds 2 GPUs"),
            std::string::npos);
  for (const char* name : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999"}) {
    const std::string text = complaint(Device::open(name));
    EXPECT_NE(text.find("[no-device]"), std::string::npos) << name;
    EXPECT_NE(text.find("expected auto, emulator, cuda or cuda:N"), std::string::npos) << name;
  }
}

TEST(CudaDriver, NoLibrary) {
  const auto driver = cuda::Driver::load({"/nowhere/libcuda.so.1", "/nowhere/else.so"});
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.diags()[0].id, "no-driver");
  EXPECT_NE(driver.diags()[0].message.find("/nowhere/libcuda.so.1"), std::string::npos);
  EXPECT_NE(driver.diags()[0].message.find("/nowhere/else.so"), std::string::npos);
}

TEST(CudaDriver, SomeOtherLibrary) {
  const auto driver = cuda::Driver::load({"libc.so.6"});
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.diags()[0].id, "no-driver");
  EXPECT_NE(driver.diags()[0].message.find("missing symbol cuInit, "), std::string::npos);
}

TEST(CudaDriver, NoGpu) {
  FakeCuda& fake = fake_cuda();
  fake = FakeCuda();
  fake.failures["cuInit"] = 100;
  const auto driver = cuda::Driver::load({FAKE_CUDA_PATH});
  ASSERT_FALSE(driver);
  EXPECT_EQ(to_string(driver.diags()[0]), "error: cuInit: CUDA_ERROR_NO_DEVICE (100) [no-device]");
  fake.failures["cuInit"] = 34;
  EXPECT_EQ(cuda::Driver::load({FAKE_CUDA_PATH}).diags()[0].id, "no-driver")
      << "the toolkit's stub";
}

TEST(CudaDriver, EnvironmentVariableOverridesDefaultPaths) {
  fake_cuda();
  EXPECT_EQ(cuda::Driver::candidates(), std::vector<std::string>{FAKE_CUDA_PATH});
}

TEST(CudaDriver, NewestPtx) {
  EXPECT_EQ(cuda::newest_ptx(11080), (Version{7, 8}));
  EXPECT_EQ(cuda::newest_ptx(12060), (Version{8, 5}));
  EXPECT_EQ(cuda::newest_ptx(12090), (Version{8, 8}));
  EXPECT_EQ(cuda::newest_ptx(13000), (Version{9, 0}));
  EXPECT_EQ(cuda::newest_ptx(13030), (Version{9, 3}));
  EXPECT_EQ(cuda::newest_ptx(99000), newest_version);
}

}  // namespace
}  // namespace tartan
