// SPDX-License-Identifier: Apache-2.0
// Devices, buffers and launches as a program sees them, on a machine without a GPU.
#include "tartan/runtime/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "tests/support/index_kernel.h"

namespace tartan {
namespace {

const std::string ptx = ".version 7.8\n.target sm_80\n.address_size 64\n" + test::index_kernel;

class DeviceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("TARTAN_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1); }

  std::optional<Device> device = std::move(*Device::best());
};

TEST_F(DeviceTest, WithoutADriverBestIsTheEmulator) {
  EXPECT_TRUE(device->emulated());
  EXPECT_EQ(device->arch(), (Arch{90, 'a'}));
  EXPECT_TRUE(Device::open("auto")->emulated());
  EXPECT_TRUE(Device::open("emulator")->emulated());
  const auto gpu = Device::open("cuda");
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.diags()[0].id, "no-driver");
  EXPECT_NE(gpu.diags()[0].message.find("/nowhere/libcuda.so.1"), std::string::npos);
}

TEST_F(DeviceTest, HardwareThatDoesNotExist) {
  EXPECT_FALSE(Device::open("emulator", {.hardware = "sm_91"}));
  EXPECT_FALSE(Device::open("auto", {.hardware = "H100"}));
  EXPECT_EQ(Device::best({.hardware = "H100"}).diags()[0].id, "unknown-target");
}

TEST_F(DeviceTest, CopiesStayInsideTheBuffer) {
  auto buffer = device->allocate(8);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size(), 8u);
  EXPECT_EQ(buffer->address() % 256, 0u);
  std::vector<std::byte> bytes(4, std::byte{1});
  EXPECT_TRUE(buffer->fill(0));
  EXPECT_TRUE(buffer->write(bytes, 4));
  EXPECT_EQ(*buffer->read_all<std::uint32_t>(), (std::vector<std::uint32_t>{0, 0x01010101}));
  EXPECT_TRUE(buffer->write({}, 8)) << "nothing, at the end";
  for (const std::size_t offset :
       {std::size_t{5}, std::size_t{9}, ~std::size_t{0}, ~std::size_t{0} - 3}) {
    const auto written = buffer->write(bytes, offset), read = buffer->read(bytes, offset);
    ASSERT_FALSE(written) << offset;
    ASSERT_FALSE(read) << offset;
    EXPECT_EQ(read.diags()[0].id, "buffer-range");
  }
  EXPECT_EQ(buffer->write(bytes, 5).diags()[0].message,
            "copy out of bounds: 4 bytes at offset 5 of a buffer of 8 bytes");
}

TEST_F(DeviceTest, EmptyBuffers) {
  auto buffer = device->allocate(0);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size(), 0u);
  EXPECT_TRUE(buffer->fill(1));
  EXPECT_TRUE(buffer->read_all<int>()->empty());
  Buffer none;
  EXPECT_TRUE(none.write({}));
  EXPECT_FALSE(none.write(std::vector{1}));
}

TEST_F(DeviceTest, Launches) {
  auto module = device->load(ptx, "test.ptx");
  ASSERT_TRUE(module) << module.diags().text();
  EXPECT_EQ(module->kernels(), std::vector<std::string>{"index"});
  auto kernel = module->kernel("index");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->name(), "index");
  ASSERT_EQ(kernel->params().size(), 2u);
  EXPECT_EQ(kernel->params()[1].name, "factor");
  EXPECT_EQ(kernel->params()[1].bytes, 4u);
  auto out = device->allocate(3 * 64 * 4);
  ASSERT_TRUE(kernel->launch({.grid = {3}, .block = {64}}, Arguments().add(*out).add(5u)));
  ASSERT_TRUE(device->synchronize());
  const auto values = *out->read_all<std::uint32_t>();
  for (std::uint32_t i = 0; i < 192; ++i) ASSERT_EQ(values[i], 5 * i);
  EXPECT_TRUE(device->findings().empty());
  EXPECT_GT(device->report().lane_instructions, 192u * 10);
}

TEST_F(DeviceTest, RefusedLaunchesWriteNothing) {
  auto kernel = device->load(ptx)->kernel("index");
  auto out = device->allocate(4);
  ASSERT_TRUE(out->fill(0xee));
  const Arguments good = Arguments().add(*out).add(1u);
  for (const Launch& launch :
       {Launch{.grid = {0}}, Launch{.grid = {1, 65536}}, Launch{.block = {1025}},
        Launch{.block = {64, 32}}, Launch{.block = {1, 1, 65}}}) {
    const auto status = kernel->launch(launch, good);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.diags()[0].id, "launch-arguments");
  }
  EXPECT_FALSE(kernel->launch({}, Arguments()));
  EXPECT_FALSE(kernel->launch({}, Arguments().add(*out).add(std::uint16_t{1})));
  EXPECT_EQ((*out->read_all<std::uint32_t>())[0], 0xeeeeeeeeu);
  EXPECT_TRUE(device->findings().empty()) << "nothing ran";
}

TEST_F(DeviceTest, MissingTensorMapsAreNamed) {
  const std::string with_maps = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry reads(.param .u64 out, .param .align 64 .b8 A_map[128],
                      .param .align 64 .b8 B_map[128])
{
  ret;
}
)";
  auto kernel = device->load(with_maps)->kernel("reads");
  const auto refused = kernel->launch({}, Arguments().add(std::uint64_t{256}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.diags()[0].message,
            "wrong number of arguments: kernel reads expects 3 arguments, found 1; it needs tensor "
            "maps: \"tensor_map\" in a manifest, arguments_of() of tartan/launch.h in C++");
  const auto none = kernel->launch({}, Arguments());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.diags()[0].message,
            "wrong number of arguments: kernel reads expects 3 arguments, found 0");
}

TEST_F(DeviceTest, UnknownKernel) {
  const auto kernel = device->load(ptx)->kernel("indx");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.diags()[0].id, "unknown-kernel");
  EXPECT_NE(kernel.diags()[0].message.find("index"), std::string::npos);
}

TEST_F(DeviceTest, StreamsAndEvents) {
  auto stream = device->stream();
  auto start = device->event(), end = device->event();
  ASSERT_TRUE(stream && start && end);
  auto kernel = device->load(ptx)->kernel("index");
  auto out = device->allocate(4);
  ASSERT_TRUE(start->record(&*stream));
  ASSERT_TRUE(kernel->launch({}, Arguments().add(*out).add(1u), &*stream));
  ASSERT_TRUE(end->record(&*stream));
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(stream->handle(), nullptr);
  const auto time = end->milliseconds_since(*start);
  ASSERT_TRUE(time);
  EXPECT_GE(*time, 0);
}

TEST_F(DeviceTest, ObjectsKeepWhatTheyNeed) {
  auto kernel = device->load(ptx)->kernel("index");  // the module is gone already
  auto out = device->allocate(4);
  device.reset();
  ASSERT_TRUE(kernel->launch({}, Arguments().add(*out).add(1u)));
  EXPECT_EQ((*out->read_all<std::uint32_t>())[0], 0u);
}

TEST(ArgumentsTest, KeepTheirBytes) {
  const std::byte raw[] = {std::byte{1}, std::byte{2}};
  const Arguments arguments = Arguments().add(1.0).add(std::uint8_t{7}).add_bytes(raw);
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[0].size(), 8u);
  EXPECT_EQ(arguments[1], std::vector{std::byte{7}});
  EXPECT_EQ(arguments[2], std::vector(std::begin(raw), std::end(raw)));
}

}  // namespace
}  // namespace tartan
