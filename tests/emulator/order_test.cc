// SPDX-License-Identifier: Apache-2.0
// What orders two copies, and what does not: the second fills the box of the first.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const std::string shared =
    ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 done;\n"
    ".shared .align 4 .u32 flag;\n";

const std::string init = R"(
mov.u32 r1, bar;
mov.u32 r2, done;
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.init.shared::cta.b64 [done], 1;
READY:
bar.sync 0;
)";

std::string copy(const std::string& barrier, int from = 0) {
  return fmt::format(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{0}], 128;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [rd0+{1}], 128, "
      "[{0}];\n",
      barrier, from);
}

// The first thread of warp 0 copies, does `first`; that of warp 1 does `second`, copies.
KernelRun two_copies(const std::string& first, const std::string& second) {
  const std::string body = init + R"(
and.b32 r3, r0, 31;
setp.ne.u32 q, r3, 0;
@q bra END;
setp.eq.u32 q, r0, 32;
@q bra OTHER;
)" + copy("bar") + first + "bra END;\nOTHER:\n" +
                           second + copy("done", 128) + wait("done", "LAST") + "END:\n";
  return run_body(body, {.grid = {1}, .block = {64}}, 128, {}, shared);
}

std::string complaint(const std::string& first, const std::string& second) {
  const KernelRun run = two_copies(first, second);
  EXPECT_EQ(run.complaint, "");
  return run.findings.empty() ? "" : run.findings[0].message + " [" + run.findings[0].id + "]";
}

TEST(EmulatorOrder, WhatOrdersTwoCopies) {
  EXPECT_EQ(complaint("", wait("bar", "SPIN")), "");
  // The one who waited says so: by an mbarrier, a barrier of the block, a flag in memory.
  EXPECT_EQ(complaint(wait("bar", "SPIN") + "bar.arrive 1, 64;\n", "bar.sync 1, 64;\n"), "");
  EXPECT_EQ(complaint(wait("bar", "SPIN") + "membar.cta;\nst.volatile.shared.u32 [flag], 1;\n",
                      "POLL:\nld.volatile.shared.u32 r5, [flag];\nsetp.eq.u32 p, r5, 0;\n@p bra "
                      "POLL;\nmembar.cta;\n"),
            "");
  EXPECT_EQ(complaint(wait("bar", "SPIN") + "st.release.cta.shared.u32 [flag], 1;\n",
                      "POLL:\nld.acquire.cta.shared.u32 r5, [flag];\nsetp.eq.u32 p, r5, 0;\n@p bra "
                      "POLL;\n"),
            "");
  EXPECT_EQ(complaint(wait("bar", "SPIN") + "red.release.cta.shared.add.u32 [flag], 1;\n",
                      "POLL:\natom.acquire.cta.shared.add.u32 r5, [flag], 0;\nsetp.eq.u32 p, r5, "
                      "0;\n@p bra POLL;\n"),
            "");
}

TEST(EmulatorOrder, WhatDoesNot) {
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"", "nanosleep.u32 100000;\n"},
           {"bar.arrive 1, 64;\n", "bar.sync 1, 64;\n"},  // the copy is issued, no more is known
           {"bar.arrive 1, 64;\n" + wait("bar", "SPIN"), "bar.sync 1, 64;\n"},
           {"", wait("bar", "SPIN", 1)},
           // Relaxed atomics order nothing.
           {wait("bar", "SPIN") + "red.shared.add.u32 [flag], 1;\n",
            "POLL:\natom.shared.add.u32 r5, [flag], 0;\nsetp.eq.u32 p, r5, 0;\n@p bra POLL;\n"}}) {
    const std::string message = complaint(first, second);
    EXPECT_NE(message.find("[asynchronous-race]"), std::string::npos) << first << second << message;
    EXPECT_NE(message.find("the copy may still be under way: expected a wait for mbarrier"),
              std::string::npos)
        << message;
  }
}

// A copy, loads from its box, a copy into the same.
TEST(EmulatorOrder, Loads) {
  const auto found = [](const std::string& before, const std::string& behind) {
    const std::string body =
        init + "setp.ne.u32 p, r0, 0;\n@p bra ALL;\n" + copy("bar") + "ALL:\n" + before +
        "shl.b32 r3, r0, 1;\nand.b32 r3, r3, 124;\nmov.u32 r4, tile;\nadd.u32 r3, r3, r4;\n"
        "ld.shared.u32 r5, [r3];\n" +
        behind + "setp.ne.u32 p, r0, 32;\n@p bra END;\n" + copy("done", 128) +
        wait("done", "LAST") + "END:\n";
    const KernelRun run = run_body(body, {.grid = {1}, .block = {64}}, 128, {}, shared);
    EXPECT_EQ(run.complaint, "");
    return run.findings.empty() ? "" : run.findings[0].message;
  };
  EXPECT_EQ(found(wait("bar", "SPIN"), "bar.sync 0;\n"), "");
  EXPECT_EQ(found("setp.ge.u32 q, r0, 32;\n@q bra THERE;\n" + wait("bar", "SPIN") +
                      "THERE:\nbar.sync 0;\n",
                  "bar.sync 0;\n"),
            "");
  const std::string early = found("", "bar.sync 0;\n"), alone = found(wait("bar", "SPIN"), "");
  EXPECT_NE(early.find("nothing orders them: if the load should see what the copy brings"),
            std::string::npos)
      << early;
  EXPECT_NE(alone.find("is read by ld.shared.u32 on line 40 by thread 0"), std::string::npos)
      << alone;
}

TEST(EmulatorOrder, MbarriersThatAreNone) {
  const auto found = [](const std::string& body) {
    const KernelRun run = run_body(body, {.grid = {1}, .block = {64}}, 128, {}, shared);
    EXPECT_EQ(run.complaint, "");
    return run.findings.empty() ? "" : run.findings[0].id;
  };
  const std::string all = copy("bar");  // so that the kernel has a copy
  EXPECT_EQ(found("mbarrier.arrive.shared::cta.b64 _, [bar];\n" + all), "mbarrier");
  EXPECT_EQ(found(wait("bar", "SPIN", 1) + all), "mbarrier");
  EXPECT_EQ(found("setp.ne.u32 q, r0, 0;\n@q exit;\n" + all), "mbarrier");
  EXPECT_EQ(found("setp.eq.u32 q, r0, 0;\n@q mbarrier.init.shared::cta.b64 [bar], 64;\n"
                  "mbarrier.arrive.shared::cta.b64 _, [bar];\n@q bra END;\nbra END;\n" +
                  all + "END:\n"),
            "mbarrier");  // no bar.sync behind the init
  EXPECT_EQ(found("setp.eq.u32 q, r0, 0;\n@q mbarrier.init.shared::cta.b64 [bar], 64;\nbar.sync "
                  "0;\nmbarrier.arrive.shared::cta.b64 _, [bar];\n" +
                  wait("bar", "SPIN") + "bra END;\n" + all + "END:\n"),
            "");
}

}  // namespace
}  // namespace tartan::test
