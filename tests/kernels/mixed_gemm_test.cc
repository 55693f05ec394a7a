// SPDX-License-Identifier: Apache-2.0
// Mixed-input GEMM at awkward sizes: on the emulator with all checks, and on a GPU if there is one,
// against a naive loop in double over the weights before they were shuffled.
#include <unistd.h>

#include "tests/kernels/findings.h"
#include "tests/kernels/mixed_gemm_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::MixedGemm;
using testing_mixed_gemm::chain;
using testing_mixed_gemm::expect_mixed;
using testing_mixed_gemm::Problem;
using testing_mixed_gemm::Sizes;

void expect_on_emulator(const char* target, const MixedGemm& with, const Sizes& size) {
  Device device = *Device::open("emulator", {.hardware = target, .checks = Checks::all});
  expect_mixed(device, *Target::parse(target), with, size);
}

// Types, weights, groups, zero points; scales of sums and of weights.
TEST(MixedGemm, NumbersAndScales) {
  for (const Type type : {f16, bf16})
    for (const Type weight : {Type::u4, Type::u8})
      for (const int group : {64, 128})
        for (const bool zeros : {false, true})
          for (const bool sums : {false, true}) {
            MixedGemm with{.type = type, .weight = weight, .group = group, .zeros = zeros};
            with.scale_sums = sums, with.tile_k = 128, with.tile_m = 8;
            expect_on_emulator("sm_80", with, {5, 72, 328});
            with.producers = 1;
            expect_on_emulator("sm_90a", with, {5, 72, 328});
          }
}

TEST(MixedGemm, Sizes) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int m : {1, 5, 17, 70}) {
      MixedGemm with{.group = 64, .tile_m = m > 16 ? 32 : 16};
      with.producers = std::string_view(target) == "sm_80" ? 0 : 1;
      expect_on_emulator(target, with, {m, 200, 584});
      expect_on_emulator(target, with, {m, 8, 64});
    }
  expect_on_emulator("sm_80", {}, {3, 64, 0});
}

TEST(MixedGemm, Blocks) {
  for (const unsigned blocks : {1U, 2U, 7U, 40U}) {
    MixedGemm with{.tile_m = 8, .tile_n = 32, .tile_k = 64, .warps_n = 2, .warps_k = 1};
    expect_on_emulator("sm_80", with, {9, 72, 328, blocks});
    with.producers = 1;
    expect_on_emulator("sm_90a", with, {9, 72, 328, blocks});
    with.split = false;
    expect_on_emulator("sm_90a", with, {9, 72, 328, blocks});
  }
}

// What tuned() chooses: mma.sync for few rows, wgmma on sm_90a for many; with parts of tiles for
// several CTAs, and with whole ones.
TEST(MixedGemm, Tuned) {
  for (const char* name : {"sm_80", "sm_86", "sm_90", "sm_90a", "sm_100a"})
    for (const int m : {1, 16, 17, 70, 130}) {
      MixedGemm with{.m = m, .n = 136, .k = 1096};
      with.weight = m % 2 ? Type::u4 : Type::u8, with.zeros = m == 17;
      with = tuned(with, *Target::parse(name));
      if (m != 17) with.m = with.n = with.k = 0;
      expect_on_emulator(name, with, {m, 136, 1096, m > 16 ? 2U : 6U});
    }
}

// k is constant: whole chunks of 64, but no whole stages. X must not be read beyond its rows.
TEST(MixedGemm, TunedForWholeChunks) {
  for (const char* name : {"sm_80", "sm_90", "sm_90a"})
    for (const int k : {64, 192, 576, 1088})
      for (const int m : {1, 16, 40}) {
        MixedGemm with{.m = m, .n = 72, .k = k, .weight = k == 192 ? Type::u8 : Type::u4};
        with.zeros = k == 576;
        with = tuned(with, *Target::parse(name));
        expect_on_emulator(name, with, {m, 72, k, with.blocks(m, 72, 4)});
      }
}

// Where k is constant, one copy brings all chunks of a stage of X, and no more rows than there are:
// fewer than ldmatrix reads, several tiles of them, a last stage that ends beyond k.
TEST(MixedGemm, OneCopyOfRows) {
  for (const int m : {1, 3, 8, 13, 16, 21})
    for (const int k : {128, 704, 1088}) {
      MixedGemm with{.m = m, .k = k, .type = m % 2 ? bf16 : f16, .zeros = m == 3};
      with.weight = m == 13 ? Type::u8 : Type::u4, with.group = k == 704 ? 64 : 128;
      with.tile_m = m <= 8 ? 8 : 16, with.tile_k = k == 1088 ? 512 : 128 * (1 + m % 2);
      with.warps_k = k == 1088 ? 4 : 2, with.producers = 1 + m % 2, with.stages = 3;
      expect_on_emulator("sm_90a", with, {m, 200, k});
      with.split = false, with.even = with.overlap = true;
      expect_on_emulator("sm_90", with, {m, 200, k});
      with.split = true, with.even = false, with.cluster = 2;
      expect_on_emulator("sm_90a", with, {m, 200, k, 4});
    }
}

// CTAs of a cluster share rows of X; the last columns of tiles are no whole cluster.
TEST(MixedGemm, Clusters) {
  for (const int cluster : {2, 4}) {
    MixedGemm with = tuned(MixedGemm{.m = 300, .n = 8192}, *Target::parse("sm_90a"));
    EXPECT_EQ(with.cluster, 2);
    with.m = with.n = 0, with.cluster = cluster;
    expect_on_emulator("sm_90a", with, {300, 328, 200, 4});
    expect_on_emulator("sm_90a", with, {70, 72, 584, 8});
  }
}

// Columns that are divided evenly: CTAs with more or fewer than a tile, one tile, or none.
TEST(MixedGemm, EvenColumns) {
  for (const unsigned blocks : {1U, 3U, 5U, 17U}) {
    MixedGemm with{.zeros = true, .tile_m = 8, .tile_n = 48, .tile_k = 128, .warps_n = 3};
    with.split = false, with.even = true;
    expect_on_emulator("sm_80", with, {9, 200, 328, blocks});
    with.producers = 1, with.overlap = true;
    expect_on_emulator("sm_90a", with, {9, 200, 328, blocks});
  }
  MixedGemm with{.tile_n = 64, .split = false, .even = true};
  EXPECT_EQ(with.blocks(1, 8192, 132), 132U);
  EXPECT_EQ(with.blocks(1, 4096, 132), 64U);
  EXPECT_EQ(with.blocks(1, 14336, 132), 112U);  // two tiles each
  EXPECT_EQ(with.blocks(1, 8, 132), 1U);
}

// CTAs of a cluster divide k; some have no k-tile, and the last tile is no whole one.
TEST(MixedGemm, ClustersDivideK) {
  for (const int cluster : {2, 4, 8})
    for (const int producers : {0, 1}) {
      MixedGemm with{.group = 64, .tile_n = 64, .tile_k = 128, .stages = 3};
      with.producers = producers, with.cluster = cluster, with.zeros = cluster == 2;
      with.overlap = producers == 1;
      const unsigned blocks = static_cast<unsigned>(cluster);
      expect_on_emulator("sm_90a", with, {5, 200, 1096, 3 * blocks});
      expect_on_emulator("sm_90a", with, {17, 72, 328, 2 * blocks});
      EXPECT_EQ(with.partial_elements(8), 0);
      EXPECT_EQ(with.blocks(17, 200, 132), 4 * blocks);
    }
}

// 17 to 128 rows: pairs of CTAs divide k where they nearly fill an H100, or tiles are whole.
TEST(MixedGemm, SomeRows) {
  for (const int m : {20, 33, 128})
    for (const int n : {8192, 14336}) {
      MixedGemm with{.m = m, .n = n, .zeros = m == 33};
      with.weight = m == 128 ? Type::u8 : Type::u4;
      with = tuned(with, *Target::parse("sm_90a"));
      EXPECT_EQ(with.split, n == 8192);
      EXPECT_FALSE(with.sums_in_memory());
      EXPECT_TRUE(with.warpgroups);
      with.m = with.n = 0;
      expect_on_emulator("sm_90a", with, {m, 200, 840, 4});
      expect_on_emulator("sm_90a", with, {m + 100, 72, 200, 2});
    }
}

// Launches that start early read what the launch before them wrote, and only then: weights are not
// waited for, which is a race where they are written.
TEST(MixedGemm, DependentLaunches) {
  const Target target = *Target::parse("sm_90a");
  const Sizes size{5, 328, 328, 4};
  for (const int stages : {3, 8})
    for (const bool split : {true, false})
      for (const int cluster : {1, 2})
        for (const int producers : {0, 1}) {
          MixedGemm with{.tile_m = 8, .tile_n = 32, .tile_k = 64, .warps_n = 2, .warps_k = 1};
          with.m = size.m, with.n = with.k = size.n, with.stages = stages;
          with.split = split, with.cluster = cluster, with.producers = producers;
          SCOPED_TRACE(testing_mixed_gemm::text(with));
          Device device = *Device::open("emulator", {.hardware = "sm_90a", .checks = Checks::all});
          const auto expected = chain(device, target, with, size, false);
          with.overlap = true;
          EXPECT_TRUE(chain(device, target, with, size, true) == expected);
          for (const Finding& each : test::defects(device)) ADD_FAILURE() << each.message;
          device.clear_findings();
          if (!producers) continue;
          chain(device, target, with, size, true, true);
          const std::vector<Finding> found = test::defects(device);
          ASSERT_GE(found.size(), 1U);
          EXPECT_NE(found[0].message.find("that launch may still run"), std::string::npos)
              << found[0].message;
        }
}

// wgmma multiplies the weights in registers where it is asked for.
TEST(MixedGemm, ChoosesWgmma) {
  for (const auto& [target, wgmma] : {std::pair{"sm_90a", true}, {"sm_80", false}}) {
    const Target parsed = *Target::parse(target);
    const auto compiled = compile(
        kernels::mixed_gemm(tuned(MixedGemm{.m = 4096, .n = 8192, .k = 8192}, parsed)), parsed);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(compiled->ptx.find("wgmma.mma_async.sync.aligned.m64n256k16") != std::string::npos,
              wgmma);
    EXPECT_EQ(compiled->ptx.find("mma.sync.aligned.m16n8k16") == std::string::npos, wgmma);
  }
}

// tcgen05 takes them through tensor memory, 128 columns of W in a warpgroup.
TEST(MixedGemm, ByTcgen05) {
  for (const auto& [m, type] : {std::pair{17, f16}, {200, bf16}, {300, f16}}) {
    MixedGemm with{.m = m == 17 ? 17 : 4096, .n = m == 300 ? 128 : 8192, .type = type};
    with = tuned(with, *Target::parse("sm_100a"));
    EXPECT_TRUE(with.warpgroups);
    with.m = with.n = with.k = 0;
    expect_on_emulator("sm_100a", with, {m, 200, 328, 4});
  }
}

// A NaN scale is a NaN column, one of X a NaN row, and no other element is.
TEST(MixedGemm, NanStaysWhereItIs) {
  for (const bool sums : {true, false}) {
    MixedGemm with{.type = f16, .scale_sums = sums, .tile_m = 8};
    const Sizes size{5, 40, 200};
    Problem problem(with, size);
    problem.scales[7 * static_cast<std::size_t>(problem.groups) + 1] = 0x7E00;
    problem.x[3 * 200 + 11] = 0x7E00;
    Device device = *Device::open("emulator", {.hardware = "sm_80", .checks = Checks::all});
    const auto got = testing_mixed_gemm::run(device, *Target::parse("sm_80"), with, size, problem);
    ASSERT_EQ(got.size(), 200U);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(std::isnan(got[i]), i / 40 == 3 || i % 40 == 7) << i;
  }
}

// The documented places of single weights, scales and zero points.
TEST(MixedGemm, ShuffledPlaces) {
  const MixedGemm four{.group = 64, .zeros = true}, eight{.weight = Type::u8, .group = 64};
  constexpr int n = 40, k = 128;
  const auto shuffled = [&](const MixedGemm& with, int column, int row, std::uint8_t value) {
    std::vector<std::uint8_t> weights(n * k), zeros(with.zeros ? n * 2 : 0);
    std::vector<std::uint16_t> scales(n * 2);
    weights[static_cast<std::size_t>(column * k + row)] = value;
    scales[static_cast<std::size_t>(column * 2 + row / 64)] = 0x1234;
    if (with.zeros) zeros[static_cast<std::size_t>(column * 2 + row / 64)] = 9;
    auto out =
        kernels::shuffled_weights(weights, std::as_bytes(std::span(scales)), zeros, n, k, with);
    EXPECT_TRUE(out) << (out ? "" : out.diags().text());
    return *out;
  };
  // Column 29 = 16 + 8 + 5, row 64 + 16 + 8 + 2 * 3 + 1: lane 23, register 3, upper half, MMA 1.
  auto out = shuffled(four, 29, 64 + 31, 11);
  ASSERT_EQ(out.weights.size(), 3U * 2 * 64);
  EXPECT_EQ(out.weights[(2 + 1) * 64 + 23 * 2], std::uint64_t{11} << (32 + 28));
  EXPECT_EQ(out.scales[24 + 8 + 5], 0x12340000U);
  EXPECT_EQ(out.zeros[24 + 8 + 5], 0x0900U);
  // Column 2, row 32 + 4: lane 10, register 0, lower half, the first MMA of the second block.
  out = shuffled(eight, 2, 36, 200);
  ASSERT_EQ(out.weights.size(), 3U * 2 * 128);
  EXPECT_EQ(out.weights[64 + 10 * 2], 200U);
  EXPECT_EQ(out.scales[2], 0x1234U);
  // Column 8, row 16 + 9: lane 0, register 3, upper half, the second MMA.
  out = shuffled(eight, 8, 25, 3);
  EXPECT_EQ(out.weights[1], std::uint64_t{3} << (32 + 24));
}

TEST(MixedGemm, ShuffleNamesWhatIsWrong) {
  const auto message = [](MixedGemm with, std::size_t weights, std::size_t scales,
                          std::uint8_t value) {
    const std::vector<std::uint8_t> w(weights, value);
    const std::vector<std::uint16_t> s(scales);
    const auto out = kernels::shuffled_weights(w, std::as_bytes(std::span(s)), {}, 3, 72, with);
    return out ? std::string() : out.diags()[0].message;
  };
  EXPECT_EQ(message({}, 216, 3, 15), "");
  EXPECT_EQ(message({}, 215, 3, 15), "weights: expected 3 x 72 = 216, found 215");
  EXPECT_EQ(message({}, 216, 6, 15), "scales: expected 3 x 1 of 2 bytes, found 12 bytes");
  EXPECT_EQ(message({.zeros = true}, 216, 3, 15), "zeros: expected 3 x 1, found 0");
  EXPECT_EQ(message({}, 216, 3, 16), "weight of column 0, number 0: expected 0 to 15, found 16");
  EXPECT_EQ(message({.weight = Type::s8}, 216, 3, 1), "weights of s8: expected u4 or u8");
  EXPECT_EQ(message({.group = 32}, 216, 3, 1), "group = 32: expected 64 or 128");
  EXPECT_EQ(message({.n = 8}, 216, 3, 1), "n = 3: expected 8, as the options have it");
}

TEST(MixedGemm, GpuAgreesWithTheLoop) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  for (const std::string& name : {std::string("sm_80"), device->arch().text()})
    for (const Type type : {f16, bf16})
      for (const Type weight : {Type::u4, Type::u8})
        for (const int m : {1, 16, 70, 300}) {
          const Target target = *Target::parse(name);
          MixedGemm with{.m = m, .n = 200, .k = 1096, .type = type, .weight = weight};
          with.zeros = m == 70;
          with = tuned(with, target);
          expect_mixed(*device, target, with,
                       {m, 200, 1096, 5U * static_cast<unsigned>(with.cluster)});
        }
  // As many columns as tuned() divides evenly, or for pairs of CTAs.
  for (const int m : {1, 5, 16, 64}) {
    const MixedGemm with =
        tuned(MixedGemm{.m = m, .n = 8200, .k = 1088}, *Target::parse(device->arch().text()));
    const Sizes size{m, 8200, 1088, with.blocks(m, 8200, 132)};
    expect_mixed(*device, *Target::parse(device->arch().text()), with, size);
  }
}

// NVIDIA's assembler accepts the text and spills nothing.
TEST(MixedGemm, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const char* target : {"sm_80", "sm_90a"})
    for (const int m : {1, 16, 64, 128, 4096})
      for (const Type weight : {Type::u4, Type::u8}) {
        MixedGemm with{.m = m, .n = 8192, .k = 8192, .weight = weight, .zeros = m != 1};
        with = tuned(with, *Target::parse(target));
        SCOPED_TRACE(fmt::format("{}, {}", testing_mixed_gemm::text(with), target));
        const auto compiled = compile(kernels::mixed_gemm(with), *Target::parse(target));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
        test::expect_good_registers(compiled->ptx, target,
                                    testing::TempDir() + std::to_string(getpid()) + "_mixed");
      }
}

// Grids: a CTA for each multiprocessor, or for each tile where that nearly fills the GPU.
TEST(MixedGemm, GridsAndWorkSpaces) {
  MixedGemm with = tuned(MixedGemm{.m = 1, .n = 8192, .k = 8192}, *Target::parse("sm_80"));
  EXPECT_EQ(with.tiles(1, 8192), 128);
  EXPECT_EQ(with.blocks(1, 8192, 132), 128U);
  EXPECT_EQ(with.blocks(1, 4096, 132), 132U);
  EXPECT_EQ(with.partial_elements(132), std::int64_t{2} * 132 * with.tile_m * with.tile_n);
  const Target target = *Target::parse("sm_90a");
  for (const int m : {1, 16})
    for (const int n : {2048, 4096, 8192, 14336, 28672}) {
      with = tuned(MixedGemm{.m = m, .n = n, .k = 4096}, target);
      EXPECT_EQ(with.blocks(m, n, 132), 132U) << m << " " << n;
      EXPECT_EQ(with.partial_elements(132), 0);
      EXPECT_GE(with.stages, 3);
    }
  with = tuned(MixedGemm{.m = 4096, .n = 8192, .k = 8192}, target);
  EXPECT_EQ(with.partial_elements(132), 0);
  EXPECT_EQ(with.blocks(4096, 8192, 132), 132U);
}

// One diagnostic per error.
TEST(MixedGemm, RefusesWrongOptions) {
  for (const auto& [options, part] :
       {std::pair{MixedGemm{.n = 12}, "n = 12: expected a multiple of 8"},
        {MixedGemm{.k = 12}, "k = 12: expected a multiple of 8"},
        {MixedGemm{.m = -1},
         "m = -1: expected a positive number, or 0 for a parameter; the nearest is 1"},
        {MixedGemm{.type = f32}, "type = f32: expected f16 or bf16"},
        {MixedGemm{.weight = Type::s8}, "weight = s8: expected u4 or u8"},
        {MixedGemm{.group = 32}, "group = 32: expected 64 or 128"},
        {MixedGemm{.tile_m = 12}, "tile_m = 12: expected a multiple of 8 up to 256"},
        {MixedGemm{.tile_n = 576}, "tile_n = 576: expected a multiple of 16 up to 512"},
        {MixedGemm{.tile_k = 192, .warps_k = 1}, "tile_k = 192: expected 64, 128, 256 or 512"},
        {MixedGemm{.warps_n = 3}, "warps_n = 3: expected a divisor of tile_n / 16"},
        {MixedGemm{.warps_k = 3}, "warps_k = 3: expected a divisor of tile_k / 64"},
        {MixedGemm{.k = 2147483647}, "the nearest is 2147483640"},
        {MixedGemm{.tile_m = 8, .tile_n = 512, .tile_k = 128, .warps_n = 32, .warps_k = 2},
         "warps_n * warps_k = 32 * 2: expected up to 32 warps"},
        {MixedGemm{.split = false, .cluster = 2}, "cluster = 2: expected 1: clusters begin"},
        {MixedGemm{.even = true}, "even: expected whole tiles and cluster = 1, found split and"},
        {MixedGemm{.stages = 0}, "stages = 0: expected 1 to 256"},
        {MixedGemm{.warpgroups = true}, "warpgroups: expected scaled weights and warps_k = 1"}}) {
    const auto compiled = compile(kernels::mixed_gemm(options), *Target::parse("sm_80"));
    ASSERT_FALSE(compiled) << part;
    ASSERT_EQ(compiled.diags().size(), 1U) << compiled.diags().text();
    EXPECT_NE(compiled.diags()[0].message.find(part), std::string::npos)
        << compiled.diags()[0].message;
  }
  for (const auto& [options, part] :
       {std::pair{MixedGemm{.cluster = 3}, "cluster size: expected 1, 2, 4 or 8"},
        {MixedGemm{.tile_n = 80, .warps_n = 5, .cluster = 4},
         "tile_n = 80: expected a multiple of 32, 8 columns for each CTA of a cluster"}}) {
    const auto compiled = compile(kernels::mixed_gemm(options), *Target::parse("sm_90a"));
    ASSERT_FALSE(compiled) << part;
    EXPECT_NE(compiled.diags().text().find(part), std::string::npos) << compiled.diags().text();
  }
}

}  // namespace
}  // namespace tartan
