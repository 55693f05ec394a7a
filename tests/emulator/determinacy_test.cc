// SPDX-License-Identifier: Apache-2.0
// Which launches one run decides: what orders phases, blocks and commutes does, and for each reason
// to say no there is a kernel that has it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/emulator/schedules/exploration.h"
#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const std::string shared =
    ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 full;\n"
    ".shared .align 8 .b64 empty;\n.global .align 128 .u32 data[256];\n";

std::vector<std::string> obstacles(const std::string& body, const Launch& launch) {
  const auto exploration = std::make_shared<detail::Exploration>();
  exploration->proves = true;
  const KernelRun run =
      run_body(body, launch, 1024, {.exploration = exploration, .checks = Checks::all}, shared);
  EXPECT_EQ(run.complaint, "") << body;
  EXPECT_TRUE(run.findings.empty()) << run.findings[0].message << body;
  std::vector<std::string> out;
  for (const detail::Obstacle& each : exploration->obstacles) out.push_back(each.text);
  return out;
}

void expect_decided(const std::string& body, const Launch& launch = {.block = {64}}) {
  const auto found = obstacles(body, launch);
  EXPECT_TRUE(found.empty()) << found[0] << body;
}

void expect_obstacle(const std::string& why, const std::string& body,
                     const Launch& launch = {.block = {64}}) {
  const auto found = obstacles(body, launch);
  EXPECT_TRUE(std::ranges::any_of(
      found, [&](const std::string& each) { return each.find(why) != std::string::npos; }))
      << fmt::format("{}", fmt::join(found, "\n")) << body;
}

const std::string init = R"(
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [full], 1;
mbarrier.init.shared::cta.b64 [empty], 1;
READY:
bar.sync 0;
mov.u32 r10, 0;
mov.u32 r11, 0;
setp.ge.u32 q, r0, 32;
@q bra CONSUMER;
)";

std::string wait_for(const std::string& mbarrier, const std::string& parity) {
  return "WAIT_" + mbarrier + ":\nmbarrier.try_wait.parity.shared::cta.b64 p, [" + mbarrier +
         "], " + parity + ";\n@!p bra WAIT_" + mbarrier + ";\n";
}

// Warp 0 fills a word three times, warp 1 reads it. `producers` and `consumers`: the lanes of the
// two that take part; `between`: what all consumers do between their wait and the arrival of one.
std::string ring(const std::string& between, int producers = 1) {
  return init + "setp.ge.u32 q, r0, " + std::to_string(producers) + R"(;
@q bra END;
PRODUCE:
xor.b32 r12, r11, 1;
)" + wait_for("empty", "r12") +
         R"(
setp.ne.u32 q, r0, 0;
@q bra FILLED;
st.shared.u32 [tile], r10;
mbarrier.arrive.shared::cta.b64 _, [full];
FILLED:
xor.b32 r11, r11, 1;
add.u32 r10, r10, 1;
setp.lt.u32 q, r10, 3;
@q bra PRODUCE;
bra END;
CONSUMER:
)" + wait_for("full", "r11") +
         "ld.shared.u32 r5, [tile];\n" + between + R"(
setp.ne.u32 q, r0, 32;
@q bra TAKEN;
mbarrier.arrive.shared::cta.b64 _, [empty];
TAKEN:
xor.b32 r11, r11, 1;
add.u32 r10, r10, 1;
setp.lt.u32 q, r10, 3;
@q bra CONSUMER;
END:
)";
}

TEST(Determinacy, BarriersDecide) {
  expect_decided("bar.sync 0;\nbar.sync 1;\n");
  expect_decided("bar.sync 0;\nbar.sync 0;\nbar.sync 0;\n");
}

TEST(Determinacy, ARingOfOnePhaseAtATimeDecides) { expect_decided(ring("bar.warp.sync -1;\n")); }

TEST(Determinacy, LanesMayBeLate) {
  expect_obstacle("a lane may be late", ring("bar.warp.sync -1;\n", 32));
}

TEST(Determinacy, ATestThatIsAValueIsAnObstacle) {
  expect_obstacle("does something else", init + R"(
mbarrier.arrive.shared::cta.b64 _, [full];
CONSUMER:
setp.lt.u32 q, r0, 32;
@q bra END;
mbarrier.test_wait.parity.shared::cta.b64 p, [full], 0;
selp.u32 r5, 1, 2, p;
st.global.u32 [rd1], r5;
END:
)",
                  {.block = {64}});
}

TEST(Determinacy, AtomicsThatNobodyReadsCommute) {
  expect_decided("red.global.add.u32 [data], 1;\n", {.grid = {2}, .block = {64}});
  expect_decided("atom.global.add.u32 r5, [data], 1;\n", {.grid = {2}, .block = {64}});
  expect_obstacle("threads communicate",
                  "atom.global.add.u32 r5, [data], 1;\nst.global.u32 [rd1], r5;\n");
  expect_obstacle("threads communicate",
                  "red.global.add.u32 [data], 1;\nred.global.max.u32 [data], 1;\n");
}

TEST(Determinacy, StrongAccessesOfOneThreadAreItsOwn) {
  expect_decided("st.volatile.global.u32 [rd1], r0;\nld.volatile.global.u32 r5, [rd1];\n");
  expect_obstacle("threads communicate",
                  "st.relaxed.gpu.global.u32 [data], r0;\nld.relaxed.gpu.global.u32 r5, [data];\n");
}

TEST(Determinacy, ClocksAndPlacesAreObstacles) {
  expect_obstacle("%clock", "mov.u32 r5, %clock;\nst.global.u32 [rd1], r5;\n");
  expect_obstacle("%smid", "mov.u32 r5, %smid;\nst.global.u32 [rd1], r5;\n");
  expect_obstacle("activemask", "activemask.b32 r5;\nst.global.u32 [rd1], r5;\n");
}

// Warp 1 arrives at barrier 1 twice; nothing says that warp 0 has left it in between.
TEST(Determinacy, ABarrierMayBeReachedTooEarly) {
  expect_obstacle("its last use is not over", R"(
setp.ge.u32 q, r0, 32;
@q bra OTHER;
bar.sync 1, 64;
bar.sync 1, 64;
bra END;
OTHER:
bar.arrive 1, 64;
bar.arrive 1, 64;
END:
)");
}

}  // namespace
}  // namespace tartan::test
