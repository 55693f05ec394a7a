// SPDX-License-Identifier: Apache-2.0
// Contexts on the CUDA driver's test double: those that failed kernels destroy, and those of
// others.
#include <gtest/gtest.h>

#include "tests/runtime/cuda_double.h"

namespace tartan {
namespace {

using CudaContext = test::CudaDouble;

TEST_F(CudaContext, NewDeviceWorksAfterAFailedKernel) {
  auto buffer = device->allocate(16);
  LoadedKernel kernel = load("other");
  fake.kernel_fails(719);
  EXPECT_FALSE(device->synchronize());

  auto again = Device::open("cuda");
  ASSERT_TRUE(again) << again.diags().text();
  EXPECT_EQ(fake.contexts, 1) << "the old device has let go of it";
  auto other = again->allocate(16);
  ASSERT_TRUE(other) << other.diags().text();
  EXPECT_TRUE(other->write(std::vector<std::uint32_t>{1, 2, 3, 4}));

  EXPECT_FALSE(device->synchronize()) << "it stays lost";
  EXPECT_FALSE(buffer->write(std::vector<std::uint32_t>{1}));
  EXPECT_FALSE(kernel.launch({.block = {32}}, {}));
  fake.calls.clear();
  buffer = Result<Buffer>(Buffer());
  EXPECT_FALSE(fake.called("cuMemFree")) << "the address may be another buffer's by now";
  device.reset();
  EXPECT_EQ(fake.contexts, 1);
  EXPECT_EQ(*other->read_all<std::uint32_t>(), (std::vector<std::uint32_t>{1, 2, 3, 4}));
}

TEST_F(CudaContext, LossThatTheDriverConceals) {
  fake.kernel_fails(719);
  EXPECT_FALSE(device->synchronize());
  fake.failures["cuMemGetInfo"] = 0;  // success, whatever the context
  auto again = Device::open("cuda");
  ASSERT_TRUE(again) << again.diags().text();
  EXPECT_TRUE(again->synchronize());
  EXPECT_FALSE(device->synchronize());
  EXPECT_EQ(fake.contexts, 1);
}

TEST_F(CudaContext, DeviceThatHasNotNoticedIsToldByTheNext) {
  auto buffer = device->allocate(16);
  fake.kernel_fails(700);
  ASSERT_TRUE(Device::open("cuda")) << "of which nothing is kept";
  EXPECT_EQ(fake.contexts, 0);
  fake.calls.clear();
  EXPECT_EQ(complaint(device->stream()),
            "error: cuStreamCreate failed: an earlier error has destroyed the GPU context "
            "(cuMemGetInfo_v2: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was "
            "encountered): open a new Device [memory-fault]");
  EXPECT_TRUE(fake.calls.empty());
  EXPECT_EQ(device->findings().size(), 1u);
}

TEST_F(CudaContext, ContextThatOthersHoldCannotBeMadeAnew) {
  fake.foreign_holder = true;
  fake.kernel_fails(719);
  EXPECT_EQ(complaint(Device::open("cuda")),
            "error: cuda:0 cannot be used: a kernel has destroyed its primary context "
            "(cuMemGetInfo_v2: CUDA_ERROR_LAUNCH_FAILED (719)), which other code of this process "
            "still holds (the CUDA runtime, PyTorch): restart the process [driver]");
  EXPECT_EQ(fake.contexts, 0);
}

TEST_F(CudaContext, DriverThatGivesNoNewContextIsToldApart) {
  fake.kernel_fails(719);
  EXPECT_FALSE(device->synchronize());
  fake.failures["cuDevicePrimaryCtxRetain"] = 719;
  EXPECT_EQ(complaint(Device::open("cuda")),
            "error: cuDevicePrimaryCtxRetain: CUDA_ERROR_LAUNCH_FAILED (719); a kernel has failed, "
            "and the driver gives this process no new context: restart the process [driver]");
}

TEST_F(CudaContext, EveryCallOfADriverThatHasGoneIsAStatus) {
  LoadedKernel kernel = load("other");
  auto buffer = device->allocate(16);
  auto stream = device->stream();
  auto event = device->event();
  ASSERT_TRUE(buffer && stream && event);
  fake.failures["cuCtxPushCurrent"] = 803;
  std::vector<std::byte> bytes(16);
  for (const auto& status :
       {buffer->write(bytes), buffer->read(bytes), buffer->fill(1), buffer->write(bytes, *stream),
        buffer->read(bytes, *stream), buffer->fill(1, *stream), buffer->copy_from(*buffer),
        stream->synchronize(), stream->wait(*event), event->record(), device->synchronize(),
        kernel.launch({.block = {32}}, {})})
    EXPECT_NE(complaint(status).find("restart the machine after an update [driver]"),
              std::string::npos)
        << complaint(status);
  EXPECT_FALSE(device->load(test::double_ptx));
  EXPECT_FALSE(device->assemble(test::double_ptx));
  EXPECT_FALSE(device->host_buffer(4));
  EXPECT_FALSE(device->view(buffer->address(), 4));
  EXPECT_FALSE(device->event());
  EXPECT_FALSE(kernel.resources());
}

TEST_F(CudaContext, CallersContextIsAdopted) {
  EXPECT_EQ(complaint(Device::adopt()),
            "error: no context is current on this thread: pass a CUcontext, or use Device::open() "
            "[no-device]");
  int theirs = 0;
  auto adopted = Device::adopt(&theirs);
  ASSERT_TRUE(adopted) << adopted.diags().text();
  fake.current_context = nullptr;
  ASSERT_TRUE(adopted->allocate(4));
  EXPECT_EQ(fake.current_context, &theirs);
  const int before = fake.contexts;
  adopted = Device::open("emulator");
  EXPECT_EQ(fake.contexts, before) << "it is not released";
  EXPECT_FALSE(fake.called("cuDevicePrimaryCtxRelease"));
}

TEST_F(CudaContext, AdoptedContextThatIsDestroyed) {
  int theirs = 0;
  auto adopted = Device::adopt(&theirs);
  ASSERT_TRUE(adopted);
  fake.failures["cuCtxPushCurrent"] = 201;
  EXPECT_NE(complaint(adopted->synchronize()).find("whoever made it has destroyed it"),
            std::string::npos);
  EXPECT_FALSE(Device::adopt(&theirs));
}

TEST_F(CudaContext, DevicesAreCounted) {
  fake.devices = 3;
  EXPECT_EQ(Device::count(), 3);
  fake.failures["cuDeviceGetCount"] = 100;
  EXPECT_EQ(Device::count(), 0);
}

}  // namespace
}  // namespace tartan
