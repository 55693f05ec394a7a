// SPDX-License-Identifier: Apache-2.0
// What orders two threads by the memory consistency model (PTX ISA, chapter 8), and what does not
// though it looks as if: fences whose order nothing read, a fence of another lane, the read of a
// reduction, scopes of either side. tests/emulator/litmus_test.cc has many more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/manifest.h"
#include "runtime/schedules.h"
#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const std::string memory =
    ".global .align 256 .u32 data[64];\n.global .align 128 .u32 flag;\n"
    ".global .align 128 .u32 ticket;\n.shared .align 128 .u32 tile[64];\n";

constexpr Launch two_blocks{.grid = {2}, .block = {32}};

// CTA 0 does `first`, CTA 1 then `second`, by a lane each.
std::string blocks(const std::string& first, const std::string& second) {
  return "mov.u32 r1, %ctaid.x;\nsetp.ne.u32 p, r0, 0;\n@p bra END;\nsetp.ne.u32 p, r1, 0;\n"
         "@p bra OTHER;\n" +
         first + "bra END;\nOTHER:\n" + second + "END:\n";
}

std::string found(const std::string& body, const Launch& launch = two_blocks) {
  DeviceOptions options;
  options.checks = Checks::memory;
  const KernelRun run = run_body(body, launch, 1024, options, memory);
  EXPECT_EQ(run.complaint, "") << body;
  return run.findings.empty() ? "" : run.findings[0].id;
}

Outcome decided(const std::string& body, const Launch& launch = two_blocks) {
  Manifest manifest;
  manifest.name = "test.json";
  manifest.ptx = Source("test.ptx", kernel_text(body, memory));
  manifest.kernel = "k";
  manifest.launch = launch;
  manifest.params.push_back({.buffer = ManifestBuffer{.name = "out", .size = 4096}});
  return decide_schedules(manifest, {.max_steps = 100'000, .checks = Checks::all}, 1000);
}

const std::string store = "st.global.u32 [data], 1;\n", load = "ld.global.u32 r5, [data];\n";

std::string spin(const std::string& how) {
  return "SPIN:\n" + how + " r4, [flag];\nsetp.eq.u32 p, r4, 0;\n@p bra SPIN;\n";
}

TEST(MemoryModel, FencesWhoseOrderNothingRead) {
  EXPECT_EQ(found(blocks(store + "membar.gl;\n", "membar.gl;\n" + load)), "memory-race");
  EXPECT_EQ(found(blocks(store + "fence.sc.gpu;\n", "fence.sc.gpu;\n" + load)), "memory-race");
  // A fence behind the flag.
  EXPECT_EQ(found(blocks(store + "st.relaxed.gpu.global.u32 [flag], 1;\nmembar.gl;\n",
                         spin("ld.relaxed.gpu.global.u32") + "membar.gl;\n" + load)),
            "memory-race");
  EXPECT_EQ(found(blocks(store + "membar.gl;\nst.relaxed.gpu.global.u32 [flag], 1;\n",
                         spin("ld.relaxed.gpu.global.u32") + "membar.gl;\n" + load)),
            "");
}

// Both store, and then look for the other's store (Dekker). CTA 0 looked before CTA 1 stored: so
// its fence was first, and CTA 1 knows of what came before it. In other orders nothing says so.
TEST(MemoryModel, FencesThatAReadOrders) {
  const std::string kernel =
      blocks(store +
                 "st.relaxed.gpu.global.u32 [data+128], 1;\nfence.sc.gpu;\n"
                 "ld.relaxed.gpu.global.u32 r4, [data+132];\n",
             "st.relaxed.gpu.global.u32 [data+132], 1;\nfence.sc.gpu;\n"
             "ld.relaxed.gpu.global.u32 r4, [data+128];\nsetp.eq.u32 p, r4, 0;\n@p bra END;\n" +
                 load);
  EXPECT_EQ(found(kernel), "");
  EXPECT_EQ(decided(kernel).exit_code(), 3);
}

TEST(MemoryModel, ReductionsAcquireNothing) {
  const std::string released =
      store + "fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [flag], 1;\n";
  EXPECT_EQ(found(blocks(released,
                         "red.relaxed.gpu.global.add.u32 [flag], 1;\n"
                         "fence.acq_rel.gpu;\n" +
                             load)),
            "memory-race");
  EXPECT_EQ(found(blocks(released,
                         "atom.relaxed.gpu.global.add.u32 r4, [flag], 1;\n"
                         "fence.acq_rel.gpu;\n" +
                             load)),
            "");
}

TEST(MemoryModel, ScopesOfBothSides) {
  const auto handed_over = [](const char* releases, const char* acquires) {
    return blocks(store + releases + "st.relaxed.gpu.global.u32 [flag], 1;\n",
                  spin("ld.relaxed.gpu.global.u32") + acquires + load);
  };
  EXPECT_EQ(found(handed_over("fence.acq_rel.gpu;\n", "fence.acq_rel.gpu;\n")), "");
  EXPECT_EQ(found(handed_over("fence.acq_rel.cta;\n", "fence.acq_rel.gpu;\n")), "memory-race");
  EXPECT_EQ(found(handed_over("fence.acq_rel.gpu;\n", "fence.acq_rel.cta;\n")), "memory-race");
  EXPECT_EQ(found(handed_over("membar.gl;\n", "membar.cta;\n")), "memory-race");
  EXPECT_EQ(found(handed_over("membar.gl;\n", "membar.gl;\n")), "");
}

// A pattern is of one thread: what other lanes did in front of their fences is not behind it.
TEST(MemoryModel, FencesOfOtherLanes) {
  const std::string all_store =
      "mad.lo.u32 r6, r0, 4, 0;\ncvt.u64.u32 rd3, r6;\nmov.u64 rd4, data;\n"
      "add.s64 rd4, rd4, rd3;\n";
  const auto kernel = [&](const std::string& between) {
    return all_store +
           "mov.u32 r1, %ctaid.x;\nsetp.ne.u32 p, r1, 0;\n@p bra OTHER;\n"
           "st.global.u32 [rd4], r0;\n" +
           between +
           "setp.ne.u32 p, r0, 0;\n@p bra END;\nst.relaxed.gpu.global.u32 [flag], 1;\nbra END;\n"
           "OTHER:\n" +
           spin("ld.acquire.gpu.global.u32") + "ld.global.u32 r5, [rd4];\nEND:\n";
  };
  EXPECT_EQ(found(kernel("fence.acq_rel.gpu;\n")), "memory-race");
  EXPECT_EQ(found(kernel("fence.acq_rel.gpu;\nbar.warp.sync -1;\n")), "memory-race");
  EXPECT_EQ(found(kernel("bar.warp.sync -1;\nfence.acq_rel.gpu;\n")), "");
}

// The last block resets the counter: it knows of the others' atomics by its own, which came last.
TEST(MemoryModel, WhatAnAtomicObserved) {
  const auto last = [](const std::string& ticket) {
    return "setp.ne.u32 p, r0, 0;\n@p bra END;\n" + ticket +
           "setp.ne.u32 p, r4, 3;\n@p bra END;\nst.global.u32 [ticket], 0;\nEND:\n";
  };
  const Launch four{.grid = {4}, .block = {32}};
  const std::string draw = last("atom.global.add.u32 r4, [ticket], 1;\n");
  EXPECT_EQ(found(draw, four), "");
  EXPECT_EQ(decided(draw, four).exit_code(), 0);
  // A reduction gives nothing: the others' may come later.
  EXPECT_EQ(found(last("red.global.add.u32 [ticket], 1;\nmov.u32 r4, %ctaid.x;\n"), four),
            "memory-race");
  // Lanes of one instruction come one after another.
  EXPECT_EQ(found("atom.global.add.u32 r4, [ticket], 1;\nsetp.ne.u32 p, r4, 31;\n"
                  "@p bra END;\nst.global.u32 [ticket], 0;\nEND:\n",
                  {.grid = {1}, .block = {32}}),
            "");
}

TEST(MemoryModel, AtomicsOfDifferentSizes) {
  const std::string wide = "atom.global.add.u64 rd5, [data], 1;\n",
                    low = "atom.global.add.u32 r5, [data], 1;\n",
                    high = "atom.global.add.u32 r5, [data+4], 1;\n",
                    other = "atom.global.add.u32 r5, [data+8], 1;\n";
  EXPECT_EQ(found(blocks(wide, wide)), "");
  EXPECT_EQ(found(blocks(wide, low)), "memory-race");
  EXPECT_EQ(found(blocks(high, wide)), "memory-race");
  EXPECT_EQ(found(blocks(wide, other)), "");
  EXPECT_EQ(found(blocks("ld.relaxed.gpu.global.v2.u32 {r5, r6}, [data];\n", low)), "");
}

// A compare-and-swap that fails writes nothing.
TEST(MemoryModel, FailedSwaps) {
  const std::string fails = "atom.release.gpu.global.cas.b32 r4, [flag], 7, 1;\n",
                    swaps = "atom.release.gpu.global.cas.b32 r4, [flag], 0, 1;\n";
  const std::string acquires = "ld.acquire.gpu.global.u32 r4, [flag];\n" + load;
  EXPECT_EQ(found(blocks(store + fails, acquires)), "memory-race");
  EXPECT_EQ(found(blocks(store + swaps, acquires)), "");
}

TEST(MemoryModel, EqualStoresThatHideOthers) {
  const std::string twice = "st.global.u32 [data], 2;\nst.global.u32 [data], 1;\n";
  const Outcome wrong = decided(blocks(twice, store));
  EXPECT_EQ(wrong.exit_code(), 3) << wrong.schedules;
  const Outcome right = decided(blocks(store, store));
  EXPECT_EQ(right.exit_code(), 0) << right.schedules;
  ASSERT_FALSE(right.findings.empty());
  EXPECT_EQ(right.findings[0].id, "same-value-race");
}

TEST(MemoryModel, AtomicsWhoseResultNobodyReads) {
  const std::string atomic = "atom.acq_rel.gpu.global.add.u32 r9, [flag], 1;\n";
  EXPECT_EQ(decided(blocks(store + atomic, atomic + load)).exit_code(), 3);
  EXPECT_EQ(decided(blocks(atomic + store, atomic + "st.global.u32 [data+128], 1;\n")).exit_code(),
            0);
}

// red.inc with different bounds gives 1 in the usual order, and 0, with which both warps store, in
// the other one.
TEST(MemoryModel, ReductionsThatDoNotCommute) {
  const auto kernel = [](const char* one, const char* other) {
    return fmt::format(
        "and.b32 r1, r0, 31;\nsetp.ne.u32 p, r1, 0;\n@p bra END;\nsetp.ne.u32 q, r0, 0;\n"
        "@!q red.relaxed.gpu.global.{}.u32 [ticket], 0;\n"
        "@q red.relaxed.gpu.global.{}.u32 [ticket], 5;\nbar.sync 0;\n"
        "ld.relaxed.gpu.global.u32 r4, [ticket];\nsetp.ne.u32 p, r4, 0;\n@p bra END;\n"
        "st.global.u32 [data], r0;\nEND:\n",
        one, other);
  };
  const Launch two_warps{.grid = {1}, .block = {64}};
  EXPECT_EQ(found(kernel("inc", "inc"), two_warps), "");
  EXPECT_EQ(decided(kernel("inc", "inc"), two_warps).exit_code(), 3);
  EXPECT_EQ(decided(kernel("add", "add"), two_warps).exit_code(), 0);
}

// Retrying exchanges make progress, and a loop that reads two words goes round in vain.
TEST(MemoryModel, LoopsThatWait) {
  const std::string retries =
      "AGAIN:\natom.relaxed.gpu.global.exch.b32 r4, [flag], 1;\nsetp.eq.u32 p, r4, 0;\n"
      "@p bra AGAIN;\n";
  const Outcome right =
      decided(blocks("atom.relaxed.gpu.global.exch.b32 r4, [flag], 0;\n", retries));
  EXPECT_EQ(right.exit_code(), 0) << right.schedules;
  const auto two_words = [](const char* one, const char* other) {
    return fmt::format(
        "LOOK:\nld.relaxed.gpu.global.u32 r4, [{}];\nld.relaxed.gpu.global.u32 r5, [{}];\n"
        "or.b32 r4, r4, r5;\nsetp.eq.u32 p, r4, 0;\n@p bra LOOK;\n",
        one, other);
  };
  EXPECT_EQ(decided(blocks("st.relaxed.gpu.global.u32 [ticket], 1;\n", two_words("flag", "ticket")))
                .exit_code(),
            0);
  // Who comes second waits for what nobody does.
  const std::string take = "atom.relaxed.gpu.global.exch.b32 r4, [ticket], 1;\n";
  const Outcome stuck = decided(
      blocks(take + "setp.eq.u32 p, r4, 0;\n@p bra END;\n" + two_words("flag", "data"), take));
  ASSERT_EQ(stuck.exit_code(), 3);
  EXPECT_EQ(stuck.findings[0].id, "deadlock");
}

// Each sets the word to its own number until it finds the other's.
TEST(MemoryModel, ThreadsThatUndoEachOther) {
  const auto turn = [](int mine, const char* label) {
    return fmt::format(
        "{1}:\natom.relaxed.gpu.global.exch.b32 r4, [flag], {0};\nsetp.ne.u32 p, r4, {0};\n"
        "@p bra {1};\n",
        mine, label);
  };
  const Outcome endless = decided(blocks(turn(1, "ONE"), turn(2, "TWO")));
  ASSERT_EQ(endless.exit_code(), 3) << endless.schedules;
  EXPECT_EQ(endless.findings[0].id, "livelock");
}

}  // namespace
}  // namespace tartan::test
