// SPDX-License-Identifier: Apache-2.0
// What a profile counts, beside the counters of NVIDIA's profiler on an H200 (tests/data/profile).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/emulator/profile/requests.h"
#include "runtime/emulator/schedules/exploration.h"
#include "tartan/runtime/device.h"
#include "tartan/support/source.h"

namespace tartan {
namespace {

const std::string folder = TEST_DATA "/profile/";

struct Launched {
  Device device;
  Report report;
};

Launched launch(const std::string& ptx, const std::string& name, unsigned threads,
                DeviceOptions options) {
  options.profile = true;
  Device device = *Device::open("emulator", options);
  const Module module = *device.load(ptx);
  const Buffer buffer = *device.allocate(16384);
  auto kernel = *module.kernel(name);
  const Status status = kernel.launch({.grid = {1}, .block = {threads}}, Arguments().add(buffer));
  EXPECT_TRUE(status) << status.diags().text();
  return {device, device.report()};
}

std::string patterns() { return std::string(read_source(folder + "patterns.ptx")->text()); }

TEST(Profile, CountsWhatNvidiasProfilerCounts) {
  const auto recorded = nlohmann::json::parse(std::ifstream(folder + "patterns.json"));
  const std::string ptx = patterns();
  ASSERT_GE(recorded.size(), 170u);
  for (const auto& [name, counts] : recorded.items()) {
    const Report report = launch(ptx, name, 32, {}).report;
    std::uint64_t wavefronts = 0, conflicts = 0, sectors = 0, requests = 0;
    for (const InstructionProfile& each : report.instructions) {
      wavefronts += each.shared.wavefronts;
      conflicts += each.shared.conflicts();
      sectors += each.global.sectors;
      requests += each.global.requests;
    }
    const auto both = [&](const char* what) {
      return counts.at(fmt::format("{}_ld", what)).get<std::uint64_t>() +
             counts.at(fmt::format("{}_st", what)).get<std::uint64_t>();
    };
    EXPECT_EQ(wavefronts, both("shared")) << name;
    EXPECT_EQ(conflicts, both("conflicts")) << name;
    EXPECT_EQ(sectors, both("sectors")) << name;
    EXPECT_EQ(requests, both("requests")) << name;
  }
}

const InstructionProfile* find(const Report& report, std::string_view opcode) {
  for (const InstructionProfile& each : report.instructions)
    if (each.opcode.starts_with(opcode)) return &each;
  return nullptr;
}

TEST(Profile, NamesTheCure) {
  const auto cures = [](const char* kernel, const char* opcode) {
    const Report report = launch(patterns(), kernel, 32, {}).report;
    return find(report, opcode)->shared.cures;
  };
  using Cures = std::vector<std::string>;
  EXPECT_EQ(cures("ldmatrix_x4_128", "ldmatrix"), Cures{"128-byte swizzle"});
  EXPECT_EQ(cures("ldmatrix_x4_64", "ldmatrix"), Cures{"64-byte swizzle"});
  EXPECT_EQ(cures("ldmatrix_x4_32", "ldmatrix"), Cures{"32-byte swizzle"});
  EXPECT_EQ(cures("ld_b32_128", "ld.volatile"), Cures{"rows of 128 bytes padded to 132"});
  EXPECT_EQ(cures("ldmatrix_x4_144", "ldmatrix"), Cures{});
}

TEST(Profile, ShowsTheBanksOfTheWorstRequest) {
  const Report report = launch(patterns(), "ldmatrix_x4_64", 32, {}).report;
  const SharedAccesses& shared = find(report, "ldmatrix")->shared;
  EXPECT_EQ(shared.worst_wavefronts, 16u);
  EXPECT_EQ(shared.worst_minimum, 4u);
  std::vector<std::uint8_t> banks(32, 0);
  for (const std::size_t first : {0, 16})
    std::fill_n(banks.begin() + static_cast<std::ptrdiff_t>(first), 4, std::uint8_t{4});
  EXPECT_EQ(shared.worst_banks, banks);
}

TEST(Profile, RecordsWhoAccessesWhatInWhichPhase) {
  std::vector<emulator::RecordedRequest> requests;
  {
    emulator::RequestRecorder recorder;
    const auto exploration = std::make_shared<detail::Exploration>();
    exploration->requests = &recorder;
    launch(patterns(), "ldmatrix_x4_64", 32, {.exploration = exploration});
    requests = recorder.requests();
    ASSERT_FALSE(recorder.variables().empty());
    EXPECT_EQ(recorder.variables().begin()->second, 0u);
  }
  const auto rows = std::ranges::find_if(
      requests, [](const auto& each) { return each.request.bytes == 16 && !each.request.load; });
  ASSERT_NE(rows, requests.end());
  EXPECT_EQ(emulator::phases(rows->request),
            (std::vector<std::uint32_t>{0xFF, 0xFF00, 0xFF0000, 0xFF000000}));
  for (std::size_t lane = 1; lane < 32; ++lane)
    EXPECT_EQ(rows->request.at[lane] - rows->request.at[lane - 1], 64u) << lane;
  EXPECT_LT(rows->request.at[31], 232448u);
}

// Half of the lanes of each warp go another way and meet again at a vote, which counts once.
constexpr const char* divergent = R"(
.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 out)
{
  .reg .pred %p, %q;
  .reg .b32 %r<4>;
  mov.u32 %r0, %laneid;
  setp.lt.u32 %p, %r0, 16;
  @%p bra LOW;
  add.u32 %r1, %r0, 1;
  bra MEET;
LOW:
  mul.lo.u32 %r1, %r0, 3;
MEET:
  setp.gt.u32 %q, %r1, 20;
  vote.sync.ballot.b32 %r2, %q, 0xffffffff;
  ret;
}
)";

TEST(Profile, CountsDivergenceAndCollectivesOnce) {
  for (const Checks checks : {Checks::none, Checks::all}) {
    const Report report = launch(divergent, "kernel", 64, {.checks = checks}).report;
    const InstructionProfile& mul = *find(report, "mul.lo");
    EXPECT_EQ(mul.executions, 2u);
    EXPECT_EQ(mul.lanes, 32u);
    EXPECT_EQ(mul.diverged, 2u);
    const InstructionProfile& vote = *find(report, "vote");
    EXPECT_EQ(vote.executions, 2u);
    EXPECT_EQ(vote.lanes, 64u);
    EXPECT_EQ(vote.line, 18);
  }
}

TEST(Profile, AddsLaunchesOfOneKernel) {
  Device device = *Device::open("emulator", {.profile = true});
  const Module module = *device.load(divergent);
  const Buffer buffer = *device.allocate(64);
  auto kernel = *module.kernel("kernel");
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(kernel.launch({.grid = {5}, .block = {32}}, Arguments().add(buffer)));
  EXPECT_EQ(find(device.report(), "vote")->executions, 15u);
}

TEST(Profile, IsEmptyUnlessAskedFor) {
  Device device = *Device::open("emulator");
  const Module module = *device.load(divergent);
  const Buffer buffer = *device.allocate(64);
  ASSERT_TRUE(
      module.kernel("kernel")->launch({.grid = {1}, .block = {32}}, Arguments().add(buffer)));
  EXPECT_TRUE(device.report().instructions.empty());
}

}  // namespace
}  // namespace tartan
