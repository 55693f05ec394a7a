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

// With wgmma and TMA.
TEST(Attention, EmulatorAgreesByWarpgroups) {
  Device device = *Device::open("emulator");
  for (const auto& [options, size] : cases())
    expect_attention(device, hopper, tuned(options, hopper), size);
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
}

}  // namespace
}  // namespace tartan
