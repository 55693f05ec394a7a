// SPDX-License-Identifier: Apache-2.0
// Every built-in kernel, on every target that it supports (with NVIDIA's assembler, if installed),
// and through every engine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <tartan/tartan.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bindings/c/read_json.h"
#include "kernels/registry/registry.h"
#include "tartan/isa/feature.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

// The names of all built-in kernels.
std::vector<std::string> names() {
  const builtins::KernelRegistry kernels;
  std::vector<std::string> out;
  for (const builtins::BuiltinKernel& each : kernels.all()) out.push_back(each.name);
  return out;
}

// A kernel for small sizes; GEMMs get an explicit tile, so that a launch takes only their matrices.
builtins::Described small(const std::string& name, const Target& target) {
  const builtins::KernelRegistry kernels;
  const std::string tile = name.starts_with("gemm") ? R"(, "tile": "64x64x32")" : "";
  const auto given = builtins::read_json(kernels.options(),
                                         R"({"m": 128, "n": 64, "k": 96)" + tile + "}", "options");
  EXPECT_TRUE(given);
  auto out = kernels.find(name)->describe({target, *given});
  EXPECT_TRUE(out) << out.diags().text();
  return *out;
}

// The oldest architecture of each kernel, according to the manual.
int oldest(std::string_view name) {
  if (name == "transpose") return 75;
  if (name == "gemm" || name == "gemm_sum" || name.ends_with("rule_decode") || name == "decode")
    return 75;
  if (name.starts_with("attention")) return 75;
  if (name == "scaled_gemm" || name == "k_grouped_gemm")
    return 100;  // earlier with a newer PTX version than the first
  if (name == "block_scaled") return 120;
  return name.starts_with("wmma") || name == "gate" ? 70 : 80;
}

bool takes(const Arch& arch, std::string_view name) {
  if (name == "block_scaled" && arch.has(Feature::tensor_memory)) return true;
  return arch.sm >= oldest(name) && (name != "block_scaled" || arch.suffix);
}

TEST(Kernels, CompileForEverySupportedTarget) {
  int compiled_count = 0, assembled = 0;
  const bool assemble = test::has_assembler();
  for (const std::string& name : names())
    for (const ArchRow& row : archs) {
      if (row.arch.sm < 75 || !row.current) continue;
      SCOPED_TRACE(name + " for " + row.arch.text());
      const auto compiled = compile(small(name, Target::of(row.arch)).kernel, Target::of(row.arch));
      if (!takes(row.arch, name)) {
        ASSERT_FALSE(compiled);
        EXPECT_EQ(compiled.diags()[0].id, name == "mla_decode" || name == "mixed_gemm"
                                              ? "kernel-option"
                                              : "no-instruction");
        continue;
      }
      ASSERT_TRUE(compiled) << compiled.diags().text();
      // A row of 96 elements has three scales, which producers copy one by one.
      EXPECT_TRUE(compiled->warnings.empty() || name == "block_scaled")
          << compiled->warnings.text();
      ++compiled_count;
      // Assembling all of them is slow: each kernel for three targets, each target for some
      // kernels.
      if (compiled_count % 7 && name != "one_mma") continue;
      if (!test::assembler_takes(compiled->target.ptx)) continue;
      const std::string path = testing::TempDir() + std::to_string(getpid()) + "_tartan_kernel.ptx";
      std::ofstream(path) << compiled->ptx;
      EXPECT_EQ(std::system(("ptxas -arch " + row.arch.text() + " -o /dev/null " + path).c_str()),
                0);
      std::filesystem::remove(path);
      ++assembled;
    }
  EXPECT_GT(compiled_count, 400);
  if (assemble) {
    EXPECT_GT(assembled, 70);
  }
}

// The kernel's buffers after a run; inputs are small numbers in any type.
std::vector<std::vector<std::byte>> outcome(Device& device, const Compiled& compiled, Dim3 grid) {
  std::vector<Buffer> buffers;
  Arguments arguments;
  unsigned state = 12345;
  for (const CompiledParam& param : compiled.params) {
    EXPECT_TRUE(param.pointer);
    const std::size_t bytes = static_cast<std::size_t>(param.elements) * bits(param.type) / 8;
    std::vector<std::byte> content(bytes);
    for (std::size_t i = 0; i + 1 < bytes; i += 2) {  // f16 between 0.5 and 8, and their negatives
      state = state * 1664525 + 1013904223;
      const unsigned half =
          (state >> 31) << 15 | (14 + (state >> 28) % 4) << 10 | (state >> 16 & 1023);
      content[i] = static_cast<std::byte>(half), content[i + 1] = static_cast<std::byte>(half >> 8);
    }
    buffers.push_back(*device.allocate(bytes));
    EXPECT_TRUE(buffers.back().write(content));
    arguments.add(buffers.back());
  }
  auto module = device.load(compiled.ptx, compiled.name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  auto loaded = *module->kernel(compiled.name);
  EXPECT_TRUE(
      loaded.launch({.grid = grid, .block = {static_cast<unsigned>(compiled.block)}}, arguments));
  const auto status = device.synchronize();
  EXPECT_TRUE(status) << (status ? "" : status.diags().text());
  std::vector<std::vector<std::byte>> out;
  for (const Buffer& buffer : buffers) {
    out.emplace_back(buffer.size());
    EXPECT_TRUE(buffer.read(out.back()));
  }
  return out;
}

// Kernels whose buffers may hold any numbers: metadata may not, and sizes are not buffers.
bool takes_any_numbers(std::string_view name) {
  return !name.starts_with("attention") && !name.ends_with("decode") && name != "sparse_gemm" &&
         name != "wmma_gemm" && name != "transpose" && name != "gate" && name != "block_scaled" &&
         name != "scaled_gemm" && name != "small_products" && name != "mixed_gemm" &&
         !name.starts_with("delta_rule");
}

// The GPU's text, on the GPU and on the emulator: the same bits.
TEST(Kernels, GpuAndEmulatorAgree) {
  auto gpu = Device::open("cuda");
  if (!gpu) GTEST_SKIP() << gpu.diags().text();
  Device emulator = *Device::open("emulator");
  int run = 0;
  for (const std::string& name : names()) {
    if (!takes(gpu->arch(), name) || !takes_any_numbers(name)) continue;
    SCOPED_TRACE(name);
    const Target target = Target::of(gpu->arch());
    const builtins::Described described = small(name, target);
    const auto compiled = compile(described.kernel, target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const Dim3 grid = described.grid.value_or(Dim3{});
    EXPECT_EQ(outcome(*gpu, *compiled, grid), outcome(emulator, *compiled, grid));
    ++run;
  }
  EXPECT_GE(run, 3);
}

// Without a GPU: the texts for two targets, with different instructions if the targets differ, give
// the same bits on the emulator.
TEST(Kernels, TargetsAgreeOnTheEmulator) {
  Device emulator = *Device::open("emulator", {.hardware = "sm_90"});
  for (const std::string& name : names()) {
    if (oldest(name) > 80 || !takes_any_numbers(name)) continue;
    SCOPED_TRACE(name);
    const Target ampere = *Target::parse("sm_80"), hopper = *Target::parse("sm_90a");
    const builtins::Described described = small(name, ampere);
    const auto on_80 = compile(described.kernel, ampere),
               on_90 = compile(small(name, hopper).kernel, hopper);
    ASSERT_TRUE(on_80 && on_90);
    const Dim3 grid = described.grid.value_or(Dim3{});
    EXPECT_EQ(outcome(emulator, *on_80, grid), outcome(emulator, *on_90, grid));
  }
}

}  // namespace
}  // namespace tartan
