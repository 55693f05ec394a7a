// SPDX-License-Identifier: Apache-2.0
// Collectives by lanes and warps that do not come together: member masks, loops with barriers,
// setmaxnreg. Each mistake beside right kernels that are nearly the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const Launch one_warp{.grid = {1}, .block = {32}}, warpgroup{.grid = {1}, .block = {128}};
const std::string wrong = "divergent-collective";

KernelRun watched(const std::string& body, const Launch& launch = one_warp) {
  const KernelRun run = run_body(body, launch, 1024, {.max_steps = 100000, .checks = Checks::all});
  EXPECT_EQ(run.complaint, "") << body;
  return run;
}

std::string found(const std::string& body, const Launch& launch = one_warp) {
  std::string out;
  for (const Finding& each : watched(body, launch).findings)
    out += (out.empty() ? "" : ", ") + each.id;
  return out;
}

// Each instruction that takes a member mask, with that one.
std::vector<std::string> collectives(const std::string& mask) {
  return {"vote.sync.ballot.b32 r3, p, " + mask + ";\n",
          "vote.sync.any.pred q, p, " + mask + ";\n",
          "match.any.sync.b32 r3, r0, " + mask + ";\n",
          "match.all.sync.b32 r3|q, r0, " + mask + ";\n",
          "redux.sync.add.s32 r3, r0, " + mask + ";\n",
          "shfl.sync.bfly.b32 r3, r0, 0, 31, " + mask + ";\n",
          "elect.sync r3|q, " + mask + ";\n",
          "bar.warp.sync " + mask + ";\n"};
}

const std::string low = "setp.lt.u32 p, r0, 16;\n", keep = "st.global.u32 [rd1], r0;\n";
// r8: a mask of those lanes, for the lower half and for the upper one.
std::string masks(const std::string& lower, const std::string& upper) {
  return low + "selp.u32 r8, " + lower + ", " + upper + ", p;\n";
}

TEST(MemberMasks, NameTheLaneThatPassesThem) {
  for (const std::string& each : collectives("0xffff")) EXPECT_EQ(found(low + each), wrong) << each;
  for (const std::string& each : collectives("0xfffffffe"))
    EXPECT_EQ(found(low + each), wrong) << each;
  for (const std::string& each : collectives("0xffff")) {
    EXPECT_EQ(found(low + "@!p bra END;\n" + each + "END:\n"), "") << each;
    EXPECT_EQ(found(low + "@p bra END;\n" + each + "END:\n"), wrong) << each;
  }
  for (const std::string& each : collectives("-1")) EXPECT_EQ(found(low + each), "") << each;
}

TEST(MemberMasks, AreTheSameInTheLanesThatTheyName) {
  for (const std::string& each : collectives("r8")) {
    EXPECT_EQ(found(masks("0xffff", "0xffff0000") + each), "") << each;
    EXPECT_EQ(found(masks("-1", "0xffff0000") + each + keep), wrong) << each;
    EXPECT_EQ(found(masks("0xffff", "-1") + each + keep), wrong) << each;
    EXPECT_EQ(found(masks("0xffff00ff", "0xffff0000") + each + keep), wrong) << each;
  }
}

// The lanes that passed another mask come to the next one, which passes all: that is not the one
// that the others wait for.
TEST(MemberMasks, AreNotMatchedWithLaterInstructions) {
  const auto first = collectives("r8"), second = collectives("-1");
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(found(masks("-1", "0xffff0000") + first[i] + second[i] + keep), wrong) << first[i];
    EXPECT_EQ(found(masks("0xffff", "0xffff0000") + first[i] + second[i] + keep), "") << first[i];
  }
}

// Lanes with the same value, the lanes that are there, tiles of eight.
TEST(MemberMasks, GroupsOfLanesAreRight) {
  for (const std::string& each : collectives("r8")) {
    EXPECT_EQ(found(low + "and.b32 r4, r0, 3;\nmatch.any.sync.b32 r8, r4, -1;\n" + each), "");
    EXPECT_EQ(found("setp.gt.u32 p, r0, 20;\n@p bra END;\nactivemask.b32 r8;\n" + each + "END:\n"),
              "");
    EXPECT_EQ(found(low + "and.b32 r4, r0, 24;\nmov.u32 r8, 255;\nshl.b32 r8, r8, r4;\n" + each),
              "");
  }
}

// Pairs, then groups of four, ... in one loop: half of the lanes are late, and find the others at
// the same instruction with wider masks.
TEST(MemberMasks, MayGrowInALoop) {
  for (const std::string& each : collectives("r8"))
    EXPECT_EQ(found(R"(
      and.b32 r9, r0, 2;
      setp.eq.u32 p, r9, 0;
      mov.u32 r10, 0;
      @p bra TREE;
      SPIN: add.u32 r10, r10, 1;
      setp.lt.u32 q, r10, 50;
      @q bra SPIN;
      TREE: mov.u32 r11, 2;
      WIDER: neg.s32 r12, r11;
      and.b32 r12, r12, r0;
      mov.u32 r8, 1;
      shl.b32 r8, r8, r11;
      sub.u32 r8, r8, 1;
      shl.b32 r8, r8, r12;
    )" + each + R"(
      shl.b32 r11, r11, 1;
      setp.le.u32 q, r11, 16;
      @q bra WIDER;
    )"),
              "")
        << each;
}

TEST(MemberMasks, TheMessagesNameTheLanes) {
  KernelRun run = watched("vote.sync.ballot.b32 r3, p, 0xffff;\n" + keep);
  ASSERT_FALSE(run.findings.empty());
  EXPECT_EQ(run.findings.back().message,
            "vote.sync.ballot.b32: lane 16 passes the member mask 0x0000ffff, which does not name "
            "it: expected a mask of the lanes that execute it together");
  run = watched(masks("-1", "0xffff0000") + "redux.sync.add.s32 r3, r0, r8;\n" + keep);
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].message,
            "redux.sync.add.s32: lanes 0x0000ffff pass the member mask 0xffffffff, but lanes "
            "0xffff0000 of it passed another one here: expected one mask in all lanes that it "
            "names");
}

// r4 counts from `first` in steps of `step`; lanes stay in the loop below `bound`.
std::string loop(const std::string& first, const std::string& body, const std::string& step,
                 const std::string& bound) {
  return "mov.u32 r4, " + first + ";\nLOOP:\n" + body + "add.u32 r4, r4, " + step +
         ";\nsetp.lt.u32 p, r4, " + bound + ";\n@p bra LOOP;\n" + keep;
}

TEST(BarriersInLoops, LanesLeaveTogether) {
  for (const std::string barrier :
       {"bar.sync 0;\n", "barrier.sync.aligned 1, 32;\n", "bar.red.popc.u32 r3, 0, q;\n",
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"}) {
    const std::string start = "setp.eq.u32 q, r0, 0;\n";
    EXPECT_EQ(found(start + loop("0", barrier, "1", "r0")), wrong) << barrier;
    EXPECT_EQ(found(start + loop("r0", barrier, "32", "100")), wrong) << barrier;
    EXPECT_EQ(found(start + loop("r0", barrier, "32", "128")), "") << barrier;
    EXPECT_EQ(found(start + loop("0", barrier, "32", "100")), "") << barrier;
  }
  // Each thread by itself.
  EXPECT_EQ(found(loop("r0", "barrier.sync 0;\n", "32", "100")), "");
}

TEST(BarriersInLoops, LanesThatWereNeverThereMayBeGone) {
  EXPECT_EQ(found("setp.gt.u32 q, r0, 19;\n@q bra END;\n" + loop("0", "bar.sync 0;\n", "1", "4") +
                  "END:\n"),
            "");
}

TEST(BarriersInLoops, TheMessageNamesTheLanes) {
  const KernelRun run = watched(loop("r0", "bar.sync 0;\n", "32", "100"));
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].message,
            "bar.sync: lanes 0xfffffff0 of the warp executed it before, and exited while lanes "
            "0x0000000f are here again: expected as many iterations in all lanes of a warp");
}

// Warps from `warp` on go another way.
std::string ways(int warp, const std::string& below, const std::string& above) {
  return fmt::format("setp.ge.u32 p, r0, {};\n@p bra ABOVE;\n{}bra END;\nABOVE:\n{}END:\n",
                     32 * warp, below, above);
}
std::string set(const std::string& what, int count) {
  return fmt::format("setmaxnreg.{}.sync.aligned.u32 {};\n", what, count);
}
std::string found_on_sm_90a(const std::string& body, const Launch& launch) {
  std::string text = kernel_text(body);
  text.replace(text.find("sm_90"), 5, "sm_90a");
  text.replace(text.find(")\n{"), 2, ")\n.maxnreg 168\n");
  const KernelRun run = run_text(text, launch, 1024, {.checks = Checks::all});
  EXPECT_EQ(run.complaint, "") << body;
  return run.findings.empty() ? "" : run.findings[0].id;
}

TEST(RegisterBudgets, AreTheSameInAWarpgroup) {
  const Launch two{.grid = {1}, .block = {256}};
  const std::string less = set("dec", 72), few = set("dec", 24), more = set("inc", 168);
  EXPECT_EQ(found_on_sm_90a(ways(3, less, few), warpgroup), wrong);
  EXPECT_EQ(found_on_sm_90a(ways(3, less, less), warpgroup), "");
  EXPECT_EQ(found_on_sm_90a(ways(3, few + more, few), warpgroup), wrong);
  EXPECT_EQ(found_on_sm_90a(ways(3, less, ""), warpgroup), wrong);
  EXPECT_EQ(found_on_sm_90a(ways(4, less, few), two), "");
  EXPECT_EQ(found_on_sm_90a(ways(4, less, more), two), "");
  EXPECT_EQ(found_on_sm_90a(ways(5, less, few), two), wrong);
  EXPECT_EQ(found_on_sm_90a(ways(4, less, ""), two), "");
}

// PTX ISA, "barrier": a warp's arrivals count, each of them 32. Measured on an H200.
TEST(BarrierArrivals, AWarpsArrivalsCountEach) {
  EXPECT_EQ(found("bar.arrive 2, 64;\nbar.sync 2, 64;\n"), "");
  EXPECT_EQ(found("bar.arrive 2, 96;\nbar.arrive 2, 96;\nbar.sync 2, 96;\n"), "");
  EXPECT_EQ(found("bar.arrive 2, 96;\nbar.sync 2, 96;\n"), "barrier-deadlock");
  const Launch two{.grid = {1}, .block = {64}};
  EXPECT_EQ(found(ways(1, "bar.arrive 2, 96;\nbar.sync 2, 96;\n", "bar.sync 2, 96;\n"), two), "");
  // It is one phase ahead: two arrivals of one warp end it.
  const std::string arrive = "bar.arrive 1, 64;\n", sync = "bar.sync 1, 64;\n";
  EXPECT_EQ(found(ways(1, arrive + arrive, sync + sync), two), "barrier-deadlock");
  EXPECT_EQ(
      found(ways(1, arrive + "bar.sync 3, 64;\n" + arrive, sync + "bar.sync 3, 64;\n" + sync), two),
      "");
}

// Lanes that come one after the other count with the rest of their warp.
TEST(BarrierArrivals, PartsOfAWarpCountOnce) {
  const auto halves = [](const std::string& one, const std::string& other) {
    return low + "@p bra LOW;\n" + one + "bra END;\nLOW:\n" + other + "END:\n";
  };
  const std::string sync = "barrier.sync 1, 32;\n", two = "barrier.sync 1, 64;\n";
  EXPECT_EQ(found(halves(sync, sync)), "");
  EXPECT_EQ(found(halves(two, two)), "barrier-deadlock");
  EXPECT_EQ(found(halves("barrier.arrive 1, 64;\n" + two, "barrier.arrive 1, 64;\n" + two)), "");
}

// What the warp wrote before either arrival is known behind the barrier.
TEST(BarrierArrivals, OrderMemory) {
  const Launch two{.grid = {1}, .block = {64}};
  const std::string shared = ".shared .align 4 .b32 word[64];\n",
                    at = "mov.u32 r4, word;\nand.b32 r5, r0, 31;\nshl.b32 r5, r5, 2;\nadd.u32 r4, "
                         "r4, r5;\n",
                    store = "st.shared.u32 [r4], r0;\n", load = "ld.shared.u32 r6, [r4];\n";
  const auto ids = [&](const std::string& body) {
    std::string out;
    for (const Finding& each :
         run_body(at + body, two, 1024, {.checks = Checks::memory}, shared).findings)
      out += each.id;
    return out;
  };
  const std::string arrive = "bar.arrive 2, 96;\n", sync = "bar.sync 2, 96;\n";
  EXPECT_EQ(ids(ways(1, store + arrive + sync, sync + load)), "");
  EXPECT_EQ(ids(ways(1, arrive + store + sync, sync + load)), "");
  EXPECT_EQ(ids(ways(1, arrive + sync + store, sync + load)), "memory-race");
}

}  // namespace
}  // namespace tartan::test
