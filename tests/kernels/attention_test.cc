// SPDX-License-Identifier: Apache-2.0
// The attention kernel at awkward lengths, on the emulator and a GPU, if there is one, against the
// same formula in double precision, computed from the same rounded elements.
#include <unistd.h>

#include "tests/kernels/attention_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using testing_attention::expect_attention;
using testing_attention::Lengths;

const Target hopper = *Target::parse("sm_90a");

std::vector<std::pair<kernels::Attention, Lengths>> cases() {
  using A = kernels::Attention;
  return {
      {A{.head_dim = 64}, {1, 1}},
      {A{.head_dim = 64, .causal = true}, {1, 200}},
      {A{.head_dim = 64, .type = bf16}, {7, 65, 2, 1}},
      {A{.head_dim = 64, .type = bf16, .causal = true}, {65, 65, 4, 2, 2}},
      {A{.head_dim = 64, .causal = true}, {127, 127}},
      {A{.head_dim = 64}, {64, 200, 1, 1, 2}},
      {A{.head_dim = 64, .causal = true}, {200, 63}},  // the first 137 queries see no key
      {A{.head_dim = 128}, {16, 63, 2, 2}},
      {A{.head_dim = 128, .causal = true}, {63, 127, 3, 1}},
      {A{.head_dim = 128, .type = bf16, .causal = true}, {64, 64}},
      {A{.head_dim = 128, .type = bf16}, {127, 64}},
      {A{.head_dim = 128, .type = bf16, .causal = true}, {7, 1}},
      {A{.head_dim = 128, .queries_per_block = 128, .warps = 8}, {65, 16}},
      {A{.head_dim = 128, .causal = true}, {200, 7, 2, 1}},
  };
}

TEST(Attention, EmulatorAgreesWithDoublePrecision) {
  Device device = *Device::open("emulator");
  for (const auto& [options, size] : cases())
    expect_attention(device, *Target::parse("sm_80"), options, size);
}

TEST(Attention, EmulatorAgreesOnOtherTargets) {
  using A = kernels::Attention;
  Device device = *Device::open("emulator");
  expect_attention(device, *Target::parse("sm_90"), A{.causal = true}, {70, 70, 2, 1});
  expect_attention(device, *Target::parse("sm_75"), A{.causal = true, .stages = 1}, {70, 70, 2, 1});
}

// Panels of 128, 64 and 32 bytes, three warpgroups and two, Q in registers and in shared memory.
std::vector<std::pair<kernels::Attention, Lengths>> wide_cases() {
  using A = kernels::Attention;
  return {
      {A{.head_dim = 80, .causal = true}, {70, 150}},
      {A{.head_dim = 96, .type = bf16, .causal = true, .window = true}, {130, 300, 2, 1}},
      {A{.head_dim = 96, .softcap = kernels::Softcap::by_exp, .sinks = true}, {7, 113}},
      {A{.head_dim = 176}, {33, 130, 2, 2}},
      {A{.head_dim = 192, .causal = true}, {150, 40}},  // the first 110 queries see no key
      {A{.head_dim = 192, .type = bf16, .causal = true, .window = true, .sinks = true}, {65, 250}},
      {A{.head_dim = 240, .causal = true}, {40, 90}},
      {A{.head_dim = 256, .type = bf16, .causal = true}, {130, 170, 2, 1}},
      {A{.head_dim = 256, .softcap = kernels::Softcap::by_tanh}, {16, 81}},
  };
}

void expect_wide_heads(Device& device, const Target& target) {
  for (const auto& [options, size] : wide_cases()) {
    if (options.type == bf16 && target.arch.sm < 80) continue;
    expect_attention(device, target, tuned(options, target), size);
  }
}

TEST(Attention, EmulatorAgreesWithWideHeads) {
  Device device = *Device::open("emulator");
  for (const char* target : {"sm_75", "sm_80", "sm_90a"})
    expect_wide_heads(device, *Target::parse(target));
}

TEST(Attention, GpuAgreesWithWideHeads) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  expect_wide_heads(*device, Target::of(device->arch()));
  if (device->arch().sm == 90) expect_wide_heads(*device, hopper);
}

// With wgmma and TMA.
TEST(Attention, EmulatorAgreesByWarpgroups) {
  Device device = *Device::open("emulator");
  for (const auto& [options, size] : cases())
    expect_attention(device, hopper, tuned(options, hopper), size);
}

// Fewer blocks than tiles, which do not divide them: none, one or several tiles of each, some of
// which see no key.
std::vector<std::pair<kernels::Attention, Lengths>> persistent_cases() {
  using A = kernels::Attention;
  return {
      {A{.head_dim = 64, .type = bf16, .causal = true}, {700, 700, 3, 1, 2, 5}},
      {A{.head_dim = 64}, {400, 130, 2, 2, 1, 1}},
      {A{.head_dim = 64, .causal = true}, {1000, 300, 1, 1, 1, 2}},
      {A{.head_dim = 64, .causal = true}, {200, 900, 2, 1, 1, 3}},
      {A{.head_dim = 64, .causal = true}, {1, 1, 2, 1, 1, 3}},
      {A{.head_dim = 64, .type = bf16, .causal = true, .window = true, .sinks = true},
       {500, 500, 2, 1, 1, 2}},
      {A{.head_dim = 16, .causal = true, .softcap = kernels::Softcap::by_exp},
       {300, 300, 2, 1, 1, 1}},
  };
}

void expect_persistent(Device& device, const Target& target) {
  for (auto [options, size] : persistent_cases()) {
    if (target == hopper) options = tuned(options, target);
    else options.producers = 2, options.persistent = true;
    EXPECT_TRUE(options.persistent);
    expect_attention(device, target, options, size);
  }
}

TEST(Attention, PersistentBlocksHaveTheirTiles) {
  Device device = *Device::open("emulator");
  for (const char* target : {"sm_80", "sm_90", "sm_90a"})
    expect_persistent(device, *Target::parse(target));
}

TEST(Attention, PersistentBlocksHaveTheirTilesOnAGpu) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  expect_persistent(*device, Target::of(device->arch()));
  if (device->arch().sm == 90) expect_persistent(*device, hopper);
}

TEST(Attention, PersistentBlocksFillTheGpu) {
  const kernels::Attention options{.queries_per_block = 192};
  EXPECT_EQ(options.persistent_blocks(4096, 32, 4, 132), 33U);
  EXPECT_EQ(options.persistent_blocks(4096, 32, 5, 132), 26U);
  EXPECT_EQ(options.persistent_blocks(200, 3, 1, 132), 6U);        // tiles
  EXPECT_EQ(options.persistent_blocks(4096, 32, 100, 132), 704U);  // 32 would have no block
  EXPECT_EQ(options.persistent_blocks(4096, 32, 4, 0), 704U);
}

TEST(Attention, GpuAgreesWithDoublePrecision) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  auto all = cases();
  all.push_back({{.head_dim = 128, .causal = true}, {1000, 1111, 8, 2, 3}});
  for (const auto& [options, size] : all)
    expect_attention(*device, Target::of(device->arch()), options, size);
  if (device->arch().sm != 90) return;
  for (const auto& [options, size] : all)
    expect_attention(*device, hopper, tuned(options, hopper), size);
}

// NVIDIA's assembler accepts the text and spills nothing.
TEST(Attention, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const char* target : {"sm_75", "sm_80", "sm_90", "sm_90a", "sm_120"})
    for (const int head_dim : {64, 128})
      for (const bool causal : {false, true}) {
        const bool old = std::string(target) == "sm_75";  // one stage: 64 KB of shared memory
        const kernels::Attention options{
            .head_dim = head_dim, .causal = causal, .stages = old ? 1 : 2};
        const auto compiled = compile(kernels::attention(tuned(options, *Target::parse(target))),
                                      *Target::parse(target));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        SCOPED_TRACE(fmt::format("{} d {} {}", target, head_dim, causal ? "causal" : "full"));
        test::expect_good_registers(
            compiled->ptx, target,
            testing::TempDir() + std::to_string(getpid()) + "_tartan_attention");
      }
}

TEST(Attention, WideHeadsAssembleWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int head_dim : {80, 96, 160, 192, 256})
      for (const bool all : {false, true}) {
        const kernels::Attention options{
            .head_dim = head_dim,
            .causal = true,
            .window = all,
            .softcap = all ? kernels::Softcap::by_exp : kernels::Softcap::none,
            .sinks = all};
        const auto compiled = compile(kernels::attention(tuned(options, *Target::parse(target))),
                                      *Target::parse(target));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        EXPECT_TRUE(compiled->warnings.empty()) << compiled->warnings.text();
        SCOPED_TRACE(fmt::format("{} d {} {}", target, head_dim, all ? "options" : "plain"));
        test::expect_good_registers(
            compiled->ptx, target,
            testing::TempDir() + std::to_string(getpid()) + "_tartan_attention_wide");
      }
}

// Longer queries than shared memory has room for, with as many keys as for shorter ones.
TEST(Attention, TunedFitsSharedMemory) {
  Device device = *Device::open("emulator");
  for (const auto& [name, head_dim] : {std::pair{"sm_75", 128},
                                       {"sm_80", 512},
                                       {"sm_86", 160},
                                       {"sm_89", 192},
                                       {"sm_89", 256},
                                       {"sm_90a", 192},
                                       {"sm_90a", 256},
                                       {"sm_120", 256}}) {
    const Target target = *Target::parse(name);
    expect_attention(
        device, target,
        kernels::tuned(kernels::Attention{.head_dim = head_dim, .causal = true}, target), {70, 75});
  }
  // Head dimensions to 256 keep two stages.
  for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"})
    for (int head_dim = 16; head_dim <= 256; head_dim += 16) {
      const auto options =
          kernels::tuned(kernels::Attention{.head_dim = head_dim}, *Target::parse(name));
      EXPECT_EQ(options.stages, 2) << name << ' ' << head_dim;
      EXPECT_GE(options.keys_per_step, 32) << name << ' ' << head_dim;
    }
  // Options that fit are unchanged.
  EXPECT_EQ(
      kernels::tuned(kernels::Attention{.head_dim = 128}, *Target::parse("sm_89")).keys_per_step,
      64);
  EXPECT_EQ(kernels::tuned(kernels::Attention{.head_dim = 128}, hopper).keys_per_step, 128);
}

// One diagnostic per error.
TEST(Attention, RefusesWhatNoTargetHas) {
  const auto complaints = [](const kernels::Attention& options, const char* target) {
    const auto compiled = compile(kernels::attention(options), *Target::parse(target));
    return compiled ? std::vector<Diag>{}
                    : std::vector<Diag>(compiled.diags().begin(), compiled.diags().end());
  };
  using A = kernels::Attention;
  for (const auto& [options, target, part] :
       {std::tuple{A{.type = bf16}, "sm_75", "no mma.sync of bf16"},
        {A{.head_dim = 72}, "sm_80", "head_dim = 72"},
        {A{.head_dim = 0}, "sm_80", "head_dim = 0: expected a multiple of 16"},
        {A{.head_dim = 2147483632}, "sm_80", "the nearest is 512"},
        {A{.type = s8}, "sm_80", "type = s8"}}) {
    const auto found = complaints(options, target);
    ASSERT_EQ(found.size(), 1u) << part;
    EXPECT_NE(found[0].message.find(part), std::string::npos) << found[0].message;
  }
  // Twelve warps cannot share 128 queries, neither those of scores nor those of the result.
  A shared = kernels::tuned(A{.type = bf16}, hopper);
  shared.queries_per_block = 128;
  const auto found = complaints(shared, "sm_90a");
  ASSERT_EQ(found.size(), 2u);
  for (const Diag& each : found)
    EXPECT_NE(each.message.find("m = 128 is not a multiple of 192"), std::string::npos)
        << each.message;
}

}  // namespace
}  // namespace tartan
