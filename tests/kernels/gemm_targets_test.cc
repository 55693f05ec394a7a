// SPDX-License-Identifier: Apache-2.0
// One description on every target: the choices (tests/data/explain), and whether NVIDIA's
// assembler, if installed, accepts the text.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/kernels/gemm_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::Activation;
using kernels::Gemm;

constexpr const char* targets[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120a"};

TEST(GemmTargets, RecordedChoices) {
  for (const char* target : targets) {
    const auto compiled =
        compile(kernels::gemm({.m = 0, .n = 0, .k = 0}), testing_gemm::target_of(target));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    std::string text;
    for (const Choice& choice : compiled->choices) {
      text += fmt::format("{}: {}\n    because {}\n", choice.what, choice.taken, choice.reason);
      for (const std::string& refused : choice.refused)
        text += fmt::format("    not {}\n", refused);
    }
    test::expect_file(std::string(TEST_DATA "/explain/") + std::string("gemm_") + target + ".txt",
                      text);
  }
}

bool assembles(const Compiled& compiled, const std::string& arch) {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + "_tartan_gemm.ptx";
  std::ofstream(path) << compiled.ptx;
  const bool good = std::system(("ptxas -arch " + arch + " -o /dev/null " + path).c_str()) == 0;
  std::filesystem::remove(path);
  return good;
}

struct Types {
  Type a, accumulator, c;
  int since;
};

TEST(GemmTargets, EveryTypeWhereItExists) {
  const Types types[] = {
      {f16, f32, f32, 75},      {f16, f16, f16, 75},      {bf16, f32, bf16, 80},
      {f32, f32, f32, 80},      {f64, f64, f64, 80},      {s8, s32, s8, 75},
      {Type::s4, s32, s32, 75}, {Type::b1, s32, s32, 75}, {Type::e4m3, f32, f16, 89}};
  const bool assemble = test::has_assembler();
  int compiled_count = 0, assembled = 0;
  for (const char* name : targets)
    for (const Types& each : types) {
      const Target target = testing_gemm::target_of(name);
      Gemm options{.m = 0,
                   .n = 0,
                   .k = 0,
                   .a = each.a,
                   .b = each.a,
                   .accumulator = each.accumulator,
                   .c = each.c};
      if (each.c == s8 || each.c == bf16)
        options.epilogue = {.column_scales = true, .bias = true, .activation = Activation::relu};
      SCOPED_TRACE(fmt::format("{} on {}", tartan::name(each.a), name));
      const auto compiled = compile(kernels::gemm(options), target);
      if (target.arch.sm < each.since) {
        ASSERT_FALSE(compiled);
        EXPECT_EQ(compiled.diags()[0].id, "no-instruction");
        continue;
      }
      ASSERT_TRUE(compiled) << compiled.diags().text();
      // A sample: all types over three targets or so.
      if (++compiled_count % 3 || !assemble) continue;
      EXPECT_TRUE(assembles(*compiled, name));
      ++assembled;
    }
  EXPECT_GT(compiled_count, 40);
  if (assemble) {
    EXPECT_GT(assembled, 12);
  }
}

TEST(GemmTargets, OtherKernels) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  const std::pair<Kernel, const char*> kernels[] = {
      {kernels::sparse_gemm({.m = 0, .n = 0, .k = 0}), "sm_80"},
      {kernels::sparse_gemm({.a = Type::e4m3, .b = Type::e4m3}), "sm_120a"},
      {kernels::block_scaled({.m = 0, .n = 0, .k = 0, .a = Type::e5m2}), "sm_120a"},
      {kernels::block_scaled({.a = Type::e2m1, .b = Type::e3m2, .c = f16}), "sm_120f"},
      {kernels::block_scaled({.a = Type::e2m1, .b = Type::e2m1, .scale = Type::ue4m3}), "sm_121a"},
      {kernels::gemm({.a = Type::e4m3, .b = Type::e4m3, .c = Type::e4m3}), "sm_89"},
      {kernels::gemm({.c = Type::e5m2, .epilogue = {.residual = true}}), "sm_120"},
      {kernels::wmma_gemm({}), "sm_75"},
      {kernels::wmma_gemm({.shape = wmma_m8n8k4, .a = f64, .b = f64, .c = f64}), "sm_90"},
      {kernels::transpose(), "sm_75"},
      {kernels::transpose(), "sm_90"},
      {kernels::gemm({.splits = 4}), "sm_80"},
      {kernels::gemm_sum({.epilogue = {.activation = Activation::gelu}, .splits = 4}), "sm_80"},
      {kernels::gemm({.batched = true}), "sm_100"}};
  for (const auto& [kernel, name] : kernels) {
    const auto compiled = compile(kernel, testing_gemm::target_of(name));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_TRUE(assembles(*compiled, name)) << kernel.name();
  }
}

}  // namespace
}  // namespace tartan
