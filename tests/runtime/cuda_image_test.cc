// SPDX-License-Identifier: Apache-2.0
// Machine code and the driver's assembler, on the CUDA driver's test double.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/runtime/cuda_double.h"
#include "tests/runtime/double_cubin.h"

namespace tartan {
namespace {

using CudaImage = test::CudaDouble;
using test::double_ptx;

// The double takes it for one with both kernels.
std::vector<std::byte> cubin() {
  constexpr char unnamed[16] = {};
  return test::double_cubin(unnamed);
}

TEST_F(CudaImage, AssemblesAndLoadsWhatItAssembled) {
  fake.cubin = cubin();
  const auto assembled = device->assemble(double_ptx, "test.ptx");
  ASSERT_TRUE(assembled) << assembled.diags().text();
  EXPECT_EQ(assembled->cubin, fake.cubin);
  EXPECT_EQ(assembled->kernels,
            (std::vector<KernelInterface>{{"scale", {{"data", 8}, {"factor", 4}, {"shape", 12}}},
                                          {"other", {}}}));
  EXPECT_TRUE(assembled->warnings.empty());
  EXPECT_GT(assembled->milliseconds, 0);
  EXPECT_EQ(fake.links, 0);
  EXPECT_EQ(fake.modules, 0) << "nothing is loaded";
  EXPECT_EQ(fake.jit_target, 0u) << "the driver's choice";

  auto module = device->load(assembled->cubin, "test.cubin", assembled->kernels);
  ASSERT_TRUE(module) << module.diags().text();
  EXPECT_GT(module->milliseconds(), 0);
  EXPECT_EQ(module->kernels(), (std::vector<std::string>{"scale", "other"}));
  EXPECT_EQ(complaint(module->kernel("scale")->launch({.block = {32}}, {})),
            "error: wrong number of arguments: kernel scale expects 3 arguments, found 0 "
            "[launch-arguments]");
  EXPECT_FALSE(fake.called("cuFuncGetParamInfo")) << "they were passed";
  EXPECT_EQ(complaint(module->variable("table")),
            "error: test.cubin has no variable table in global or constant memory "
            "[unknown-variable]");
}

TEST_F(CudaImage, ArchitectureOfItsOwnIsAssembledForIt) {
  fake.cubin = cubin();
  std::string text = double_ptx;
  text.replace(text.find("sm_90"), 5, "sm_90a");
  ASSERT_TRUE(device->assemble(text));
  EXPECT_EQ(fake.jit_target, 0x10000u + 90);
}

// Consumers of a kernel with producer warps: the driver's linker ignores setmaxnreg.
TEST_F(CudaImage, RegistersThatDoNotMoveAreAWarning) {
  fake.cubin = cubin();
  const std::string text = R"(.version 8.3
.target sm_90a
.address_size 64
.visible .entry scale() .reqntid 384 .minnctapersm 1
{
  setmaxnreg.dec.sync.aligned.u32 24;
  setmaxnreg.inc.sync.aligned.u32 240;
  ret;
}
)";
  const auto assembled = device->assemble(text, "test.ptx");
  ASSERT_TRUE(assembled) << assembled.diags().text();
  ASSERT_EQ(assembled->warnings.size(), 1u) << "one for each kernel";
  EXPECT_EQ(to_string(assembled->warnings[0]),
            "test.ptx:6: warning: setmaxnreg.dec.sync.aligned.u32 has no effect in machine code of "
            "the driver's linker, which ignores it: kernel scale may spill what its threads then "
            "have no registers for; load() of the text keeps it, and NVIDIA's ptxas does "
            "[register-bounds]");
  const auto loaded = device->load(text, "test.ptx");
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->warnings().empty());
}

TEST_F(CudaImage, RejectedTextIsReportedAtItsCppLine) {
  const std::string text = R"(.version 8.3
.target sm_90
.address_size 64
.visible .entry one()
{
  .reg .b32 %r<2>;
  .loc 1 42 7
  mov.u32 %r1, 1;
  ret;
}
.file 1 "gemm.cc"
)";
  for (const char* failing : {"cuLinkAddData", "cuLinkComplete"}) {
    fake.failures = {{failing, 218}};
    fake.error_log =
        "ptxas application ptx input, line 8; error   : Unknown thing\n"
        "ptxas application ptx input, line 2; error   : Another\n"
        "ptxas fatal   : Ptx assembly aborted due to errors";
    EXPECT_EQ(complaints(device->assemble(text, "one.ptx")),
              std::string("error: one.ptx (.target sm_90) was rejected by the driver: ") + failing +
                  (failing == std::string("cuLinkAddData") ? "_v2" : "") +
                  ": CUDA_ERROR_INVALID_PTX (218)\n"
                  "  ptxas fatal   : Ptx assembly aborted due to errors [module-load]\n"
                  "gemm.cc:42:7: error: the driver's assembler: Unknown thing (line 8 of one.ptx) "
                  "[module-load]\n"
                  "one.ptx:2: error: the driver's assembler: Another [module-load]");
    EXPECT_EQ(fake.links, 0);
  }
}

TEST_F(CudaImage, RemarksOfTheAssemblerAreWarnings) {
  fake.info_log = "ptxas application ptx input, line 4; warning : Slow\nptxas info : all well";
  const auto module = device->load(double_ptx, "test.ptx");
  ASSERT_TRUE(module);
  ASSERT_EQ(module->warnings().size(), 1u);
  EXPECT_EQ(to_string(module->warnings()[0]),
            "test.ptx:4: warning: the driver's assembler: Slow [module-load]");
  EXPECT_EQ(device->assemble(double_ptx, "test.ptx")->warnings.size(), 1u);
}

TEST_F(CudaImage, DriverTellsTheKernelsOfACubin) {
  fake.functions = {{"scale", {8, 4, 12}}, {"other", {}}};
  auto module = device->load(cubin(), "test.cubin");
  ASSERT_TRUE(module) << module.diags().text();
  EXPECT_EQ(module->kernels(), (std::vector<std::string>{"scale", "other"}));
  const auto scale = module->kernel("scale");
  ASSERT_TRUE(scale) << scale.diags().text();
  EXPECT_EQ(scale->params(), (std::vector<KernelParam>{
                                 {"parameter 0", 8}, {"parameter 1", 4}, {"parameter 2", 12}}));
}

TEST_F(CudaImage, DamagedImageNeverReachesTheDriver) {
  const std::vector<std::byte> whole = cubin();
  EXPECT_EQ(complaint(device->load(std::span<const std::byte>(), "empty")),
            "error: empty is not machine code: expected a cubin or a fatbin, found no bytes "
            "[module-load]");
  const std::string text = double_ptx;
  EXPECT_EQ(
      complaint(device->load(std::as_bytes(std::span(text)), "text")),
      "error: text is not machine code: expected a cubin or a fatbin; PTX text is loaded as a "
      "string [module-load]");
  for (std::size_t bytes = 4; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(device->load(std::span(whole).first(bytes), "cut")) << bytes;
  auto beyond = whole;
  beyond[64 + 16 + 32] = std::byte{255};  // the section's size
  EXPECT_EQ(complaint(device->load(beyond, "beyond")),
            "error: beyond is damaged: its 144 bytes end before what its header states "
            "[module-load]");
  std::vector<std::byte> fatbin(16 + 8);
  const std::uint32_t magic = 0xba55ed50;
  const std::uint16_t header = 16;
  const std::uint64_t bytes = 8;
  std::memcpy(fatbin.data(), &magic, 4);
  std::memcpy(fatbin.data() + 6, &header, 2);
  std::memcpy(fatbin.data() + 8, &bytes, 8);
  EXPECT_FALSE(device->load(std::span(fatbin).first(23), "cut"));
  EXPECT_FALSE(fake.called("cuModuleLoadDataEx"));
  EXPECT_TRUE(device->load(fatbin, "whole", {{"scale", {}}}));
}

TEST_F(CudaImage, CubinOfAnotherGpu) {
  fake.failures["cuModuleLoadDataEx"] = 209;
  EXPECT_EQ(complaint(device->load(cubin(), "test.cubin")),
            "error: test.cubin has no machine code for this GPU (sm_90): assemble its PTX here, or "
            "load the text [module-load]");
  fake.failures["cuModuleLoadDataEx"] = 200;
  EXPECT_EQ(complaint(device->load(cubin(), "test.cubin")),
            "error: cuModuleLoadDataEx: CUDA_ERROR_INVALID_IMAGE (200) [driver]");
}

TEST_F(CudaImage, ResourcesAndOccupancy) {
  fake.static_shared = 1024;
  fake.max_threads = 512;
  const LoadedKernel kernel = load("other");
  const auto resources = kernel.resources();
  ASSERT_TRUE(resources);
  EXPECT_EQ(resources->registers, 40);
  EXPECT_EQ(resources->local_bytes, 16u);
  EXPECT_EQ(resources->static_shared, 1024u);
  EXPECT_EQ(resources->max_threads, 512);
  EXPECT_EQ(*kernel.blocks_per_sm(128), 3);
  EXPECT_EQ(*kernel.blocks_per_sm(128, 100'000), 3);
  EXPECT_EQ(fake.max_dynamic_shared, 232448 - 1024) << "else the driver counts with 48 KB";
  EXPECT_FALSE(kernel.blocks_per_sm(1024)) << "more threads than the kernel can have";
}

TEST_F(CudaImage, AssemblerIsNamed) {
  EXPECT_EQ(device->assembler().find("sm_90, CUDA 13.0"), 0u) << device->assembler();
  EXPECT_EQ(device->newest_ptx(), (Version{9, 0})) << "what CUDA 13.0 takes";
}

TEST(EmulatorImage, EmulatorHasNoAssembler) {
  auto device = Device::open("emulator");
  EXPECT_EQ(device->assembler(), "");
  EXPECT_EQ(device->newest_ptx(), newest_version);
  EXPECT_EQ(
      device->load(cubin(), "test.cubin").diags()[0].message,
      "test.cubin is machine code of a GPU, which the emulator does not run: load the PTX text "
      "that it was assembled from");
  EXPECT_EQ(device->assemble(double_ptx, "test.ptx").diags()[0].id, "module-load");
  const auto module = device->load(double_ptx, "test.ptx");
  const auto kernel = module->kernel("other");
  const auto resources = kernel->resources();
  ASSERT_TRUE(resources);
  EXPECT_EQ(resources->registers, std::nullopt) << "it assigns none";
  EXPECT_EQ(resources->static_shared, 0u);
  EXPECT_EQ(resources->max_threads, 1024);
  EXPECT_FALSE(kernel->blocks_per_sm(32));
}

}  // namespace
}  // namespace tartan
