// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by nvcc from tests/data/hopper/hopper.cu, and a hand-written GEMM with TMA,
// clusters and wgmma, on the emulator.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"
#include "tartan/verify/verify.h"
#include "tests/support/small_product.h"

namespace tartan {
namespace {

class EmulatorHopper : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open("emulator");
    ASSERT_TRUE(static_cast<bool>(opened));
    device.emplace(*opened);
  }

  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(TEST_DATA "/hopper/" + file).rdbuf();
    return text.str();
  }

  void load(const std::string& text) {
    auto loaded = device->load(text, "hopper.ptx");
    ASSERT_TRUE(static_cast<bool>(loaded)) << loaded.diags().text();
    module.emplace(*loaded);
  }

  void run(const std::string& name, const Launch& launch, const Arguments& arguments) {
    auto kernel = module->kernel(name);
    ASSERT_TRUE(static_cast<bool>(kernel)) << kernel.diags().text();
    const Status launched = kernel->launch(launch, arguments);
    ASSERT_TRUE(static_cast<bool>(launched)) << launched.diags().text();
    const Status done = device->synchronize();
    ASSERT_TRUE(static_cast<bool>(done)) << done.diags().text();
  }

  std::optional<Device> device;
  std::optional<Module> module;
};

TEST_F(EmulatorHopper, HistogramOverACluster) {
  load(text_of("hopper.ptx"));
  for (const std::uint32_t blocks : {1u, 4u, 8u}) {
    std::vector<std::uint32_t> values(3000), wanted(256 * blocks);
    std::uint32_t x = 12345;
    for (std::uint32_t& value : values) {
      x = x * 1664525 + 1013904223;
      value = (x >> 8) % (256 * blocks);
      ++wanted[value];
    }
    auto in = device->allocate(4 * values.size()), out = device->allocate(4 * wanted.size());
    ASSERT_TRUE(static_cast<bool>(in->write(values)));
    run("cluster_histogram", {.grid = {blocks}, .block = {96}, .cluster = {blocks, 1, 1}},
        Arguments().add(*in).add(static_cast<std::uint32_t>(values.size())).add(*out));
    EXPECT_EQ(*out->read_all<std::uint32_t>(), wanted) << blocks;
  }
}

// Neither extent is a multiple of the tile: TMA clips.
TEST_F(EmulatorHopper, TransposeThroughTensorMaps) {
  load(text_of("hopper.ptx"));
  constexpr std::uint32_t rows = 76, columns = 100;
  std::vector<float> values(rows * columns);
  for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.25f;
  auto in = device->allocate(4 * values.size()), out = device->allocate(4 * values.size());
  ASSERT_TRUE(static_cast<bool>(in->write(values)));
  const auto map = [](const Buffer& buffer, std::uint32_t width, std::uint32_t height) {
    return TensorMap{.type = f32,
                     .address = buffer.address(),
                     .extents = {width, height},
                     .strides = {4 * width},
                     .box = {32, 32}}
        .encode();
  };
  const auto from = map(*in, columns, rows), to = map(*out, rows, columns);
  ASSERT_TRUE(from && to);
  run("transpose_tiles", {.grid = {4, 3}, .block = {128}}, Arguments().add(*from).add(*to));
  const auto got = out->read_all<float>();
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::uint32_t column = 0; column < columns; ++column)
      ASSERT_EQ((*got)[column * rows + row], values[row * columns + column])
          << row << "," << column;
}

// A ring that TMA fills and wgmma reads, with B shared by two blocks: the kernel's text with `was`
// replaced by `is`.
class EmulatorHopperGemm : public EmulatorHopper {
 protected:
  static constexpr std::uint32_t m = 256, n = 128, k = 320;

  void compute(const std::string& was = {}, const std::string& is = {}) {
    std::string text = text_of("gemm.ptx");
    if (!was.empty()) text.replace(text.find(was), was.size(), is);
    load(text);
    const test::SmallProduct product(m, n, k);
    wanted = product.c;
    auto in_a = device->allocate(2 * product.a.size()),
         in_b = device->allocate(2 * product.b.size()), out = device->allocate(4 * wanted.size());
    ASSERT_TRUE(in_a->write(product.a) && in_b->write(product.b));
    const auto map = [](const Buffer& buffer, std::uint32_t rows, std::uint32_t box) {
      return *TensorMap{.type = f16,
                        .address = buffer.address(),
                        .extents = {k, rows},
                        .strides = {2 * k},
                        .box = {64, box},
                        .swizzle = TensorMap::Swizzle::bytes_128}
                  .encode();
    };
    auto kernel = module->kernel("gemm");
    ASSERT_TRUE(static_cast<bool>(kernel)) << kernel.diags().text();
    const Arguments arguments =
        Arguments().add(map(*in_a, m, 64)).add(map(*in_b, n, 32)).add(*out).add(n).add(k / 64);
    const Status launched = kernel->launch(
        {.grid = {n / 64, m / 64}, .block = {160}, .dynamic_shared = 32768}, arguments);
    ASSERT_TRUE(static_cast<bool>(launched)) << launched.diags().text();
    if (const Status done = device->synchronize(); !done) complaint = done.diags().text();
    got = *out->read_all<float>();
  }

  std::vector<float> wanted, got;
  std::string complaint;
};

TEST_F(EmulatorHopperGemm, IsCorrect) {
  compute();
  EXPECT_EQ(complaint, "");
  EXPECT_EQ(got, wanted);
  const Diags diags =
      verify::check(std::make_shared<const Source>("gemm.ptx", text_of("gemm.ptx")));
  EXPECT_TRUE(diags.empty()) << diags.text();
}

// A phase that expects more bytes than arrive: both blocks of the cluster deadlock, and the finding
// has the place.
TEST_F(EmulatorHopperGemm, DeadlocksIfTooManyBytesAreExpected) {
  compute("[%full], 16384", "[%full], 16400");
  EXPECT_NE(complaint.find("[deadlock]"), std::string::npos) << complaint;
  for (const char* part : {"CTA 0,0,0: 128 threads wait at line", "CTA 0,1,0: 1 thread waits",
                           "pending: 0 arrivals, 16 bytes", "all threads of the cluster to arrive"})
    EXPECT_NE(complaint.find(part), std::string::npos) << part << ": " << complaint;
}

TEST_F(EmulatorHopperGemm, NeedsTheSwizzleOfItsDescriptors) {
  compute("0x4000004000010000", "0x8000004000010000");  // the swizzle of 64 bytes
  EXPECT_NE(complaint.find("[matrix-descriptor]"), std::string::npos) << complaint;
}

}  // namespace
}  // namespace tartan
