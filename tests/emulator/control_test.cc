// SPDX-License-Identifier: Apache-2.0
// The emulator's control flow: divergence, collectives, barriers, calls, and errors that stop a
// kernel.
#include <algorithm>

#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using test::line_of;
using test::run_body;
using test::run_text;

TEST(EmulatorControl, BranchesDivergeAndMeetAgain) {
  const auto run = run_body(R"(
    and.b32 r1, r0, 1;
    setp.eq.s32 p, r1, 0;
    @p bra EVEN;
    mul.lo.s32 r2, r0, 10;
    bra JOIN;
  EVEN:
    add.s32 r2, r0, 1000;
  JOIN:
    activemask.b32 r3;
    popc.b32 r3, r3;
    mad.lo.s32 r2, r3, 10000, r2;
    st.global.u32 [rd1], r2;)");
  ASSERT_TRUE(run.launched) << run.complaint;
  for (std::uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(run.out[i], 32 * 10000 + (i % 2 ? i * 10 : i + 1000)) << i;
}

TEST(EmulatorControl, TripCountsDifferBetweenLanes) {
  const auto run = run_body(R"(
    mov.u32 r2, 0;
    mov.u32 r3, 0;
  LOOP:
    setp.ge.u32 p, r3, r0;
    @p bra DONE;
    add.u32 r2, r2, r3;
    add.u32 r3, r3, 1;
    bra LOOP;
  DONE:
    st.global.u32 [rd1], r2;)");
  ASSERT_TRUE(run.launched) << run.complaint;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i * (i - 1) / 2) << i;
}

// Every lane takes the lock once: a lane spins while another lane of its warp holds it.
TEST(EmulatorControl, LanesThatSpinOnEachOtherMakeProgress) {
  const auto run = run_body(R"(
  LOCK:
    atom.global.cas.b32 r1, [rd0], 0, 1;
    setp.ne.s32 p, r1, 0;
    @p bra LOCK;
    ld.volatile.global.u32 r2, [rd0+4];
    add.u32 r2, r2, 1;
    st.volatile.global.u32 [rd0+4], r2;
    membar.gl;
    atom.global.exch.b32 r3, [rd0], 0;)",
                            {.grid = {3}, .block = {64}}, 1024, {.max_steps = 100'000'000});
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  EXPECT_EQ(run.out[1], 192u);
}

// Block 0 waits for block 40, with fewer host threads than blocks.
TEST(EmulatorControl, BlocksThatWaitForLaterBlocksMakeProgress) {
  const auto run = run_body(R"(
    mov.u32 r1, %ctaid.x;
    setp.ne.u32 p, r1, 20;
    @p bra WAIT;
    st.global.u32 [rd0+256], 7;
    ret;
  WAIT:
    ld.acquire.gpu.global.u32 r2, [rd0+256];
    setp.eq.u32 p, r2, 0;
    @p bra WAIT;
    st.global.u32 [rd1], r2;)",
                            {.grid = {24}, .block = {32}}, 1024, {.threads = 1});
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  EXPECT_EQ(run.out[0], 7u);
}

TEST(EmulatorControl, ShufflesInDivergedCodeTakeTheirMembersOnly) {
  const auto run = run_body(R"(
    setp.lt.u32 p, r0, 16;
    @p bra LOW;
    shfl.sync.idx.b32 r2, r0, 20, 31, 0xffff0000;
    bra JOIN;
  LOW:
    shfl.sync.idx.b32 r2, r0, 5, 31, 0x0000ffff;
  JOIN:
    shfl.sync.bfly.b32 r3, r2, 16, 31, -1;
    mad.lo.s32 r2, r2, 100, r3;
    st.global.u32 [rd1], r2;)");
  ASSERT_TRUE(run.launched) << run.complaint;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i < 16 ? 520u : 2005u) << i;
}

TEST(EmulatorControl, BarriersSeparatePhases) {
  const auto run =
      run_body(R"(
    mov.u32 r1, tile;
    shl.b32 r2, r0, 2;
    add.u32 r2, r1, r2;
    st.shared.u32 [r2], r0;
    bar.sync 0;
    xor.b32 r3, r0, 127;
    shl.b32 r3, r3, 2;
    add.u32 r3, r1, r3;
    ld.shared.u32 r4, [r3];
    bar.red.popc.u32 r5, 1, p;
    setp.lt.u32 p, r0, 50;
    bar.red.popc.u32 r5, 1, p;
    mad.lo.u32 r4, r5, 1000, r4;
    st.global.u32 [rd1], r4;)",
               {.grid = {1}, .block = {128}}, 1024, {}, ".shared .align 4 .b8 tile[512];");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(run.out[i], 50'000 + (i ^ 127)) << i;
}

// Warp 0 produces, warp 1 consumes, through a pair of barriers of 64 threads.
TEST(EmulatorControl, NamedBarriersWithCountsJoinSomeWarps) {
  const auto run =
      run_body(R"(
    mov.u32 r1, tile;
    shr.u32 r2, r0, 5;
    setp.eq.u32 p, r2, 0;
    @p bra PRODUCE;
    setp.eq.u32 p, r2, 1;
    @p bra CONSUME;
    ret;
  PRODUCE:
    shl.b32 r3, r0, 2;
    add.u32 r3, r1, r3;
    add.u32 r4, r0, 500;
    st.shared.u32 [r3], r4;
    bar.arrive 3, 64;
    ret;
  CONSUME:
    bar.sync 3, 64;
    shl.b32 r3, r0, 2;
    add.u32 r3, r1, r3;
    ld.shared.u32 r4, [r3+-128];
    st.global.u32 [rd1], r4;)",
               {.grid = {1}, .block = {96}}, 1024, {}, ".shared .align 4 .b8 tile[128];");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[32 + i], 500 + i);
}

TEST(EmulatorControl, ACollectiveThatSomeLanesNeverReachIsAFinding) {
  const std::string body = R"(
    setp.lt.u32 p, r0, 4;
    @p bra OTHER;
    bar.warp.sync -1;
    ret;
  OTHER:
    shfl.sync.idx.b32 r2, r0, 5, 31, -1;)";
  const auto run = run_body(body);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "divergent-collective");
  const int line = run.findings[0].line;
  EXPECT_TRUE(line == line_of(body, "bar.warp.sync") || line == line_of(body, "shfl.sync")) << line;
}

TEST(EmulatorControl, LanesThatExitedAreNotWaitedFor) {
  const auto run = run_body(R"(
    setp.lt.u32 p, r0, 4;
    @p exit;
    bar.warp.sync -1;
    bar.sync 0;
    st.global.u32 [rd1], 9;)");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i < 4 ? 0u : 9u);
}

TEST(EmulatorControl, ABarrierThatNeverFillsIsADeadlock) {
  const std::string body = R"(
    setp.lt.u32 p, r0, 32;
    @p bra FIRST;
    bar.sync 1, 96;
    ret;
  FIRST:
    bar.sync 2, 64;)";
  const auto run = run_body(body, {.grid = {1}, .block = {64}});
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "barrier-deadlock");
  EXPECT_EQ(run.findings[0].line, line_of(body, "bar.sync 2"));
}

TEST(EmulatorControl, EndlessLoopsStopAtTheStepLimit) {
  const auto run = run_body("L: bra L;", {.grid = {1}, .block = {32}}, 1024, {.max_steps = 10'000});
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "step-limit");
  EXPECT_EQ(run.report.warp_instructions, 10'000u);
}

TEST(EmulatorControl, TrapsAreFindingsWithTheirPlace) {
  const std::string body = R"(
    .loc 1 42 3
    setp.eq.u32 p, r0, 45;
    @p trap;)";
  const auto run = run_body(body, {.grid = {2}, .block = {64}}, 1024, {}, ".file 1 \"gemm.cc\"");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "trap");
  EXPECT_EQ(run.findings[0].lane, 45);
  EXPECT_EQ(run.findings[0].block, (Dim3{0, 0, 0}));
  EXPECT_EQ(run.findings[0].source, "gemm.cc:42");
  EXPECT_EQ(run.findings[0].line, line_of(body, "@p trap", ".file 1 \"gemm.cc\""));
}

TEST(EmulatorControl, FunctionsHaveParametersAndResults) {
  const std::string functions = R"(
.func (.param .b32 result) square_plus(.param .b32 x, .param .b32 y)
{
  .reg .b32 r<4>;
  ld.param.b32 r0, [x];
  ld.param.b32 r1, [y];
  mad.lo.s32 r2, r0, r0, r1;
  st.param.b32 [result], r2;
  ret;
}
.func (.reg .b32 out) pick(.reg .b32 x)
{
  .reg .pred p;
  setp.lt.u32 p, x, 8;
  @p bra SMALL;
  mov.u32 out, 1;
  ret;
SMALL:
  mov.u32 out, 2;
  ret;
}
)";
  const auto run = run_body(R"(
    {
      .param .b32 a;
      .param .b32 b;
      .param .b32 c;
      st.param.b32 [a], r0;
      st.param.b32 [b], 5;
      call.uni (c), square_plus, (a, b);
      ld.param.b32 r2, [c];
    }
    setp.lt.u32 p, r0, 16;
    mov.u32 r3, 0;
    @p call (r3), pick, (r0);
    mad.lo.u32 r2, r3, 10000, r2;
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {32}}, 1024, {}, functions);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(run.out[i], i * i + 5 + (i < 8 ? 20000 : i < 16 ? 10000 : 0)) << i;
}

TEST(EmulatorControl, BranchTablesReachEveryTarget) {
  const auto run = run_body(R"(
    rem.u32 r1, r0, 3;
    T: .branchtargets A, B, C;
    brx.idx r1, T;
  A: mov.u32 r2, 10; bra E;
  B: mov.u32 r2, 20; bra E;
  C: mov.u32 r2, 30;
  E: st.global.u32 [rd1], r2;)");
  ASSERT_TRUE(run.launched) << run.complaint;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], 10 * (i % 3 + 1)) << i;
}

// L<3> declares L0, L1 and L2; the two tables are independent.
TEST(EmulatorControl, BranchTablesOfNumberedLabels) {
  const auto run = run_body(R"(
    rem.u32 r1, r0, 4;
    setp.lt.u32 p, r0, 16;
    T: .branchtargets L<3>, E;
    BACK: .branchtargets E, L2, L<2>;
    mov.u32 r2, 40;
    @p brx.idx r1, T;
    brx.idx r1, BACK;
  L0: mov.u32 r2, 10; bra E;
  L1: mov.u32 r2, 20; bra E;
  L2: mov.u32 r2, 30;
  E: st.global.u32 [rd1], r2;)");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  constexpr std::uint32_t first[] = {10, 20, 30, 40}, back[] = {40, 30, 10, 20};
  for (std::uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(run.out[i], i < 16 ? first[i % 4] : back[i % 4]) << i;
}

TEST(EmulatorControl, UnknownInstructionsAreReportedWithTheKernelThatHasThem) {
  const std::string other =
      ".visible .entry other()\n{\n.reg .b32 x;\nfrobnicate.b32 x, x;\nadd.bogus.s32 x, x, "
      "1;\nret;\n}\n";
  const auto good =
      run_body("st.global.u32 [rd1], 1;", {.grid = {1}, .block = {32}}, 64, {}, other);
  EXPECT_TRUE(good.launched) << good.complaint;
  auto engine = emulator::make_engine({});
  auto module = (*engine)->load(test::kernel_text("", other), "test.ptx");
  ASSERT_TRUE(module);
  const auto kernel = (*module)->kernel("other");
  ASSERT_FALSE(kernel);
  ASSERT_EQ(kernel.diags().size(), 2u);
  EXPECT_EQ(kernel.diags()[0].id, "unsupported-instruction");
  EXPECT_NE(kernel.diags()[0].message.find("frobnicate.b32"), std::string::npos);
  EXPECT_EQ(kernel.diags()[0].place.line, 7);
  EXPECT_NE(kernel.diags()[1].message.find("bogus"), std::string::npos);
}

TEST(EmulatorControl, ReportCountsInstructionsAndLanes) {
  const auto run = run_body("setp.lt.u32 p, r0, 8;\n@p add.u32 r1, r1, 1;");
  ASSERT_TRUE(run.launched) << run.complaint;
  EXPECT_EQ(run.report.warp_instructions, 7u);
  EXPECT_EQ(run.report.lane_instructions, 6u * 32 + 8);
}

}  // namespace
}  // namespace tartan
