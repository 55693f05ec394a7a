// SPDX-License-Identifier: Apache-2.0
// Paged decoding at awkward sizes: on the emulator with all checks, and on a GPU if there is one,
// against the same formula in double.
#include <unistd.h>

#include "tests/kernels/decode_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using testing_decode::expect_decode;
using testing_decode::Sizes;
using D = kernels::Decode;

const Sizes awkward{{130, 0, 1, 64, 200}, 2, 5};

void expect_on_emulator(const char* target, const D& with, const Sizes& size = awkward) {
  Device device = *Device::open("emulator", {.hardware = target, .checks = Checks::all});
  expect_decode(device, *Target::parse(target), with, size);
}

D on(const char* target, D with) { return tuned(with, *Target::parse(target)); }

TEST(Decode, OneToken) {
  expect_on_emulator("sm_75", on("sm_75", {.head_dim = 64, .page = 16}));
  expect_on_emulator("sm_80", on("sm_80", {.head_dim = 64}));
  expect_on_emulator("sm_90", on("sm_90", {.head_dim = 64, .page = 128}));
  expect_on_emulator("sm_90a", on("sm_90a", {.head_dim = 128, .type = bf16, .page = 16}));
}

// One TMA load for a short page where mma.sync reads it; wgmma has panels of 64 columns.
TEST(Decode, WholeLines) {
  const auto loads = [](int queries, int page) {
    const auto compiled = compile(kernels::decode(on("sm_90a", {.queries = queries, .page = page})),
                                  *Target::parse("sm_90a"));
    EXPECT_TRUE(compiled) << compiled.diags().text();
    const std::string choices = compiled ? explain(compiled->choices) : "";
    const auto at = choices.find("boxes of ");
    return choices.substr(at, choices.find('\n', at) - at);
  };
  EXPECT_EQ(loads(1, 16), "boxes of 128 x 16");
  EXPECT_EQ(loads(1, 64), "boxes of 64 x 64");
  EXPECT_EQ(loads(8, 16), "boxes of 64 x 16");
  for (const int page : {16, 32})
    expect_on_emulator("sm_90a", on("sm_90a", {.queries = 2, .group = 7, .page = page}));
}

TEST(Decode, SeveralTokens) {
  expect_on_emulator("sm_80", on("sm_80", {.head_dim = 64, .queries = 8}));
  expect_on_emulator("sm_90a", on("sm_90a", {.head_dim = 128, .type = bf16, .queries = 8}));
  expect_on_emulator("sm_90a", on("sm_90a", {.head_dim = 64, .queries = 3, .group = 5}));
  expect_on_emulator("sm_90a", on("sm_90a", {.head_dim = 64, .queries = 16, .group = 8}),
                     {{70, 10, 0}, 1, 2});
}

TEST(Decode, HeadDimensions) {
  for (const int d : {16, 80, 96, 256})
    for (const char* target : {"sm_80", "sm_90a"})
      for (const int queries : {1, 5})
        expect_on_emulator(target,
                           on(target, {.head_dim = d, .queries = queries, .group = 7, .page = 16}),
                           {{70, 0, 3}, 1, 2});
}

TEST(Decode, StepsAndPages) {
  for (const auto& [keys, groups, stages, page] : {std::array{128, 8, 2, 64},
                                                   {16, 1, 6, 64},
                                                   {32, 2, 3, 128},
                                                   {64, 0, 3, 256},
                                                   {256, 0, 1, 32}})
    expect_on_emulator("sm_90a", {.head_dim = 64,
                                  .page = page,
                                  .keys_per_step = keys,
                                  .key_groups = groups,
                                  .stages = stages,
                                  .producers = 1});
}

// One block, more blocks than steps, a block for parts of three sequences, more sequences than a
// warp has lanes.
TEST(Decode, BlocksAndLengths) {
  D with{.head_dim = 64, .page = 16, .producers = 1, .whole_steps = 0};
  for (const unsigned blocks : {1U, 2U, 7U, 40U})
    for (const Sizes& size :
         {Sizes{{1000}, 1, blocks}, Sizes{{64, 64, 64}, 1, blocks}, Sizes{{0, 0}, 3, blocks}})
      expect_on_emulator("sm_90a", with, size);
  with.head_dim = 16, with.keys_per_step = 16;
  expect_on_emulator("sm_90a", with, {std::vector<int>(150, 17), 1, 11});
}

// Blocks with heads of several sequences, with none, and where the last one has fewer.
TEST(Decode, WholeHeads) {
  D with{.head_dim = 64, .page = 16, .producers = 1, .whole_steps = 1024};
  for (const Sizes& size : {Sizes{{60, 64, 1, 0, 33}, 3, 4},
                            {{200}, 2, 5},
                            {{64, 64}, 2, 1},
                            {{64, 64, 64}, 5, 4},
                            {{0, 0}, 2, 3}})
    expect_on_emulator("sm_90a", with, size);
  with.head_dim = 16, with.keys_per_step = 16;
  expect_on_emulator("sm_90a", with, {std::vector<int>(150, 17), 2, 11});
  expect_on_emulator("sm_80", on("sm_80", {.head_dim = 64, .queries = 8, .whole_steps = 1024}),
                     {{70, 70, 64}, 2, 2});
}

TEST(Decode, BlocksOfALaunch) {
  const D one{.keys_per_step = 128}, eight{.queries = 8, .keys_per_step = 128};
  EXPECT_EQ(one.blocks(132), 132U);
  EXPECT_EQ(one.blocks(132, 128, 8, 8192), 1024U);  // a block for each head
  EXPECT_EQ(one.blocks(132, 128, 8, 1024), 132U);   // short
  EXPECT_EQ(one.blocks(132, 64, 8, 8192), 512U);
  EXPECT_EQ(one.blocks(132, 57, 8, 8192), 132U);  // few
  EXPECT_EQ(one.blocks(132, 104, 8, 8192), 832U);
  EXPECT_EQ(eight.blocks(132, 104, 8, 8192), 132U);  // the last 40 would take as long as 132
  EXPECT_EQ(eight.blocks(132, 112, 8, 8192), 896U);
  EXPECT_EQ(one.blocks(0, 128, 8, 8192), 0U);
}

TEST(Decode, GpuAgreesWithDoublePrecision) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  const Arch own = device->arch();
  for (const int d : {64, 128})
    for (const int queries : {1, 5, 16})
      for (const std::string& name : {std::string("sm_80"), own.text()}) {
        const Target target = *Target::parse(name);
        const D with{.head_dim = d, .type = bf16, .queries = queries, .page = 16};
        expect_decode(*device, target, tuned(with, target), {{500, 0, 1, 257, 64}, 2, 7});
        expect_decode(*device, target, tuned(with, target), {{64, 64, 64}, 3, 4});
      }
}

// NVIDIA's assembler accepts the text and spills nothing.
// By tcgen05 from 33 rows on: 64 of them or 128.
TEST(Decode, ByTcgen05) {
  for (const auto& [d, queries, group] :
       {std::array{128, 8, 5}, {64, 16, 8}, {256, 8, 8}, {80, 7, 9}}) {
    const D with = on("sm_100a", {.head_dim = d, .queries = queries, .group = group});
    expect_on_emulator("sm_100a", with);
    const auto compiled = compile(kernels::decode(with), *Target::parse("sm_100a"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_NE(compiled->ptx.find("tcgen05.mma"), std::string::npos);
  }
  // By mma.sync: few rows, and many of wide heads.
  expect_on_emulator("sm_100a", on("sm_100a", {.head_dim = 128, .queries = 4, .group = 8}));
  expect_on_emulator("sm_100a", on("sm_100a", {.head_dim = 256, .queries = 16, .group = 8}));
}

TEST(Decode, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const auto& [target, d, queries] : {std::tuple{"sm_80", 128, 1},
                                           {"sm_80", 256, 8},
                                           {"sm_90a", 128, 1},
                                           {"sm_90a", 128, 8},
                                           {"sm_90a", 256, 16}}) {
    SCOPED_TRACE(fmt::format("{} d {} queries {}", target, d, queries));
    const auto compiled = compile(kernels::decode(on(target, {.head_dim = d, .queries = queries})),
                                  *Target::parse(target));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    test::expect_good_registers(compiled->ptx, target,
                                testing::TempDir() + std::to_string(getpid()) + "_decode");
  }
}

TEST(Decode, TunedTakesImpossibleHeads) {
  for (const int head_dim : {0, -16, 1 << 23}) {
    const Target hopper = *Target::parse("sm_90a");
    const auto compiled =
        compile(kernels::decode(kernels::tuned(D{.head_dim = head_dim}, hopper)), hopper);
    ASSERT_FALSE(compiled) << head_dim;
    EXPECT_NE(compiled.diags().text().find("head_dim = "), std::string::npos);
  }
}

// One diagnostic per error.
TEST(Decode, RefusesWrongOptions) {
  for (const auto& [options, part] :
       {std::pair{D{.head_dim = 72}, "head_dim = 72: expected a multiple of 16"},
        {D{.head_dim = 512}, "the nearest is 256"},
        {D{.type = s8}, "type = s8"},
        {D{.queries = 17}, "queries = 17: expected 1 to 16"},
        {D{.queries = 16, .group = 9}, "group = 9: expected 1 to 8"},
        {D{.group = 0}, "group = 0: expected 1 to 128"},
        {D{.page = 48}, "page = 48"},
        {D{.keys_per_step = 48, .key_groups = 1}, "keys_per_step = 48"},
        {D{.keys_per_step = 64, .key_groups = 8}, "key_groups = 8"},
        {D{.stages = 0}, "stages = 0"},
        {D{.whole_steps = -1}, "whole_steps = -1: expected 0 to 1024"}}) {
    const auto compiled = compile(kernels::decode(options), *Target::parse("sm_80"));
    ASSERT_FALSE(compiled) << part;
    ASSERT_EQ(compiled.diags().size(), 1U) << compiled.diags().text();
    EXPECT_NE(compiled.diags()[0].message.find(part), std::string::npos)
        << compiled.diags()[0].message;
  }
}

}  // namespace
}  // namespace tartan
