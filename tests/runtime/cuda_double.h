// SPDX-License-Identifier: Apache-2.0
// tests/runtime/cuda_double.h - a test with a device on the CUDA driver's double, and kernels for
// it.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tartan/runtime/device.h"
#include "tests/runtime/fake_cuda.h"

namespace tartan::test {

inline constexpr const char* double_ptx = R"(.version 8.3
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .align 8 .b8 shape[12])
{
  ret;
}
.visible .entry other()
{
  ret;
}
)";

class CudaDouble : public testing::Test {
 protected:
  CudaDouble() {
    fake = FakeCuda();
    auto opened = Device::open("cuda");
    if (opened) device = std::move(*opened);
  }
  ~CudaDouble() override { fake.failures.clear(); }
  void SetUp() override { ASSERT_TRUE(device); }

  LoadedKernel load(const std::string& name) {
    auto module = device->load(double_ptx, "test.ptx");
    EXPECT_TRUE(module);
    auto kernel = module->kernel(name);
    EXPECT_TRUE(kernel);
    return *kernel;
  }

  // The one diagnostic of `result`, as text.
  template <typename T>
  static std::string complaint(const Result<T>& result) {
    if (result) return "no complaint";
    EXPECT_EQ(result.diags().size(), 1u) << result.diags().text();
    return to_string(result.diags()[0]);
  }

  // Of several, a line for each.
  template <typename T>
  static std::string complaints(const Result<T>& result) {
    std::string out;
    if (!result)
      for (const Diag& diag : result.diags()) out += (out.empty() ? "" : "\n") + to_string(diag);
    return out;
  }

  FakeCuda& fake = fake_cuda();
  std::optional<Device> device;
};

}  // namespace tartan::test
