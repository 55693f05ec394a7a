// SPDX-License-Identifier: Apache-2.0
// Decoding with latent attention at awkward sizes: on the emulator with all checks, and on a GPU if
// there is one, against the same formula in double.
#include <unistd.h>

#include "tests/kernels/mla_decode_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using testing_mla_decode::Cache;
using testing_mla_decode::expect_mla;
using testing_mla_decode::Sizes;
using M = kernels::MlaDecode;

// Blocks with whole sequences, if those come out even, and with equal shares.
void expect_on_emulator(const char* target, M with, const Sizes& size) {
  Device device = *Device::open("emulator", {.hardware = target, .checks = Checks::all});
  expect_mla(device, *Target::parse(target), with, size);
  with.whole_steps = 0;
  expect_mla(device, *Target::parse(target), with, size);
}

M on(const char* target, M with) { return tuned(with, *Target::parse(target)); }

TEST(MlaDecode, HeadsAndTokens) {
  expect_on_emulator("sm_90a", on("sm_90a", {.heads = 16}), {{130, 0, 1, 64}, 6});
  expect_on_emulator("sm_90a", on("sm_90a", {.type = f16, .heads = 1, .page = 16}), {{33}, 1});
  // Two tiles of rows; the second one is not full, and a token begins in the first one.
  expect_on_emulator("sm_90a", on("sm_90a", {.queries = 3, .heads = 25, .page = 32}),
                     {{100, 2}, 4});
  expect_on_emulator("sm_90a", on("sm_90a", {.heads = 128, .page = 256}), {{130}, 6});
}

TEST(MlaDecode, TargetsWithoutWgmma) {
  expect_on_emulator("sm_80", on("sm_80", {.queries = 2, .heads = 20}), {{70, 0}, 2});
  expect_on_emulator("sm_86", on("sm_86", {.heads = 16}), {{70}, 2});
}

// One block, more blocks than steps, a block for parts of three sequences; nothing but empty ones.
TEST(MlaDecode, BlocksAndLengths) {
  const M with = on("sm_90a", {.heads = 8});
  for (const Sizes& size : {Sizes{{300}, 1}, {{300}, 7}, {{64, 64, 64}, 2}, {{0, 0}, 3}})
    expect_on_emulator("sm_90a", with, size);
}

// Blocks with several sequences, with none, and where the last one has fewer.
TEST(MlaDecode, WholeSequences) {
  M with = on("sm_90a", {.heads = 66});
  with.whole_steps = 1024;
  for (const Sizes& size : {Sizes{{60, 64, 1, 0, 33}, 4}, {{64}, 8}}) {
    Device device = *Device::open("emulator", {.hardware = "sm_90a", .checks = Checks::all});
    expect_mla(device, *Target::parse("sm_90a"), with, size);
  }
  // More sequences than a lane of a warp counts.
  with = on("sm_90a", {.heads = 1, .page = 16});
  const Sizes many{std::vector<int>(150, 1), 7};
  Device device = *Device::open("emulator", {.hardware = "sm_90a", .checks = Checks::all});
  expect_mla(device, *Target::parse("sm_90a"), with, many);
}

// Scores that grow from step to step by more than the maximum may stay behind, and fall again.
TEST(MlaDecode, ScoresThatGrow) {
  const M with = on("sm_90a", {.heads = 8});
  const Sizes size{{400}, 2};
  Cache cache(with, size);
  for (int j = 0; j < size.lengths[0]; ++j) {
    const std::size_t page = cache.table[j / with.page];
    for (int c = 0; c < M::key; ++c) {
      std::uint16_t& x = cache.kv[(page * with.page + j % with.page) * M::key + c];
      const double times = j < 300 ? std::ldexp(1, j / 64) : 0.25;
      x = static_cast<std::uint16_t>(testing_numbers::float_bits(
          with.type, times * testing_numbers::float_value(with.type, x)));
    }
  }
  Device device = *Device::open("emulator", {.hardware = "sm_90a", .checks = Checks::all});
  expect_mla(device, *Target::parse("sm_90a"), with, size, cache, 16);
}

TEST(MlaDecode, GpuAgreesWithDoublePrecision) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  const Arch own = device->arch();
  for (const auto& [heads, queries] : {std::pair{16, 1}, {50, 3}})
    for (const std::string& name : {std::string("sm_80"), own.text()}) {
      const Target target = *Target::parse(name);
      const M with{.queries = queries, .heads = heads};
      const unsigned blocks = 3 * with.row_tiles();
      expect_mla(*device, target, tuned(with, target), {{300, 0, 1, 100}, blocks});
      expect_mla(*device, target, tuned(with, target), {{64, 60, 0, 33, 64}, blocks});
    }
}

// The first group's product is on its way while that group writes the weights for the second one.
TEST(MlaDecode, OrderOfProducts) {
  const auto compiled = compile(kernels::mla_decode(on("sm_90a", {})), *Target::parse("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const std::string& ptx = compiled->ptx;
  const std::size_t written = ptx.find("bar.arrive 4, 256;");
  ASSERT_NE(written, std::string::npos);
  const std::size_t issued = ptx.rfind("wgmma.commit_group", written),
                    freed = ptx.rfind("bar.sync 2, 256;", written);
  ASSERT_NE(issued, std::string::npos);
  ASSERT_NE(freed, std::string::npos);
  EXPECT_LT(issued, freed);
  const std::size_t waits = ptx.find("wgmma.wait_group", issued);
  ASSERT_NE(waits, std::string::npos);
  EXPECT_GT(waits, written);
}

TEST(MlaDecode, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const auto& [target, queries] : {std::pair{"sm_80", 1}, {"sm_90a", 1}, {"sm_90a", 3}}) {
    SCOPED_TRACE(fmt::format("{} queries {}", target, queries));
    const auto compiled =
        compile(kernels::mla_decode(on(target, {.queries = queries})), *Target::parse(target));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
    test::expect_good_registers(compiled->ptx, target,
                                testing::TempDir() + std::to_string(getpid()) + "_mla_decode");
  }
}

// One diagnostic per error.
TEST(MlaDecode, RefusesWrongOptions) {
  for (const auto& [options, part] :
       {std::pair{M{.type = f32}, "type = f32: expected f16 or bf16"},
        {M{.queries = 17}, "queries = 17: expected 1 to 16"},
        {M{.heads = 129}, "heads = 129: expected 1 to 128"},
        {M{.heads = 0}, "heads = 0: expected 1 to 128"},
        {M{.page = 48}, "page = 48: expected 16, 32, 64, 128 or 256"},
        {M{.keys_per_step = 128}, "keys_per_step = 128: expected 16, 32 or 64"},
        {M{.stages = 0}, "stages = 0: expected 1 to 256"},
        {M{.whole_steps = -1}, "whole_steps = -1: expected 0 to 1024"}}) {
    const auto compiled = compile(kernels::mla_decode(options), *Target::parse("sm_80"));
    ASSERT_FALSE(compiled) << part;
    ASSERT_EQ(compiled.diags().size(), 1U) << compiled.diags().text();
    EXPECT_NE(compiled.diags()[0].message.find(part), std::string::npos)
        << compiled.diags()[0].message;
  }
}

}  // namespace
}  // namespace tartan
