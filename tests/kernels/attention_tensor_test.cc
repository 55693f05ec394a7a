// SPDX-License-Identifier: Apache-2.0
// Attention by tcgen05 on sm_100a: against double precision, in several orders of warps and with
// all checks.
#include "tests/kernels/attention_run.h"

namespace tartan {
namespace {

using kernels::Attention;
using testing_attention::Lengths;

void compare(const Attention& options, const Lengths& size) {
  const Target target = *Target::parse("sm_100a");
  const auto compiled = compile(kernels::attention(options), target);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(compiled->ptx.find("tcgen05.mma"), std::string::npos);
  EXPECT_EQ(compiled->ptx.find("mma.sync"), std::string::npos);
  for (const char* const schedule : {"", "1"}) {
    DeviceOptions with{.hardware = "sm_100a", .checks = Checks::all};
    with.schedule = schedule;
    Device device = *Device::open("emulator", with);
    testing_attention::expect_attention(device, target, options, size);
  }
}

TEST(AttentionTensor, Heads) {
  for (const int d : {16, 64, 128})
    for (const int warps : {4, 8})
      for (const int rows : {16, 32})
        for (const bool causal : {false, true}) {
          SCOPED_TRACE(fmt::format("d {}, {} warps, {} rows, {}", d, warps, rows, causal));
          Attention options{.head_dim = d, .causal = causal};
          options.warps = warps, options.producers = 4, options.stages = 2;
          options.queries_per_block = rows * warps, options.keys_per_step = 64;
          compare(options, {150, 200, 2});
        }
}

// What tuned() chooses, without spills where the assembler is at hand.
TEST(AttentionTensor, Tuned) {
  using kernels::Softcap;
  const Target target = *Target::parse("sm_100a");
  const Attention all[] = {
      {.head_dim = 16},
      {.head_dim = 64, .type = bf16, .causal = true},
      {.head_dim = 96, .causal = true, .window = true},
      {.head_dim = 128},
      {.head_dim = 128, .type = bf16, .causal = true, .window = true, .sinks = true},
      {.head_dim = 128, .causal = true, .softcap = Softcap::by_exp},
      {.head_dim = 192, .causal = true},
      {.head_dim = 256, .type = bf16, .causal = true},
  };
  for (const Attention& each : all) compare(tuned(each, target), {300, 333, 2});
  compare(tuned(all[3], target), {1, 1, 2});
}

}  // namespace
}  // namespace tartan
