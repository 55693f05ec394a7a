// SPDX-License-Identifier: Apache-2.0
// The gated delta rule in chunks and token by token, against its recurrence.
#include "tests/kernels/delta_rule_run.h"

namespace tartan {
namespace {

using namespace testing_delta_rule;

constexpr const char* targets[] = {"sm_80", "sm_90a", "sm_100a", "sm_120a"};

Target target_of(const char* arch) { return *Target::parse(arch); }

Device checked() { return *Device::open("emulator", {.checks = Checks::all}); }

DeltaRule on(const char* arch, DeltaRule with = {}) { return tuned(with, target_of(arch)); }

TEST(DeltaRule, IsTheRecurrenceOfOneChunk) {
  for (const char* arch : targets) {
    Device device = checked();
    expect_prefill(device, target_of(arch), on(arch), {.lengths = {64}});
  }
}

TEST(DeltaRule, IsTheRecurrenceOfPackedSequences) {
  for (const char* arch : targets) {
    Device device = checked();
    expect_prefill(device, target_of(arch), on(arch),
                   {.key_dim = 64,
                    .value_dim = 64,
                    .lengths = {150, 0, 1, 64, 63, 65},
                    .heads = 2,
                    .before = 3,
                    .after = 70});
  }
}

TEST(DeltaRule, TakesAStateAndSharedKeys) {
  for (const char* arch : targets) {
    Device device = checked();
    expect_prefill(device, target_of(arch), on(arch),
                   {.key_dim = 64,
                    .value_dim = 128,
                    .type = f16,
                    .initial_state = true,
                    .lengths = {70, 0},
                    .heads = 4,
                    .key_heads = 2});
  }
}

TEST(DeltaRule, HasAllSizes) {
  Device device = checked();
  for (const int key_dim : {64, 96, 128})
    for (const int value_dim : {64, 128, 192, 256})
      expect_prefill(device, target_of("sm_90a"), on("sm_90a"),
                     {.key_dim = key_dim, .value_dim = value_dim, .lengths = {100}});
  expect_prefill(device, target_of("sm_90a"), on("sm_90a", {.values_per_block = 128}),
                 {.key_dim = 96, .value_dim = 256, .lengths = {100}});
}

// A gate of exp(-60) a token: its products are far below what f32 has.
TEST(DeltaRule, TakesStrongGates) {
  for (const bool channels : {false, true})
    for (const double strongest : {60.0, 6.0, 0.0}) {
      Device device = checked();
      expect_prefill(device, target_of("sm_90a"), on("sm_90a"),
                     {.key_dim = 64,
                      .value_dim = 64,
                      .channel_gates = channels,
                      .lengths = {100},
                      .strongest_gate = strongest});
    }
}

TEST(DeltaRule, HasChannelGates) {
  for (const char* arch : targets)
    for (const Type type : {f16, bf16}) {
      Device device = checked();
      expect_prefill(device, target_of(arch), on(arch),
                     {.type = type,
                      .channel_gates = true,
                      .initial_state = true,
                      .lengths = {150, 64},
                      .heads = 2,
                      .before = 5,
                      .after = 70});
    }
}

TEST(DeltaRule, ChannelGatesHaveAllSizes) {
  Device device = checked();
  for (const int key_dim : {64, 96, 128})
    expect_prefill(device, target_of("sm_90a"), on("sm_90a"),
                   {.key_dim = key_dim,
                    .value_dim = 64,
                    .channel_gates = true,
                    .lengths = {65, 1},
                    .heads = 2,
                    .key_heads = 1});
}

// What other sequences have does not matter: neither NaN nor how many there are.
TEST(DeltaRule, SequencesDoNotAffectEachOther) {
  for (const bool channels : {false, true})
    for (const char* arch : targets) {
      const Problem of{.key_dim = 64,
                       .value_dim = 64,
                       .channel_gates = channels,
                       .lengths = {70, 30, 66},
                       .before = 2,
                       .after = 80};
      Inputs in(of);
      const Results clean = [&] {
        Device device = checked();
        return run(device, target_of(arch), on(arch), of, in);
      }();
      const auto poison = [&](Elements& all, int width, int begin, int end) {
        for (int i = begin * width; i < end * width; ++i)
          all.set(static_cast<std::size_t>(i), static_cast<std::uint16_t>(0x7FC0));
      };
      for (const auto& [begin, end] : {std::pair{0, 2}, {72, 102}, {168, 248}}) {
        poison(in.q, 64, begin, end), poison(in.k, 64, begin, end), poison(in.v, 64, begin, end);
        for (int t = begin; t < end; ++t) in.beta[t] = NAN;
      }
      Device device = checked();
      const Results got = run(device, target_of(arch), on(arch), of, in);
      int wrong = 0;
      for (int t = 0; t < of.tokens() * 64; ++t)
        if ((t / 64 >= 2 && t / 64 < 72) || (t / 64 >= 102 && t / 64 < 168))
          wrong += got.o[static_cast<std::size_t>(t)] != clean.o[static_cast<std::size_t>(t)];
      EXPECT_EQ(wrong, 0) << arch;
    }
}

TEST(DeltaRule, DecodesTokenByToken) {
  for (const char* arch : targets)
    for (const bool channels : {false, true}) {
      Device device = checked();
      const DeltaRuleDecode with = tuned(DeltaRuleDecode{}, target_of(arch));
      expect_decode(device, target_of(arch), with,
                    {.channel_gates = channels, .lengths = {1, 1, 1}, .heads = 2, .key_heads = 1});
      expect_decode(device, target_of(arch), with,
                    {.key_dim = 64,
                     .value_dim = 256,
                     .type = f16,
                     .channel_gates = channels,
                     .lengths = {5, 5}});
    }
}

TEST(DeltaRule, RefusesWhatItHasNot) {
  const auto refused = [](const Kernel& kernel) {
    const auto compiled = compile(kernel, target_of("sm_90a"));
    return compiled ? std::string() : compiled.diags()[0].message;
  };
  EXPECT_EQ(refused(delta_rule(DeltaRule{.key_dim = 80})),
            "key_dim = 80: expected 64, 96 or 128; the nearest is 64");
  EXPECT_EQ(refused(delta_rule_chunks(DeltaRule{.value_dim = 320})),
            "value_dim = 320: expected a multiple of 64, from 64 to 256");
  EXPECT_EQ(refused(delta_rule(DeltaRule{.value_dim = 192, .values_per_block = 128})),
            "values_per_block = 128: expected 64 or 128, a divisor of value_dim = 192");
  EXPECT_EQ(refused(delta_rule(DeltaRule{.type = f32})),
            "type = f32: expected f16 or bf16 for Q, K, V and O");
  EXPECT_EQ(refused(delta_rule_decode(DeltaRuleDecode{.key_dim = 100})),
            "key_dim = 100: expected a multiple of 32, from 32 to 256");
}

}  // namespace
}  // namespace tartan
