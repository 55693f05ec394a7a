// SPDX-License-Identifier: Apache-2.0
// Tartan as a guest of programs that use a real GPU themselves: their contexts, streams, memory and
// graphs; machine code; what is left after a kernel has failed. Skipped without a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>

#include "tartan/runtime/device.h"
#include "tests/support/index_kernel.h"

namespace tartan {
namespace {

const std::string ptx = R"(.version 7.0
.target sm_80
.address_size 64
)" + test::index_kernel +
                        R"(.visible .entry stop()
{
  trap;
  ret;
}
)";

// A function of the driver, as a program that links it calls it.
template <typename... Params>
auto driver_function(const char* symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  auto* found = reinterpret_cast<int (*)(Params...)>(library ? dlsym(library, symbol) : nullptr);
  EXPECT_NE(found, nullptr) << symbol;
  return found;
}

class CudaGpuGuest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open("cuda");
    if (!opened) GTEST_SKIP() << opened.diags().text();
    device = *opened;
  }

  // Runs the kernel, which writes 5 * i.
  static void expect_index_runs(Device& device, LoadedKernel kernel,
                                const Stream* stream = nullptr) {
    auto out = device.allocate(3 * 64 * 4);
    ASSERT_TRUE(out) << out.diags().text();
    const auto launched = kernel.launch({.grid = {3}, .block = {64}},
                                        Arguments().add(*out).add(std::uint32_t{5}), stream);
    ASSERT_TRUE(launched) << launched.diags().text();
    const auto values = out->read_all<std::uint32_t>();
    ASSERT_TRUE(values) << values.diags().text();
    for (std::uint32_t i = 0; i < 192; ++i) ASSERT_EQ((*values)[i], 5 * i);
  }

  static LoadedKernel index(Device& device) {
    auto module = device.load(ptx, "test.ptx");
    EXPECT_TRUE(module) << module.diags().text();
    return *module->kernel("index");
  }

  std::optional<Device> device;
};

TEST_F(CudaGpuGuest, RunsTheCubinThatItAssembled) {
  std::string text = ptx;
  if (device->arch().suffix == 'a') {  // the driver's linker has to be told
    text.replace(text.find(".target sm_80"), 13, ".target " + device->arch().text());
    text.replace(text.find(".version 7.0"), 12, ".version " + device->newest_ptx().text());
    text.replace(text.find("trap;"), 5,
                 device->arch().sm == 90 ? "wgmma.fence.sync.aligned; trap;" : "trap;");
  }
  const auto assembled = device->assemble(text, "test.ptx");
  ASSERT_TRUE(assembled) << assembled.diags().text();
  EXPECT_GT(assembled->cubin.size(), 100u);
  std::cout << device->assembler() << ": " << assembled->cubin.size() << " bytes in "
            << assembled->milliseconds << " ms\n";
  for (const auto& kernels : {assembled->kernels, std::vector<KernelInterface>()}) {
    auto module = device->load(assembled->cubin, "test.cubin", kernels);
    ASSERT_TRUE(module) << module.diags().text();
    std::cout << "loaded in " << module->milliseconds() << " ms\n";
    auto kernel = module->kernel("index");
    ASSERT_TRUE(kernel) << kernel.diags().text();
    ASSERT_EQ(kernel->params().size(), 2u);
    EXPECT_EQ(kernel->params()[1].bytes, 4u);
    expect_index_runs(*device, *kernel);
    const auto resources = kernel->resources();
    ASSERT_TRUE(resources);
    EXPECT_GT(*resources->registers, 0);
    EXPECT_EQ(resources->static_shared, 0u);
    EXPECT_GE(*kernel->blocks_per_sm(64), 16);
  }
  auto cut = assembled->cubin;
  cut.resize(cut.size() / 2);
  EXPECT_FALSE(device->load(cut, "cut", assembled->kernels));
}

TEST_F(CudaGpuGuest, RejectedTextNamesItsLine) {
  const auto assembled = device->assemble(
      ".version 7.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n  frobnicate.u32 1;\n}\n");
  ASSERT_FALSE(assembled);
  EXPECT_NE(assembled.diags().text().find("<ptx>:6: error: "), std::string::npos)
      << assembled.diags().text();
}

TEST_F(CudaGpuGuest, UsesTheCallersContextAndStream) {
  void* context = nullptr;
  ASSERT_EQ((*driver_function<void**, unsigned, int>("cuCtxCreate_v2"))(&context, 0, 0), 0);
  {
    auto adopted = Device::adopt();
    ASSERT_TRUE(adopted) << adopted.diags().text();
    void* stream = nullptr;
    ASSERT_EQ((*driver_function<void**, unsigned>("cuStreamCreate"))(&stream, 0), 0);
    auto queue = adopted->adopt_stream(stream);
    expect_index_runs(*adopted, index(*adopted), &*queue);
    std::uint64_t theirs = 0;
    ASSERT_EQ((*driver_function<std::uint64_t*, std::size_t>("cuMemAlloc_v2"))(&theirs, 64), 0);
    auto view = adopted->view(theirs, 64);
    ASSERT_TRUE(view) << view.diags().text();
    EXPECT_TRUE(view->fill(7));
    EXPECT_EQ((*view->read_all<std::uint8_t>())[63], 7);
    EXPECT_FALSE(adopted->view(4096, 64)) << "no memory";
    EXPECT_EQ((*driver_function<void*>("cuStreamDestroy_v2"))(stream), 0) << "it is still there";
  }
  EXPECT_EQ((*driver_function<void*>("cuCtxDestroy_v2"))(context), 0);
}

TEST_F(CudaGpuGuest, GraphOfLaunchesAndCopiesIsCaptured) {
  auto stream = device->stream();
  auto out = device->allocate(3 * 64 * 4), copy = device->allocate(3 * 64 * 4);
  auto host = device->host_buffer(3 * 64 * 4);
  ASSERT_TRUE(stream && out && copy && host);
  LoadedKernel kernel = index(*device);
  // The driver's own calls below need a current context.
  void* context = nullptr;
  ASSERT_EQ((*driver_function<void**, int>("cuDevicePrimaryCtxRetain"))(&context, 0), 0);
  ASSERT_EQ((*driver_function<void*>("cuCtxSetCurrent"))(context), 0);
  constexpr int thread_local_mode = 1;
  ASSERT_EQ((*driver_function<void*, int>("cuStreamBeginCapture_v2"))(stream->handle(),
                                                                      thread_local_mode),
            0);
  EXPECT_TRUE(out->fill(0xff, *stream));
  const auto launched = kernel.launch({.grid = {3}, .block = {64}, .dynamic_shared = 60'000},
                                      Arguments().add(*out).add(std::uint32_t{5}), &*stream);
  EXPECT_TRUE(launched) << launched.diags().text();
  EXPECT_TRUE(copy->copy_from(*out, 0, &*stream));
  EXPECT_TRUE(copy->read(host->bytes(), *stream));
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ((*driver_function<void*, void**>("cuStreamEndCapture"))(stream->handle(), &graph), 0);
  ASSERT_EQ((*driver_function<void**, void*, unsigned long long>("cuGraphInstantiateWithFlags"))(
                &executable, graph, 0),
            0);
  for (int round = 0; round < 3; ++round) {
    std::ranges::fill(host->bytes(), std::byte{0});
    ASSERT_EQ((*driver_function<void*, void*>("cuGraphLaunch"))(executable, stream->handle()), 0);
    ASSERT_TRUE(stream->synchronize());
    for (std::uint32_t i = 0; i < 192; ++i) ASSERT_EQ(host->as<std::uint32_t>()[i], 5 * i);
  }
  EXPECT_EQ((*driver_function<void*>("cuCtxSetCurrent"))(nullptr), 0);
  EXPECT_EQ((*driver_function<int>("cuDevicePrimaryCtxRelease_v2"))(0), 0);
}

TEST_F(CudaGpuGuest, StreamsWaitForEachOthersEvents) {
  auto first = device->stream(), second = device->stream();
  auto event = device->event();
  auto out = device->allocate(1 << 26), copy = device->allocate(1 << 26);
  auto host = device->host_buffer(1 << 26);
  ASSERT_TRUE(first && second && event && out && copy && host);
  std::ranges::fill(host->bytes(), std::byte{3});
  ASSERT_TRUE(out->write(host->bytes(), *first));
  ASSERT_TRUE(event->record(&*first));
  ASSERT_TRUE(second->wait(*event));
  ASSERT_TRUE(copy->copy_from(*out, 0, &*second));
  ASSERT_TRUE(second->synchronize());
  EXPECT_EQ(copy->read_all<std::uint8_t>()->back(), 3);
}

TEST_F(CudaGpuGuest, DependentLaunchesRun) {
  if (device->arch().sm < 90) GTEST_SKIP() << "from sm_90 on";
  auto stream = device->stream();
  LoadedKernel kernel = index(*device);
  auto out = device->allocate(64 * 4);
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(kernel.launch({.grid = {1}, .block = {64}, .programmatic = i > 0},
                              Arguments().add(*out).add(std::uint32_t{5}), &*stream));
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(out->read_all<std::uint32_t>()->back(), 5u * 63);
}

TEST_F(CudaGpuGuest, CopiesBetweenGpus) {
  if (Device::count() < 2) GTEST_SKIP() << "one GPU";
  auto second = Device::open("cuda:1");
  ASSERT_TRUE(second) << second.diags().text();
  auto here = device->allocate(1 << 20), there = second->allocate(1 << 20);
  auto stream = second->stream();
  auto event = device->event();
  ASSERT_TRUE(here->fill(9));
  ASSERT_TRUE(event->record());
  ASSERT_TRUE(stream->wait(*event)) << "of another GPU";
  ASSERT_TRUE(there->copy_from(*here, 0, &*stream));
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(there->read_all<std::uint8_t>()->back(), 9);
  ASSERT_TRUE(there->fill(1));
  ASSERT_TRUE(here->copy_from(*there));
  EXPECT_EQ(here->read_all<std::uint8_t>()->back(), 1);
  expect_index_runs(*second, index(*second));
  EXPECT_FALSE(second->view(here->address(), 16)) << "the first GPU's";
}

TEST_F(CudaGpuGuest, ModulesLeaveNothing) {
  auto held = device->allocate(1);
  std::size_t before = 0, after = 0, all = 0;
  const auto info = driver_function<std::size_t*, std::size_t*>("cuMemGetInfo_v2");
  void* context = nullptr;
  ASSERT_EQ((*driver_function<void**, int>("cuDevicePrimaryCtxRetain"))(&context, 0), 0);
  ASSERT_EQ((*driver_function<void*>("cuCtxPushCurrent_v2"))(context), 0);
  for (int i = 0; i < 1000; ++i) {
    index(*device);
    if (i == 100) {
      ASSERT_EQ(info(&before, &all), 0);
    }
  }
  ASSERT_EQ(info(&after, &all), 0);
  EXPECT_LT(before - std::min(before, after), std::size_t{16} << 20);
  (*driver_function<void**>("cuCtxPopCurrent_v2"))(&context);
  (*driver_function<int>("cuDevicePrimaryCtxRelease_v2"))(0);
}

TEST_F(CudaGpuGuest, SixteenThreadsLoadAndLaunch) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        auto stream = device->stream();
        expect_index_runs(*device, index(*device), &*stream);
      }
    });
}

// In a process of its own, with everything of the old device still alive.
[[noreturn]] void fail_and_go_on() {
  auto device = Device::open("cuda");
  auto module = device->load(ptx);
  auto stop = module->kernel("stop"), kernel = module->kernel("index");
  auto buffer = device->allocate(1024);
  const auto launched = stop->launch({.block = {1}}, {});
  const auto failed = device->synchronize();
  std::cerr << (failed ? "no failure\n" : failed.diags().text());
  const auto later = buffer->fill(0);
  std::cerr << (later ? "no failure\n" : later.diags().text());
  auto again = Device::open("cuda");
  if (!again) {
    std::cerr << again.diags().text();
    std::exit(0);
  }
  auto out = again->allocate(64 * 4);
  auto second = again->load(ptx)->kernel("index");
  const auto ran =
      second->launch({.grid = {1}, .block = {64}}, Arguments().add(*out).add(std::uint32_t{5}));
  const auto values = out->read_all<std::uint32_t>();
  buffer = Result<Buffer>(Buffer());  // must not free what the new device has at that address
  std::cerr << (launched && ran && values && values->back() == 5 * 63 ? "goes on" : "lost") << '\n';
  std::exit(0);
}

// Driver 580 keeps the error for the whole process: then open() must say so.
TEST_F(CudaGpuGuest, NewDeviceWorksAfterATrapOrOpenRefuses) {
  device.reset();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fail_and_go_on(), testing::ExitedWithCode(0),
              "open a new Device .trap.\n.*an earlier error.*open a new Device .trap.\n"
              "(goes on|.*restart the process .driver.)");
}

}  // namespace
}  // namespace tartan
