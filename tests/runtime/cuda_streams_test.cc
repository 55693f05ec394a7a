// SPDX-License-Identifier: Apache-2.0
// Work in streams, memory and streams of others, copies between devices: on the CUDA driver's test
// double, and where it means something on the emulator.
#include <gtest/gtest.h>

#include "runtime/device_access.h"
#include "tests/runtime/cuda_double.h"

namespace tartan {
namespace {

using CudaStreams = test::CudaDouble;
using Numbers = std::vector<std::uint32_t>;
using Copies = std::vector<std::string>;

std::span<const std::byte> bytes(const Numbers& numbers) {
  return std::as_bytes(std::span(numbers));
}

TEST_F(CudaStreams, CopiesInAStreamDoNotWait) {
  auto stream = device->stream();
  auto buffer = device->allocate(16);
  ASSERT_TRUE(stream && buffer);
  fake.calls.clear();
  ASSERT_TRUE(buffer->fill(0xff, *stream));
  ASSERT_TRUE(buffer->write(bytes({1, 2}), *stream, 4));
  Numbers out(4);
  ASSERT_TRUE(buffer->read(std::as_writable_bytes(std::span(out)), *stream));
  EXPECT_EQ(fake.copies, (Copies{"fill 16", "write 8", "read 16"}));
  EXPECT_EQ(out, (Numbers{~0u, 1, 2, ~0u}));
  EXPECT_FALSE(fake.called("cuCtxSynchronize")) << "it would end the capture of a graph";
  EXPECT_EQ(buffer->write(bytes({1}), *stream, 13).diags()[0].id, "buffer-range");
}

TEST_F(CudaStreams, LaunchesDoNotWait) {
  auto stream = device->stream();
  LoadedKernel kernel = load("other");
  fake.calls.clear();
  ASSERT_TRUE(kernel.launch({.block = {32}, .dynamic_shared = 100'000}, {}, &*stream));
  ASSERT_TRUE(kernel.launch({.grid = {2}, .block = {32}, .programmatic = true}, {}, &*stream));
  EXPECT_EQ(fake.calls, (Copies{"cuFuncSetAttribute", "cuLaunchKernel", "cuLaunchKernelEx"}))
      << "nothing that a capture forbids";
}

TEST_F(CudaStreams, GraphRunsWhatWasCaptured) {
  auto stream = device->stream();
  auto own = detail::DeviceAccess::engine(*device).adopt_stream(stream->handle());
  ASSERT_TRUE(own);
  LoadedKernel kernel = load("other");
  const auto launch = [&] { return kernel.launch({.block = {32}}, {}, &*stream); };
  fake.calls.clear();
  {
    const auto graph = (*own)->captured(launch);
    ASSERT_TRUE(graph && *graph);
    EXPECT_EQ(fake.calls, (Copies{"cuStreamBeginCapture", "cuLaunchKernel", "cuStreamEndCapture",
                                  "cuGraphInstantiate", "cuGraphDestroy"}));
    fake.calls.clear();
    EXPECT_TRUE((*graph)());
    EXPECT_TRUE((*graph)());
    EXPECT_EQ(fake.calls, (Copies{"cuGraphLaunch", "cuGraphLaunch"}));
  }
  EXPECT_TRUE(fake.called("cuGraphExecDestroy"));
  // What fails inside ends the capture all the same.
  fake.calls.clear(), fake.failures["cuLaunchKernel"] = 1;
  EXPECT_EQ(complaint((*own)->captured(launch)), complaint(launch()));
  EXPECT_TRUE(fake.called("cuStreamEndCapture") && fake.called("cuGraphDestroy"));
  fake.failures.clear(), fake.failures["cuGraphInstantiate"] = 1;
  EXPECT_EQ(complaint((*own)->captured(launch)),
            "error: cuGraphInstantiateWithFlags: CUDA_ERROR_INVALID_VALUE (1) [driver]");
  // A driver or an engine without graphs: the caller launches one by one.
  const auto emulator = Device::open("emulator");
  const auto none = (*detail::DeviceAccess::engine(*emulator).stream())->captured(launch);
  EXPECT_TRUE(none && !*none);
}

TEST_F(CudaStreams, StreamWaitsForAnEvent) {
  auto stream = device->stream();
  auto event = device->event();
  ASSERT_TRUE(event->record());
  ASSERT_TRUE(stream->wait(*event));
  EXPECT_TRUE(fake.called("cuStreamWaitEvent"));
  auto emulator = Device::open("emulator");
  EXPECT_EQ(complaint(stream->wait(*emulator->event())),
            "error: the event does not belong to a GPU [foreign-device]");
}

TEST_F(CudaStreams, CallersStreamIsAdopted) {
  int theirs = 0;
  auto stream = device->adopt_stream(&theirs);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->handle(), &theirs);
  LoadedKernel kernel = load("other");
  ASSERT_TRUE(kernel.launch({.block = {32}}, {}, &*stream));
  EXPECT_EQ(fake.launches.back().stream, &theirs);
  stream = device->adopt_stream(nullptr);
  ASSERT_TRUE(kernel.launch({.block = {32}}, {}, &*stream));
  EXPECT_EQ(fake.launches.back().stream, nullptr) << "the default stream";
  EXPECT_FALSE(fake.called("cuStreamDestroy"));
}

TEST_F(CudaStreams, CallersMemoryIsViewed) {
  Numbers theirs{1, 2, 3, 4};
  const auto address = reinterpret_cast<std::uint64_t>(theirs.data());
  auto keep = std::make_shared<int>(0);
  auto view = device->view(address, 16, keep);
  ASSERT_TRUE(view) << view.diags().text();
  EXPECT_EQ(keep.use_count(), 2);
  auto part = view->part(8, 8);
  ASSERT_TRUE(part);
  EXPECT_EQ(*part->read_all<std::uint32_t>(), (Numbers{3, 4}));
  ASSERT_TRUE(part->write(Numbers{7}));
  EXPECT_EQ(theirs[2], 7u);
  view = Result<Buffer>(Buffer());
  EXPECT_EQ(keep.use_count(), 2) << "the part keeps it";
  part = Result<Buffer>(Buffer());
  EXPECT_EQ(keep.use_count(), 1);
  EXPECT_FALSE(fake.called("cuMemFree"));
  EXPECT_EQ(
      complaint(device->view(16, 4)),
      "error: no memory at 0x10 that the CUDA driver knows: expected an address of GPU memory "
      "[foreign-device]");
  fake.memory_owner = 1;
  EXPECT_NE(
      complaint(device->view(address, 16)).find("is memory of GPU 1, and this device is GPU 0"),
      std::string::npos);
}

TEST_F(CudaStreams, HostBuffersArePinned) {
  {
    auto host = device->host_buffer(8);
    ASSERT_TRUE(host);
    EXPECT_EQ(fake.host_buffers, 1);
    EXPECT_EQ(host->bytes().size(), 8u);
    host->as<std::uint32_t>()[1] = 5;
    auto buffer = device->allocate(8);
    auto stream = device->stream();
    EXPECT_TRUE(buffer->write(host->bytes(), *stream));
    EXPECT_EQ((*buffer->read_all<std::uint32_t>())[1], 5u);
  }
  EXPECT_EQ(fake.host_buffers, 0);
}

TEST_F(CudaStreams, CopiesBetweenDevices) {
  fake.devices = 2;
  auto second = Device::open("cuda:1");
  auto emulator = Device::open("emulator");
  auto here = device->allocate(8), same = device->allocate(8), there = second->allocate(12);
  auto emulated = emulator->allocate(8);
  auto stream = second->stream();
  ASSERT_TRUE(here->write(Numbers{1, 2}));
  fake.calls.clear();
  ASSERT_TRUE(there->copy_from(*here, 4, &*stream));
  EXPECT_FALSE(fake.called("cuCtxSynchronize"));
  ASSERT_TRUE(same->copy_from(*here));
  EXPECT_TRUE(fake.called("cuCtxSynchronize")) << "it is done on return";
  EXPECT_EQ(fake.copies, (Copies{"peer 8", "copy 8"}));
  EXPECT_EQ((*there->read_all<std::uint32_t>())[2], 2u);
  EXPECT_TRUE(fake.called("cuCtxEnablePeerAccess"));
  fake.calls.clear();
  ASSERT_TRUE(there->copy_from(*here, 4, &*stream));
  EXPECT_FALSE(fake.called("cuCtxEnablePeerAccess")) << "once is enough";
  ASSERT_TRUE(emulated->copy_from(*here));
  EXPECT_EQ(*emulated->read_all<std::uint32_t>(), (Numbers{1, 2}));
  ASSERT_TRUE(emulated->fill(9));
  ASSERT_TRUE(there->copy_from(*emulated, 0, &*stream));
  EXPECT_EQ((*there->read_all<std::uint32_t>())[0], 0x09090909u);
  EXPECT_EQ(here->copy_from(*there).diags()[0].id, "buffer-range") << "12 bytes into 8";
}

TEST(EmulatorStreams, WorkOfAStreamIsDoneOnReturn) {
  auto device = Device::open("emulator"), second = Device::open("emulator");
  auto buffer = device->allocate(16), other = second->allocate(16);
  auto stream = device->stream();
  auto event = second->event();
  ASSERT_TRUE(buffer->fill(0, *stream));
  ASSERT_TRUE(buffer->write(bytes({5}), *stream, 4));
  ASSERT_TRUE(stream->wait(*event));
  ASSERT_TRUE(other->copy_from(*buffer));
  EXPECT_EQ(*other->read_all<std::uint32_t>(), (Numbers{0, 5, 0, 0}));
  EXPECT_EQ(device->host_buffer(4)->bytes().size(), 4u);
  int theirs = 0;
  EXPECT_FALSE(device->adopt_stream(&theirs));
  EXPECT_TRUE(device->adopt_stream(nullptr));
  EXPECT_EQ(*device->view(buffer->address() + 4, 4)->read_all<std::uint32_t>(), Numbers{5});
  EXPECT_FALSE(device->view(buffer->address(), 17)) << "beyond its end";
}

}  // namespace
}  // namespace tartan
