// SPDX-License-Identifier: Apache-2.0
// Attention as tuned() chooses it for few keys: against double precision on the emulator, with all
// of its checks, and on a GPU, if there is one.
#include <unistd.h>

#include <random>

#include "tests/kernels/attention_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::Attention;
using kernels::Softcap;
using testing_attention::expect_attention;
using testing_attention::Inputs;
using testing_attention::Lengths;

const Target hopper = *Target::parse("sm_90a");

Attention few(Attention options, int keys) {
  options.keys = keys;
  return tuned(options, hopper);
}

// Each row of the table of tuned(), and head dimensions between them.
const std::pair<int, int> chosen[] = {{16, 1},    {64, 100},  {64, 1024}, {80, 300}, {96, 1000},
                                      {128, 200}, {128, 700}, {192, 100}, {256, 70}, {256, 300}};

Device checked(const std::string& schedule = {}) {
  return *Device::open("emulator",
                       {.hardware = "sm_90a", .schedule = schedule, .checks = Checks::all});
}

// One key, a part of a step, of a tile, rows that see no key, more keys than were expected; windows
// of less than a step.
TEST(AttentionFewKeys, AwkwardLengths) {
  Device device = checked();
  std::size_t next = 0;
  for (const auto& [head_dim, keys] : chosen)
    for (const Lengths& size : {Lengths{1, 1}, {65, 17, 2, 1}, {70, 131, 2, 1}, {130, 20}}) {
      const bool causal = next++ % 2 == 0;
      expect_attention(device, hopper,
                       few({.head_dim = head_dim,
                            .type = next % 3 ? bf16 : f16,
                            .causal = causal,
                            .window = causal && next % 4 == 1},
                           keys),
                       size);
    }
}

// Shapes and options that are drawn.
void expect_drawn(Device& device, unsigned seed, int count, int most) {
  std::mt19937 random(seed);
  const auto below = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (int i = 0; i < count; ++i) {
    const auto [head_dim, keys] = chosen[below(std::size(chosen))];
    const int length = 1 + below(most), kv_heads = 1 + below(2);
    const bool causal = below(2) == 0;
    const Attention options{.head_dim = head_dim,
                            .type = below(2) ? f16 : bf16,
                            .causal = causal,
                            .window = causal && below(2) == 0,
                            .softcap = below(4) ? Softcap::none : Softcap::by_exp,
                            .sinks = below(4) == 0};
    const Lengths size{.queries = below(3) ? length : 1 + below(most),
                       .keys = length,
                       .heads = kv_heads * (1 << below(3)),
                       .kv_heads = kv_heads,
                       .batch = 1 + below(2)};
    const Attention by = few(options, keys);
    Inputs in(by, size);
    in.window = 1 + below(most);
    expect_attention(device, hopper, by, size, in);
  }
}

TEST(AttentionFewKeys, DrawnShapes) {
  for (const unsigned seed : {59u, 60u, 61u}) {
    Device device = checked(std::to_string(seed));
    expect_drawn(device, seed, 12, 150);
  }
}

TEST(AttentionFewKeys, DrawnShapesOnAGpu) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  if (device->arch().sm != 90) GTEST_SKIP() << "no sm_90a";
  expect_drawn(*device, 62, 200, 700);
}

// The description is the same where nothing is asynchronous, and without producers.
TEST(AttentionFewKeys, ProductsTogetherOnOtherTargets) {
  Device device = *Device::open("emulator");
  for (const auto& [target, stages, producers] :
       {std::tuple{"sm_75", 1, 0}, {"sm_80", 2, 0}, {"sm_80", 3, 2}, {"sm_90", 2, 1}})
    expect_attention(device, *Target::parse(target),
                     {.causal = true, .stages = stages, .producers = producers, .together = true},
                     {70, 150, 2, 1});
}

auto key(const Attention& x) {
  return std::tuple(x.queries_per_block, x.keys_per_step, x.warps, x.stages, x.producers,
                    x.persistent, x.together, x.blocks_per_multiprocessor);
}

// For every number of keys tuned() chooses what it does for the first limit that suffices, and
// beyond all of them as for an unknown number. No limit is without effect.
TEST(AttentionFewKeys, LimitsAreWhereTunedChoosesSomethingElse) {
  for (int head_dim = 16; head_dim <= 512; head_dim += 16)
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(fmt::format("d {} {}", head_dim, causal ? "causal" : "full"));
      const Attention options{.head_dim = head_dim, .causal = causal};
      const auto many = key(tuned(options, hopper));
      const std::vector<int> limits = key_limits(options, hopper);
      std::vector<int> changes;
      for (int keys = 1; keys <= 4096; ++keys)
        if (key(few(options, keys)) != key(few(options, keys + 1))) changes.push_back(keys);
      EXPECT_EQ(limits, changes);
      EXPECT_EQ(key(few(options, 4096)), many);
      EXPECT_EQ(limits.empty(), head_dim > 256);
      EXPECT_TRUE(key_limits(options, *Target::parse("sm_90")).empty());
      EXPECT_TRUE(key_limits(options, *Target::parse("sm_100a")).empty());
    }
}

TEST(AttentionFewKeys, TunedAsksForFewKeysAlone) {
  for (const int head_dim : {64, 96, 128, 256}) {
    const Attention options{.head_dim = head_dim, .causal = true};
    EXPECT_EQ(key(few(options, 2049)), key(tuned(options, hopper))) << head_dim;
    EXPECT_TRUE(few(options, 128).together) << head_dim;
    EXPECT_FALSE(few(options, 128).persistent) << head_dim;
    const Target ampere = *Target::parse("sm_80");
    Attention other = options;
    other.keys = 128;
    EXPECT_EQ(key(tuned(other, ampere)), key(tuned(options, ampere))) << head_dim;
  }
}

// As many blocks as tuned() wants have room on a multiprocessor.
TEST(AttentionFewKeys, SeveralBlocksFitOnAMultiprocessor) {
  constexpr std::size_t shared = 228 << 10, reserved = 1024;
  Device device = *Device::open("emulator");
  for (int head_dim = 16; head_dim <= 256; head_dim += 16)
    for (const bool causal : {false, true}) {
      const Attention options =
          few({.head_dim = head_dim, .causal = causal, .window = causal, .packed = true}, 100);
      const auto compiled = compile(kernels::attention(options), hopper);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      auto module = device.load(compiled->ptx, compiled->name);
      ASSERT_TRUE(module) << module.diags().text();
      const auto resources = module->kernel(compiled->name)->resources();
      ASSERT_TRUE(resources && resources->static_shared);
      const std::size_t block =
          *resources->static_shared + static_cast<std::size_t>(compiled->dynamic_shared) + reserved;
      EXPECT_LE(block * static_cast<std::size_t>(options.blocks_per_multiprocessor), shared)
          << head_dim;
    }
}

TEST(AttentionFewKeys, AssembleWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const auto& [head_dim, keys] : chosen)
    for (const bool causal : {false, true}) {
      const auto compiled =
          compile(kernels::attention(few({.head_dim = head_dim, .causal = causal}, keys)), hopper);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      EXPECT_TRUE(compiled->warnings.empty()) << compiled->warnings.text();
      SCOPED_TRACE(fmt::format("d {} {} {}", head_dim, keys, causal ? "causal" : "full"));
      test::expect_good_registers(
          compiled->ptx, "sm_90a",
          testing::TempDir() + std::to_string(getpid()) + "_tartan_attention_few");
    }
}

TEST(AttentionFewKeys, PersistentBlocksHaveNone) {
  const auto compiled =
      compile(kernels::attention({.producers = 4, .persistent = true, .together = true}), hopper);
  ASSERT_FALSE(compiled);
  ASSERT_EQ(compiled.diags().size(), 1u);
  EXPECT_NE(compiled.diags()[0].message.find("expected together = false"), std::string::npos)
      << compiled.diags()[0].message;
}

}  // namespace
}  // namespace tartan
