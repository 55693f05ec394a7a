// SPDX-License-Identifier: Apache-2.0
// Waits that never end, and loops that only look like it.
#include <gtest/gtest.h>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const std::string shared = ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";

std::string deadlock(const std::string& body, Launch launch) {
  const auto run = run_body(body, launch, 128, {}, shared);
  EXPECT_EQ(run.complaint, "");
  if (run.findings.empty()) return "";
  EXPECT_EQ(run.findings[0].id, "deadlock");
  return run.findings[0].message;
}

TEST(EmulatorDeadlock, PhaseThatNobodyCompletes) {
  const std::string body = R"(
setp.ne.u32 q, r0, 0;
@q bra WAIT;
mbarrier.init.shared::cta.b64 [bar], 2;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4096;
WAIT:
bar.sync 0;
SPIN:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@p bra DONE;
bra SPIN;
DONE:
bar.sync 0;)";
  const std::string message = deadlock(body, {.grid = {1}, .block = {96}});
  EXPECT_NE(message.find("96 threads wait at line " +
                         std::to_string(line_of(body, "mbarrier.try_wait", shared)) +
                         " for the end of phase parity 0 of mbarrier 0x0"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("pending: 1 arrival, 4096 bytes"), std::string::npos) << message;
}

TEST(EmulatorDeadlock, SomeAtABarrierSomeAtAnMbarrier) {
  const std::string message = deadlock(R"(
setp.ne.u32 q, r0, 0;
@!q mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
setp.lt.u32 p, r0, 32;
@p bra SPIN;
bar.sync 1;
bra DONE;
SPIN:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
selp.u32 r5, 1, 0, p;
setp.eq.u32 q, r5, 0;
@q nanosleep.u32 20;
@q bra SPIN;
DONE:)",
                                       {.grid = {1}, .block = {64}});
  EXPECT_NE(message.find("32 threads wait at"), std::string::npos) << message;
  EXPECT_NE(message.find("of mbarrier 0x0"), std::string::npos) << message;
  EXPECT_NE(message.find("barrier 1, which has 32 threads and waits for all threads of the CTA"),
            std::string::npos)
      << message;
}

TEST(EmulatorDeadlock, BlockThatDoesNotComeToTheCluster) {
  const std::string message = deadlock(R"(
mov.u32 r2, %cluster_ctarank;
setp.ne.u32 p, r2, 0;
@p bra OTHER;
barrier.cluster.arrive;
barrier.cluster.wait;
bra DONE;
OTHER:
setp.eq.u32 q, r0, 0;
@q mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
SPIN:
mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 0;
@!p bra SPIN;
DONE:)",
                                       {.grid = {4}, .block = {64}, .cluster = {2, 1, 1}});
  EXPECT_NE(message.find("CTA 0,0,0: 64 threads wait"), std::string::npos) << message;
  EXPECT_NE(message.find("CTA 1,0,0: 64 threads wait"), std::string::npos) << message;
  EXPECT_NE(message.find("all threads of the cluster to arrive"), std::string::npos) << message;
}

// What computes from registers alone, and hints, leave everything as it is.
TEST(EmulatorDeadlock, WaitsThatComputeAndPrefetch) {
  const std::string message = deadlock(R"(
setp.eq.u32 q, r0, 0;
@q mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
SPIN:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
shf.l.wrap.b32 r5, r0, r0, 3;
popc.b32 r6, r5;
vadd4.u32.u32.u32 r7, r6, r5, r0;
mapa.shared::cluster.u32 r8, r7, 0;
prefetch.global.L2 [rd0];
@!p bra SPIN;)",
                                       {.grid = {1}, .block = {64}});
  EXPECT_NE(message.find("64 threads wait at"), std::string::npos) << message;
}

// Loops that look like waits but end on their own.
TEST(EmulatorDeadlock, PatientLoopsAreNone) {
  const std::string init =
      "setp.eq.u32 q, r0, 0;\n@q mbarrier.init.shared::cta.b64 [bar], 1;\nbar.sync 0;\n"
      "mov.u32 r5, 0;\n";
  const std::string counted = init + R"(
SPIN:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@p bra DONE;
add.u32 r5, r5, 1;
setp.lt.u32 p, r5, 5000;
@p bra SPIN;
DONE:
st.global.u32 [rd1], r5;)";
  EXPECT_EQ(deadlock(counted, {.grid = {1}, .block = {64}}), "");
  // Block 0 waits until block 1 has set a word in global memory.
  const std::string told = init + R"(
mov.u32 r6, %ctaid.x;
setp.ne.u32 p, r6, 0;
@p bra TELL;
SPIN:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@p bra DONE;
ld.volatile.global.u32 r5, [rd0+256];
setp.eq.u32 p, r5, 0;
@p bra SPIN;
bra DONE;
TELL:
add.u32 r5, r5, 1;
setp.lt.u32 p, r5, 100000;
@p bra TELL;
st.global.u32 [rd0+256], r5;
DONE:)";
  EXPECT_EQ(deadlock(told, {.grid = {2}, .block = {32}}), "");
}

// Five warps start with 128 registers a thread: what one gives up is 104.
TEST(EmulatorDeadlock, RegistersThatNobodyGivesUp) {
  const auto body = [](int wanted) {
    return "setp.ge.u32 p, r0, 128;\n@p bra GIVE;\nsetmaxnreg.inc.sync.aligned.u32 " +
           std::to_string(wanted) +
           ";\nbra DONE;\nGIVE:\nsetmaxnreg.dec.sync.aligned.u32 24;\nDONE:";
  };
  const auto run = [&](int wanted, const std::string& bounds) {
    std::string text = kernel_text(body(wanted));
    text.insert(text.find("{"), bounds + "\n");
    return run_text(text, {.grid = {1}, .block = {160}}, 128);
  };
  EXPECT_TRUE(run(152, ".maxnreg 128").findings.empty());
  EXPECT_TRUE(run(168, "").findings.empty()) << "ignored without bounds";
  EXPECT_TRUE(run(248, ".maxntid 160\n.minnctapersm 1").findings.empty());
  const auto stuck = run(160, ".maxnreg 128");
  ASSERT_EQ(stuck.findings.size(), 1U);
  EXPECT_EQ(stuck.findings[0].id, "deadlock");
  EXPECT_EQ(stuck.findings[0].message,
            "waits for 160 registers per thread: it has 128, and of the CTA's 160 x 128 registers "
            "256 are free");
  EXPECT_TRUE(run(120, ".maxnreg 128").findings.empty()) << "they start with 120";
}

}  // namespace
}  // namespace tartan::test
