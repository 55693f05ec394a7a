// SPDX-License-Identifier: Apache-2.0
// The emulator as a device: launches from several host threads, and the trust in its results.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tartan/runtime/device.h"
#include "tests/emulator/kernel.h"
#include "tests/support/device_features.h"

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
  // Each launch adds the same count: none is missing, none counts twice.
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

// Every call that waits for work reports its errors.
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
  EXPECT_EQ(half.diags()[0].message, "the start event was not recorded: call record() first");
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

TEST(EmulatorTrust, IsThatOfTheLeastTrustedInstruction) {
  const auto product = [](const std::string& type) {
    return "mma.sync.aligned.m16n8k16.row.col.f32." + type + "." + type +
           ".f32 {f0, f1, f2, f3}, {r1, r2, r3, r4}, {r5, r6}, {f0, f1, f2, f3};\n";
  };
  const std::string half = product("f16"), brain = product("bf16");
  const std::string power = "ex2.approx.f32 f1, f2;\n";
  EXPECT_EQ(trust_of("add.f32 f1, f2, f3;", "sm_90").level, "");
  EXPECT_EQ(trust_of(half, "sm_90").level, "recorded");
  EXPECT_EQ(trust_of(half, "sm_80").level, "partly recorded");
  EXPECT_EQ(trust_of(half, "sm_75").level, "measured");
  EXPECT_EQ(trust_of(brain, "sm_75").level, "assumed");
  EXPECT_EQ(trust_of(half + power, "sm_90").level, "documented");
  EXPECT_EQ(trust_of(power + half, "sm_90").instruction, "ex2.approx.f32");
  EXPECT_EQ(trust_of(half + power, "sm_80").level, "documented");
  EXPECT_EQ(trust_of(brain + half + power, "sm_75").level, "assumed");
  EXPECT_EQ(trust_of(power + brain, "sm_75").instruction.substr(0, 25), brain.substr(0, 25));
  EXPECT_FALSE(trust_of(power, "sm_90").source.empty());
}

// Only two of the four roundings of mma on f64 were recorded.
TEST(EmulatorTrust, IsRecordedOnlyForRecordedRoundings) {
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

// ---- Variables, and errors in code that does not run.

TEST(EmulatorDevice, VariablesAreBuffers) {
  auto device = Device::open("emulator");
  ASSERT_TRUE(device);
  expect_variables_are_buffers(*device);
}

TEST(EmulatorDevice, UnsupportedInstructionsInOtherKernelsWarn) {
  const std::string elsewhere = R"(
.func unused(.param .b64 at) { .reg .b32 r<4>; .reg .b64 a; ld.param.b64 a, [at];
  multimem.red.relaxed.sys.global.add.u32 [a], r1; ret; }
.func used() { ret; }
.visible .entry other() { .reg .b32 r<4>; .reg .f32 f<8>; .reg .b64 a;
  tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [a, {f4, f5}]; call used; ret; }
)";
  auto device = Device::open("emulator");
  auto module = device->load(kernel_text("call used;\nst.global.u32 [rd1], r0;", elsewhere));
  ASSERT_TRUE(module) << module.diags().text();
  EXPECT_TRUE(module->kernel("k"));
  EXPECT_FALSE(module->kernel("other"));
  std::vector<std::string> texts;
  for (const Diag& diag : module->warnings()) {
    EXPECT_EQ(diag.level, Level::Warning);
    EXPECT_EQ(diag.id, "unsupported-instruction");
    texts.push_back(std::to_string(diag.place.line) + diag.message.substr(0, 36));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"6multimem addresses (memory of severa",
                                             "9textures and samplers are not emulat"}));
}

// ---- Cooperative launches and limits of time.

TEST(EmulatorDevice, BlocksOfACooperativeLaunchMeet) {
  auto device = Device::open("emulator", {.threads = 2});
  ASSERT_TRUE(device);
  expect_blocks_meet(*device);
  // Without the workspace the counter's address is invalid.
  auto module = device->load(meeting_kernel(), "meeting.ptx");
  auto out = device->allocate(4 * meeting_blocks * meeting_threads);
  ASSERT_TRUE(module->kernel("meet")->launch({.grid = {meeting_blocks}, .block = {meeting_threads}},
                                             Arguments().add(*out)));
  EXPECT_FALSE(device->synchronize());
  ASSERT_EQ(device->findings().size(), 1u);
  EXPECT_EQ(device->findings()[0].id, "memory-fault");
}

TEST(EmulatorDevice, CooperativeGridsFitTheHardware) {
  Launch launch{.grid = {132 * 32}, .block = {64}, .cooperative = true};
  EXPECT_TRUE(run_body("", launch, 64).launched);
  ++launch.grid.x;
  EXPECT_EQ(run_body("", launch, 64).complaint,
            "error: cooperative grid of 4225 blocks too large: sm_90 with its 132 multiprocessors "
            "holds 4224 blocks of kernel k at a time [launch-arguments]\n");
  launch = {.grid = {133}, .block = {64}, .dynamic_shared = 120'000, .cooperative = true};
  EXPECT_FALSE(run_body("", launch, 64).launched);
  launch.cooperative = false;
  EXPECT_TRUE(run_body("", launch, 64).launched);
}

TEST(EmulatorDevice, LoadsTextWithItsTerminator) {
  Device device = *Device::open("emulator");
  const std::string text = kernel_text("");
  EXPECT_TRUE(device.load(text + '\0'));
  EXPECT_FALSE(device.load(text + std::string(2, '\0')));
  EXPECT_FALSE(device.load(text + std::string("\0 no PTX", 8)));
}

TEST(EmulatorDevice, LaunchesEndWhenTheirTimeIsUp) {
  const std::string forever = "AGAIN:\nadd.u32 r1, r1, 1;\nbra AGAIN;";
  const auto begin = std::chrono::steady_clock::now();
  const auto run = run_body(forever, {.grid = {100}, .block = {128}}, 1024,
                            {.max_steps = ~std::uint64_t{0}, .timeout = 0.1});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "time-limit");
  EXPECT_GE(run.findings[0].line, line_of(forever, "add.u32 r1"));
  EXPECT_TRUE(
      run_body("st.global.u32 [rd1], r0;", {.grid = {1}, .block = {32}}, 32, {.timeout = 1000})
          .findings.empty());
}

}  // namespace
}  // namespace tartan::test
