// SPDX-License-Identifier: Apache-2.0
// The emulator as a device: launches from several host threads, and how far its numbers can be
// trusted.
#include <gtest/gtest.h>

#include <thread>

#include "tests/emulator_kernel.h"

namespace tartan::test {
namespace {

// ---- Several host threads on one device.

TEST(EmulatorDevice, LaunchesFromSeveralHostThreads) {
  constexpr int host_threads = 4, rounds = 20;
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  auto module = (*engine)->load(
      kernel_text("mov.u32 r2, %ctaid.x;\nmad.lo.u32 r3, r2, 64, r0;\nmul.wide.u32 rd2, r3, "
                  "4;\nadd.s64 rd2, rd2, rd0;\nst.global.u32 [rd2], r3;"),
      "test.ptx");
  ASSERT_TRUE(module);
  std::vector<int> wrong(host_threads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < host_threads; ++t)
      threads.emplace_back([&, t] {
        for (int round = 0; round < rounds; ++round) {
          const auto kernel = (*module)->kernel("k");
          const auto buffer = (*engine)->allocate(8 * 64 * 4);
          const bool launched = kernel && (*kernel)->launch({.grid = {8}, .block = {64}},
                                                            Arguments().add(*buffer), nullptr);
          std::vector<std::uint32_t> out(8 * 64);
          const bool read =
              launched && (*engine)->read(*buffer, std::as_writable_bytes(std::span(out)));
          for (std::uint32_t i = 0; i < out.size(); ++i)
            wrong[static_cast<std::size_t>(t)] += !read || out[i] != i;
          (*engine)->free(*buffer);
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(host_threads, 0));
  // A warp of every launch ends with the same count: no launch is missing, none is there twice.
  const std::uint64_t all = (*engine)->report().warp_instructions;
  EXPECT_EQ(all % (host_threads * rounds * 8 * 2), 0u) << all;
  EXPECT_GT(all, 0u);
  EXPECT_TRUE((*engine)->findings().empty());
}

TEST(EmulatorDevice, EveryThreadsFindingsAreKept) {
  auto engine = emulator::make_engine({});
  auto module = (*engine)->load(kernel_text("trap;"), "test.ptx");
  ASSERT_TRUE(module);
  const auto kernel = *(*module)->kernel("k");
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int round = 0; round < 10; ++round)
          EXPECT_TRUE(kernel->launch({}, Arguments().add(std::uint64_t{0}), nullptr));
      });
  }
  EXPECT_EQ((*engine)->findings().size(), 40u);
  const Status status = (*engine)->synchronize();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.diags().size(), 40u);
  EXPECT_TRUE((*engine)->synchronize()) << "said once";
}

// Whatever waits for work on a GPU says what failed.
TEST(EmulatorDevice, EveryUseOfMemoryReportsFailures) {
  auto engine = emulator::make_engine({});
  auto module = (*engine)->load(kernel_text("trap;"), "test.ptx");
  ASSERT_TRUE(module);
  const auto kernel = *(*module)->kernel("k");
  const std::uint64_t buffer = *(*engine)->allocate(4);
  std::vector<std::byte> bytes(4);
  const auto fails = [&](auto&& use) {
    EXPECT_TRUE(kernel->launch({}, Arguments().add(buffer), nullptr));
    const Status status = use();
    EXPECT_TRUE(use()) << "said once";
    return !status && status.diags()[0].id == "trap";
  };
  EXPECT_TRUE(fails([&] { return (*engine)->read(buffer, bytes); }));
  EXPECT_TRUE(fails([&] { return (*engine)->write(buffer, bytes); }));
  EXPECT_TRUE(fails([&] { return (*engine)->fill(buffer, 4, 1); }));
  EXPECT_TRUE(fails([&] { return (*engine)->synchronize(); }));
}

TEST(EmulatorDevice, EventsThatWereNotRecorded) {
  auto engine = emulator::make_engine({});
  const auto start = *(*engine)->event(), end = *(*engine)->event();
  EXPECT_FALSE(end->milliseconds_since(*start));
  ASSERT_TRUE(end->record(nullptr));
  const auto half = end->milliseconds_since(*start);
  ASSERT_FALSE(half);
  EXPECT_EQ(half.diags()[0].message,
            "the event at the start was not recorded: call record() first");
  ASSERT_TRUE(start->record(nullptr));
  EXPECT_TRUE(end->milliseconds_since(*start));
}

// ---- Trust.

NumericTrust trust_of(const std::string& body, const std::string& hardware) {
  const KernelRun run = run_body(".reg .f64 g<8>;\n" + body, {.grid = {1}, .block = {32}}, 32,
                                 {.hardware = hardware});
  EXPECT_EQ(run.complaint, "");
  return run.report.trust;
}

TEST(EmulatorTrust, IsThatOfTheLeastKnownInstruction) {
  const std::string half =
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0, f1, f2, f3}, {r1, r2, r3, r4}, {r5, "
      "r6}, {f0, f1, f2, f3};\n";
  const std::string power = "ex2.approx.f32 f1, f2;\n";
  EXPECT_EQ(trust_of("add.f32 f1, f2, f3;", "sm_90").level, "");
  EXPECT_EQ(trust_of(half, "sm_90").level, "recorded");
  EXPECT_EQ(trust_of(half, "sm_80").level, "measured");
  EXPECT_EQ(trust_of(half, "sm_75").level, "assumed");
  EXPECT_EQ(trust_of(half + power, "sm_90").level, "documented");
  EXPECT_EQ(trust_of(power + half, "sm_90").instruction, "ex2.approx.f32");
  EXPECT_EQ(trust_of(power + half, "sm_75").instruction.substr(0, 25), half.substr(0, 25));
  EXPECT_FALSE(trust_of(power, "sm_90").source.empty());
}

// mma on f64 was recorded in two of the four roundings.
TEST(EmulatorTrust, ClaimsNoMoreThanWasRecorded) {
  const auto level = [](const std::string& rounding) {
    return trust_of("mma.sync.aligned.m8n8k4.row.col" + rounding +
                        ".f64.f64.f64.f64 {g0, g1}, {g2}, {g3}, {g0, g1};",
                    "sm_90")
        .level;
  };
  EXPECT_EQ(level(""), "recorded");
  EXPECT_EQ(level(".rz"), "recorded");
  EXPECT_EQ(level(".rm"), "documented");
  EXPECT_EQ(level(".rp"), "documented");
}

}  // namespace
}  // namespace tartan::test
