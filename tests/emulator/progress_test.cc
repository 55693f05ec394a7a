// SPDX-License-Identifier: Apache-2.0
// Blocks and lanes that wait for each other make progress; collectives whose lanes come from
// different places of the text.
#include <gtest/gtest.h>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

// Every block waits for all of them.
TEST(EmulatorProgress, BarriersOfTheWholeGrid) {
  const std::string body = R"(
mov.u32 r1, %nctaid.x;
mov.u32 r2, %ctaid.x;
atom.global.add.u32 r3, [count], 1;
LOOP:
ld.acquire.gpu.global.u32 r4, [count];
setp.lt.u32 p, r4, r1;
@p bra LOOP;
mul.wide.u32 rd2, r2, 4;
add.u64 rd3, rd0, rd2;
st.global.u32 [rd3], r2;)";
  for (const std::uint32_t blocks : {33u, 132u})
    for (const int threads : {1, 3}) {
      const auto run = run_body(body, {.grid = {blocks}, .block = {1}}, blocks,
                                {.threads = threads}, ".global .u32 count;");
      ASSERT_TRUE(run.launched) << run.complaint;
      ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
      for (std::uint32_t i = 0; i < blocks; ++i) EXPECT_EQ(run.out[i], i);
    }
}

// Lane 31 sets the flag that the others spin for, in a loop whose lanes part and meet.
TEST(EmulatorProgress, LanesInLoopsThatDiverge) {
  const auto run =
      run_body(R"(
and.b32 r4, r0, 1;
setp.eq.u32 q, r4, 0;
setp.eq.u32 p, r0, 31;
@p bra SET;
LOOP:
@q bra SKIP;
add.u32 r5, r5, 1;
SKIP:
ld.volatile.shared.u32 r3, [flag];
setp.eq.u32 p, r3, 0;
@p bra LOOP;
bra DONE;
SET:
st.volatile.shared.u32 [flag], 1;
DONE:
st.global.u32 [rd1], r0;)",
               {.grid = {1}, .block = {32}}, 32, {.max_steps = 200'000}, ".shared .u32 flag;");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i);
}

// Odd and even lanes do `odd` and `even`, which put something into r3.
std::vector<std::uint32_t> apart(const std::string& odd, const std::string& even) {
  const auto run = run_body(
      "and.b32 r2, r0, 1;\nsetp.eq.u32 p, r2, 0;\nadd.u32 r6, r0, 100;\nmov.u32 r7, "
      "-1;\nmov.u32 r8, 31;\nmov.u32 r9, 3;\ncvt.u64.u32 rd5, r2;\n@p bra EVEN;\n" +
          odd + "\nbra DONE;\nEVEN:\n" + even + "\nDONE:\nst.global.u32 [rd1], r3;",
      {.grid = {1}, .block = {32}}, 32);
  EXPECT_TRUE(run.launched) << run.complaint;
  for (const Finding& finding : run.findings) ADD_FAILURE() << finding.message;
  return run.out;
}

TEST(EmulatorProgress, CollectivesOfSeveralPlaces) {
  EXPECT_EQ(apart("bar.warp.sync -1;\nmov.u32 r3, 1;", "bar.warp.sync r7;\nmov.u32 r3, 2;")[1], 1u);
  // Other registers in the second place, and constants in place of registers.
  const auto crossed = apart("shfl.sync.bfly.b32 r3, r0, 1, 31, -1;",
                             "shfl.sync.bfly.b32 r4, r6, r9, r8, r7;\nmov.u32 r3, r4;");
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(crossed[i], i % 2 ? (i ^ 1) + 100 : i ^ 3) << i;
  const auto voted = apart("vote.sync.ballot.b32 r3, p, -1;", "vote.sync.ballot.b32 r3, p, r7;");
  EXPECT_EQ(voted, std::vector<std::uint32_t>(32, 0x55555555));
  const auto matched = apart("match.any.sync.b64 r3, rd5, -1;", "match.any.sync.b64 r3, 1, r7;");
  EXPECT_EQ(matched, std::vector<std::uint32_t>(32, 0xFFFFFFFF));
  const auto summed = apart("redux.sync.add.u32 r3, r0, -1;", "redux.sync.add.u32 r3, 1000, -1;");
  EXPECT_EQ(summed, std::vector<std::uint32_t>(32, 256 + 16000));
  const auto elected =
      apart("elect.sync r3|q, -1;\n@q mov.u32 r3, 99;", "elect.sync r3|q, -1;\n@q mov.u32 r3, 99;");
  EXPECT_EQ(elected[0], 99u);
  EXPECT_EQ(elected[1], 0u);
}

TEST(EmulatorProgress, AnotherInstructionIsNone) {
  const auto found = [](const std::string& odd, const std::string& even) {
    const auto run = run_body("and.b32 r2, r0, 1;\nsetp.eq.u32 p, r2, 0;\n@p bra EVEN;\n" + odd +
                              "\nbra DONE;\nEVEN:\n" + even + "\nDONE:");
    return run.findings.empty() ? "" : run.findings[0].id;
  };
  EXPECT_EQ(found("shfl.sync.bfly.b32 r3, r0, 1, 31, -1;", "shfl.sync.up.b32 r3, r0, 1, 0, -1;"),
            "divergent-collective");
  EXPECT_EQ(found("bar.warp.sync 0xAAAAAAAA;", "bar.warp.sync 0x55555555;"), "");
}

// Two places of three wait when the lanes of the third exit.
TEST(EmulatorProgress, LanesThatExitWhileOthersWaitApart) {
  const auto run = run_body(R"(
setp.lt.u32 p, r0, 8;
@p bra FIRST;
setp.lt.u32 p, r0, 16;
@p bra SECOND;
mov.u32 r4, 0;
LOOP:
add.u32 r4, r4, 1;
setp.lt.u32 p, r4, 1000;
@p bra LOOP;
exit;
FIRST:
shfl.sync.idx.b32 r3, r0, 15, 31, -1;
bra DONE;
SECOND:
shfl.sync.idx.b32 r3, r0, 7, 31, -1;
DONE:
st.global.u32 [rd1], r3;)",
                            {.grid = {1}, .block = {32}}, 32);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  EXPECT_EQ(run.out[0], 15u);
  EXPECT_EQ(run.out[8], 7u);
}

// ---- Sizes.

TEST(EmulatorSizes, RoomThatThereIsNot) {
  const auto body = [](const std::string& text) {
    return run_body(text, {.grid = {1}, .block = {1}}, 1).complaint;
  };
  EXPECT_NE(body(".local .b8 a[524289];")
                .find("the local memory of a thread exceeded: at most 524288 bytes"),
            std::string::npos);
  EXPECT_NE(body(".local .b8 a[524280];\n.local .b8 b[16];").find("524280 are in use and 16 more"),
            std::string::npos);
  EXPECT_NE(body(".shared .b8 a[4294967296];").find("the shared memory of a block exceeded"),
            std::string::npos);
  EXPECT_NE(body(".shared .b8 a[4294967295];\n.shared .b8 b[2];").find("[shared-size]"),
            std::string::npos);
  EXPECT_NE(body(".shared .b8 a[300000];").find("[launch-arguments]"), std::string::npos);
  EXPECT_EQ(body(".local .b8 a[524288];"), "");
}

TEST(EmulatorSizes, ParametersThatWrap) {
  const std::string text =
      ".version 8.6\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .b8 a[2147483680], .param .b8 b[2147483680])\n{\nret;\n}\n";
  EXPECT_NE(run_text(text, {}, 1)
                .complaint.find("the parameter space of a kernel exceeded: at most 32764"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan::test
