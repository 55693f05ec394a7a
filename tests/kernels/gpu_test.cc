// SPDX-License-Identifier: Apache-2.0
// The table of GPUs: which row a name or a device has, and what tuned() makes of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/common/gpus.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/scaled_gemm.h"

namespace tartan {
namespace {

using kernels::Gpu;
using kernels::detail::GpuAccess;

const Target hopper = *Target::parse("sm_90a");

TEST(Gpu, IsTheUsualOneOfATarget) {
  for (const auto& [arch, name] : {std::pair{"sm_80", "A100"},
                                   {"sm_86", "A40"},
                                   {"sm_88", "Jetson AGX Orin"},
                                   {"sm_90", "H100"},
                                   {"sm_90a", "H100"},
                                   {"sm_103a", "B200"},
                                   {"sm_75", ""}})
    EXPECT_EQ(Gpu(*Target::parse(arch)).name(), name) << arch;
  EXPECT_EQ(Gpu(hopper).multiprocessors(), 132);
  EXPECT_NEAR(Gpu(hopper).memory_bandwidth(), 3350, 5);
  EXPECT_EQ(Gpu(*Target::parse("sm_75")).multiprocessors(), 80);
  EXPECT_EQ(Gpu(*Target::parse("sm_75")).memory_bandwidth(), 0);
}

TEST(Gpu, IsFoundByName) {
  for (const auto& [name, found] : {std::pair{"H200", "H200"},
                                    {"h200", "H200"},
                                    {"NVIDIA H200", "H200"},
                                    {"h200-nvl", "H200"},
                                    {"NVIDIA H100 80GB HBM3", "H100"},
                                    {"NVIDIA H100 PCIe", "H100 PCIe"},
                                    {"NVIDIA H20-3e", "H20"},
                                    {"NVIDIA GH200 480GB", "GH200"},
                                    {"NVIDIA A100-SXM4-80GB", "A100"}}) {
    const auto gpu = Gpu::find(name);
    ASSERT_TRUE(gpu) << gpu.diags().text();
    EXPECT_EQ(gpu->name(), found);
  }
  for (const std::string_view name : Gpu::names()) {
    const auto gpu = Gpu::find(name);
    ASSERT_TRUE(gpu) << gpu.diags().text();
    EXPECT_EQ(gpu->name(), name);
    EXPECT_TRUE(find_arch(gpu->target().arch)) << name;
    EXPECT_GT(gpu->memory_bandwidth(), 0) << name;
  }
  EXPECT_EQ(Gpu::find("H200")->target(), hopper);
  EXPECT_NEAR(Gpu::find("H200")->memory_bandwidth(), 4800, 5);
  EXPECT_EQ(Gpu::find("H100 PCIe")->multiprocessors(), 114);
  EXPECT_EQ(Gpu::find("H20")->multiprocessors(), 78);
  // Older code runs on it, too.
  EXPECT_EQ(Gpu::find("H200", *Target::parse("sm_80"))->target().arch.text(), "sm_80");
}

TEST(Gpu, SaysWhatIsUnknown) {
  for (const char* name : {"H300", "", "H", "200", "NVIDIA", "PCIe"}) {
    const auto gpu = Gpu::find(name);
    ASSERT_FALSE(gpu) << name;
    const std::string text = gpu.diags().text();
    EXPECT_NE(text.find(fmt::format("GPU {}: unknown; expected one of A100, ", name)),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("H200"), std::string::npos) << text;
  }
  for (const char* target : {"sm_100", "sm_100a"})
    if (const auto parsed = Target::parse(target)) {
      const auto gpu = Gpu::find("H200", *parsed);
      ASSERT_FALSE(gpu) << target;
      EXPECT_NE(
          gpu.diags().text().find(fmt::format("GPU H200: it has sm_90a, and does not run code "
                                              "for {}; expected B200",
                                              target)),
          std::string::npos)
          << gpu.diags().text();
    }
  const auto none = Gpu::find("B200", *Target::parse("sm_103a"));
  ASSERT_FALSE(none);
  EXPECT_NE(none.diags().text().find("expected none, since no known GPU does"), std::string::npos)
      << none.diags().text();
}

TEST(Gpu, SaysWhatIsAmbiguous) {
  for (const auto& [name, both] : {std::pair{"H100 H200", "H100 and H200"},
                                   {"h200/h100", ""},
                                   {"H100 PCIe NVL", "H100 PCIe and H100 NVL"},
                                   {"A100 H100 PCIe", "A100 and H100 PCIe"}}) {
    const auto gpu = Gpu::find(name);
    ASSERT_FALSE(gpu) << name;
    const std::string why = *both ? fmt::format("it names {}", both) : "unknown";
    EXPECT_NE(
        gpu.diags().text().find(fmt::format("GPU {}: {}; expected one of A100, A40, ", name, why)),
        std::string::npos)
        << gpu.diags().text();
  }
  EXPECT_FALSE(Gpu::find("H100 H200", hopper));
  // A device of such a name is the usual GPU of its architecture.
  EXPECT_EQ(GpuAccess::of("H200 GH200", *Arch::parse("sm_90a"), hopper, 100).name(), "H100");
}

// Of a device: a name that is not in the table is no error.
TEST(Gpu, IsThatOfADevice) {
  const auto of = [](const char* name, const char* own, const char* target, int multiprocessors) {
    return GpuAccess::of(name, *Arch::parse(own), *Target::parse(target), multiprocessors);
  };
  EXPECT_EQ(of("NVIDIA H200", "sm_90a", "sm_90a", 132).name(), "H200");
  EXPECT_EQ(of("NVIDIA H200", "sm_90a", "sm_80", 132).name(), "H200");
  EXPECT_EQ(of("NVIDIA H800", "sm_90a", "sm_90a", 132).name(), "H100");
  EXPECT_EQ(of("emulator", "sm_80", "sm_80", 108).name(), "A100");
  EXPECT_EQ(of("Tesla T4", "sm_75", "sm_75", 40).name(), "");
  EXPECT_EQ(of("Tesla T4", "sm_75", "sm_75", 40).multiprocessors(), 40);
  // Code that the device does not run is chosen for a GPU that does.
  EXPECT_EQ(of("emulator", "sm_80", "sm_90a", 108).name(), "H100");
  EXPECT_EQ(of("Tesla T4", "sm_75", "sm_90a", 40).name(), "H100");
  EXPECT_EQ(of("NVIDIA H100 PCIe", "sm_90a", "sm_90a", 0).multiprocessors(), 114);
  // A part of a GPU (MIG).
  const Gpu part = of("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "sm_90a", "sm_90a", 66);
  EXPECT_EQ(part.multiprocessors(), 66);
  EXPECT_NEAR(part.memory_bandwidth(), 3350 / 2, 5);
  EXPECT_EQ(kernels::detail::row_of(part)->cache_bytes, 25 << 20);
  EXPECT_FALSE(kernels::detail::row_of(of("Tesla T4", "sm_75", "sm_75", 40)));
}

// Grids and tiles are those of its multiprocessors: an H20 has 78.
TEST(Gpu, DecidesWhatTunedChooses) {
  const Gpu small = *Gpu::find("H20");
  const auto columns = [](const Gpu& gpu) {
    return tuned(kernels::MixedGemm{.m = 1, .n = 8192, .k = 8192}, gpu).tile_n;
  };
  EXPECT_EQ(columns(hopper), 64);
  EXPECT_EQ(columns(small), 112);
  const auto width = [](const Gpu& gpu) {
    return tuned(kernels::ScaledGemm{.m = 64, .n = 4096, .k = 7168}, gpu).tile.n;
  };
  EXPECT_LT(width(hopper), width(small));
  // Of fast memory: pairs of CTAs that divide k.
  const Gpu fast = *Gpu::find("H200");
  const auto splits = [](const Gpu& gpu, int n) {
    return tuned(kernels::ScaledGemm{.m = 64, .n = n, .k = 7168}, gpu).cluster_splits;
  };
  EXPECT_EQ(splits(hopper, 2112), 1);
  EXPECT_EQ(splits(fast, 2112), 2);
  EXPECT_EQ(splits(hopper, 576), 4);
}

}  // namespace
}  // namespace tartan
