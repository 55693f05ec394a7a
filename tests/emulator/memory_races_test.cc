// SPDX-License-Identifier: Apache-2.0
// Races between ordinary accesses to memory: each mistake beside kernels that are nearly the same
// and right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emulator/race_kernels.h"

namespace tartan::test {
namespace {

using namespace races;

TEST(MemoryRaces, BetweenWarps) {
  EXPECT_EQ(found(words(32, 64) + mine + theirs + keep, two_warps), "memory-race");
  EXPECT_EQ(found(words(32, 64) + mine + "bar.sync 0;\n" + theirs + keep, two_warps), "");
  EXPECT_EQ(found(words(32, 64) + mine + "barrier.cta.sync 3, 64;\n" + theirs + keep, two_warps),
            "");
  // Each warp alone.
  EXPECT_EQ(found(words(1, 32) + mine + "bar.warp.sync -1;\n" + theirs + keep, one_warp), "");
  EXPECT_EQ(found(words(32, 64) + mine + "bar.warp.sync -1;\n" + theirs + keep, two_warps),
            "memory-race");
  EXPECT_EQ(found(words(32, 64) + mine + "membar.cta;\n" + theirs + keep, two_warps),
            "memory-race");
}

TEST(MemoryRaces, WriteAfterAnotherWarpsRead) {
  const std::string start = words(32, 64) + mine + "bar.sync 0;\n" + theirs;
  EXPECT_EQ(found(start + mine + keep, two_warps), "memory-race");
  EXPECT_EQ(found(start + "bar.sync 0;\n" + mine + keep, two_warps), "");
  EXPECT_EQ(found(start + "bar.red.popc.u32 r7, 0, q;\n" + mine + keep, two_warps), "");
}

TEST(MemoryRaces, WithinAWarp) {
  EXPECT_EQ(found(words(1, 32) + mine + theirs + keep, one_warp), "converged-exchange");
  EXPECT_EQ(found(words(0, 32) + mine + theirs + keep, one_warp), "");
  EXPECT_EQ(found(words(1, 32) + mine + "bar.sync 0;\n" + theirs + keep, one_warp), "");
  // These wait for each other, no more.
  EXPECT_EQ(found(words(1, 32) + mine + "shfl.sync.idx.b32 r7, r0, 0, 31, -1;\n" + theirs + keep,
                  one_warp),
            "converged-exchange");
  EXPECT_EQ(found(words(1, 32) + mine + "vote.sync.all.pred p, q, -1;\n" + theirs + keep, one_warp),
            "converged-exchange");
  // Even and odd lanes by themselves.
  const std::string halves =
      "and.b32 r7, r0, 1;\nsetp.eq.u32 p, r7, 0;\nmov.u32 r8, 0x55555555;\n@!p mov.u32 r8, "
      "0xAAAAAAAA;\n";
  EXPECT_EQ(found(words(2, 32) + halves + mine + "bar.warp.sync r8;\n" + theirs + keep, one_warp),
            "");
  EXPECT_EQ(found(words(1, 32) + halves + mine + "bar.warp.sync r8;\n" + theirs + keep, one_warp),
            "memory-race");
}

TEST(MemoryRaces, OneLaneSpeaksForItself) {
  // Lane 0 of warp 0 tells warp 1; what the other lanes wrote is not said.
  const std::string tell = "setp.ge.u32 p, r0, 32;\n@p bra WAIT;\n" + mine,
                    wait =
                        "setp.ne.u32 q, r0, 0;\n@q bra END;\nst.release.cta.shared.u32 [flag], 1;\n"
                        "bra END;\nWAIT:\n" +
                        poll("ld.acquire.cta.shared") + theirs + keep + "END:\n";
  EXPECT_EQ(found(words(32, 64) + tell + wait, two_warps), "memory-race");
  EXPECT_EQ(found(words(32, 64) + tell + "bar.warp.sync -1;\n" + wait, two_warps), "");
}

TEST(MemoryRaces, NamedBarriers) {
  const auto pair = [](const std::string& one, const std::string& other) {
    return words(32, 64) + "setp.ge.u32 p, r0, 32;\n@p bra OTHER;\n" + mine + one +
           "bra END;\nOTHER:\n" + other + theirs + keep + "END:\n";
  };
  EXPECT_EQ(found(pair("bar.arrive 1, 64;\n", "bar.sync 1, 64;\n"), two_warps), "");
  // The one who arrives learns nothing.
  EXPECT_EQ(found(pair("bar.sync 1, 64;\n", "bar.arrive 1, 64;\n"), two_warps), "memory-race");
  EXPECT_EQ(found(pair("", ""), two_warps), "memory-race");
  EXPECT_EQ(found(pair("bar.sync 1, 32;\n", "bar.sync 2, 32;\n"), two_warps), "memory-race");
}

TEST(MemoryRaces, Mbarriers) {
  const std::string init =
      "setp.ne.u32 q, r0, 0;\n@q bra READY;\nmbarrier.init.shared::cta.b64 [bar], 1;\nREADY:\n"
      "bar.sync 0;\n";
  const auto handed_over = [&](const std::string& arrive, const std::string& before = "") {
    return init + before + words(32, 64) + "setp.ge.u32 p, r0, 32;\n@p bra OTHER;\n" + mine +
           "bar.warp.sync -1;\nsetp.ne.u32 q, r0, 0;\n@q bra END;\n" + arrive +
           "bra END;\nOTHER:\n" + wait("bar", "SPIN") + theirs + keep + "END:\n";
  };
  EXPECT_EQ(found(handed_over("mbarrier.arrive.shared::cta.b64 _, [bar];\n"), two_warps), "");
  EXPECT_EQ(
      found(handed_over("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 0;\n"), two_warps),
      "");
  EXPECT_EQ(
      found(handed_over("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];\n"), two_warps),
      "memory-race");
  EXPECT_EQ(found(handed_over("fence.acq_rel.cta;\n"
                              "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];\n"),
                  two_warps),
            "");
}

TEST(MemoryRaces, FlagsInSharedMemory) {
  const auto handed_over = [](const std::string& set, const std::string& see) {
    return first_of_two("st.shared.u32 [tile], 7;\n" + set,
                        see + "ld.shared.u32 r6, [tile];\n" + keep);
  };
  EXPECT_EQ(
      found(handed_over("st.release.cta.shared.u32 [flag], 1;\n", poll("ld.acquire.cta.shared")),
            two_warps),
      "");
  EXPECT_EQ(
      found(handed_over("st.relaxed.cta.shared.u32 [flag], 1;\n", poll("ld.relaxed.cta.shared")),
            two_warps),
      "memory-race");
  EXPECT_EQ(found(handed_over("fence.acq_rel.cta;\nst.relaxed.cta.shared.u32 [flag], 1;\n",
                              poll("ld.relaxed.cta.shared") + "fence.acq_rel.cta;\n"),
                  two_warps),
            "");
  EXPECT_EQ(found(handed_over("fence.acq_rel.cta;\nst.relaxed.cta.shared.u32 [flag], 1;\n",
                              poll("ld.relaxed.cta.shared")),
                  two_warps),
            "memory-race");
  EXPECT_EQ(found(handed_over("membar.cta;\nst.volatile.shared.u32 [flag], 1;\n",
                              poll("ld.volatile.shared") + "membar.cta;\n"),
                  two_warps),
            "");
  EXPECT_EQ(found(handed_over("st.volatile.shared.u32 [flag], 1;\n", poll("ld.volatile.shared")),
                  two_warps),
            "memory-race");
  // A flag that is a weak access is a race itself.
  EXPECT_EQ(found(handed_over("membar.cta;\nst.shared.u32 [flag], 1;\n",
                              poll("ld.volatile.shared") + "membar.cta;\n"),
                  two_warps),
            "memory-race");
}

TEST(MemoryRaces, Atomics) {
  EXPECT_EQ(found("red.shared.add.u32 [flag], 1;\n", two_warps), "");
  EXPECT_EQ(found("atom.shared.add.u32 r6, [flag], 1;\n" + keep, two_warps), "");
  EXPECT_EQ(found("red.shared.add.u32 [flag], 1;\nld.shared.u32 r6, [flag];\n" + keep, two_warps),
            "memory-race");
  EXPECT_EQ(found("red.shared.add.u32 [flag], 1;\nbar.sync 0;\nld.shared.u32 r6, [flag];\n" + keep,
                  two_warps),
            "");
  EXPECT_EQ(found("red.shared.add.u32 [flag], 1;\nld.volatile.shared.u32 r6, [flag];\n" + keep,
                  two_warps),
            "");
}

TEST(MemoryRaces, AtomicsBehindAPlainStore) {
  // The store of thread 0, hidden behind its own atomic from those of others.
  const std::string store = "setp.ne.u32 q, r0, 0;\n@!q st.shared.u32 [flag], 0;\n",
                    count = "red.shared.add.u32 [flag], 1;\n";
  EXPECT_EQ(found(store + "@!q " + count + count, two_warps), "memory-race");
  EXPECT_EQ(found(store + "@!q " + count + "bar.sync 0;\n" + count, two_warps), "");
  EXPECT_EQ(found(count + "bar.sync 0;\n" + store, two_warps), "");
  // The relaxed load of thread 0, hidden behind the atomic of thread 32 from its store.
  const auto twice = [&](const std::string& last) {
    return "setp.ne.u32 q, r0, 0;\n@!q ld.relaxed.cta.shared.u32 r6, [flag];\n"
           "setp.ne.u32 q, r0, 32;\n@!q " +
           count + "@!q " + last;
  };
  EXPECT_EQ(found(twice("st.shared.u32 [flag], 0;\n"), two_warps), "memory-race");
  EXPECT_EQ(found(twice("st.relaxed.cta.shared.u32 [flag], 0;\n"), two_warps), "");
}

// As CUDA's manual writes an atomic that the hardware does not have.
TEST(MemoryRaces, CompareAndSwapStartsWithAWeakLoad) {
  EXPECT_EQ(
      found("ld.shared.u32 r6, [flag];\natom.shared.cas.b32 r7, [flag], r6, r0;\n", two_warps),
      "weak-cas-read");
  EXPECT_EQ(found("ld.relaxed.cta.shared.u32 r6, [flag];\n"
                  "atom.shared.cas.b32 r7, [flag], r6, r0;\n",
                  two_warps),
            "");
  EXPECT_EQ(
      found("st.shared.u32 [flag], r0;\natom.shared.cas.b32 r7, [flag], r6, r0;\n", two_warps),
      "memory-race");
}

TEST(MemoryRaces, BytesOfAWord) {
  const std::string at = "mov.u32 r3, tile;\nadd.u32 r4, r3, r0;\n";
  EXPECT_EQ(found(at + "st.shared.u8 [r4], r0;\n", two_warps), "");
  EXPECT_EQ(found(at + "st.shared.u8 [r4], r0;\nbar.sync 0;\nld.shared.u32 r6, [tile+4];\n" + keep,
                  two_warps),
            "");
  EXPECT_EQ(
      found(at + "ld.shared.v4.u32 {r5, r6, r7, r8}, [tile];\nst.shared.u8 [r4], r0;\n" + keep,
            two_warps),
      "memory-race");
  EXPECT_EQ(found("mov.u32 r3, tile;\nshl.b32 r4, r0, 1;\nadd.u32 r4, r4, r3;\n"
                  "st.shared.u16 [r4], r0;\nst.shared.u8 [r4+1], r0;\n",
                  two_warps),
            "");
}

TEST(MemoryRaces, StoresOfTheSameValue) {
  EXPECT_EQ(found("st.shared.u32 [flag], 1;\n", two_warps), "same-value-race");
  EXPECT_EQ(found("st.shared.u32 [flag], r0;\n", one_warp), "memory-race");
  EXPECT_EQ(found("shr.u32 r3, r0, 5;\nst.shared.u32 [flag], r3;\n", two_warps), "same-value-race");
  EXPECT_EQ(found("st.global.u32 [rd0], 5;\n", two_blocks), "same-value-race");
  EXPECT_EQ(found("mov.u32 r2, %ctaid.x;\nsetp.ne.u32 q, r0, 0;\n@!q st.global.u32 [rd0], r2;\n",
                  two_blocks),
            "memory-race");
}

// ---- cp.async.

const std::string addresses =
    "mov.u32 r3, tile;\nshl.b32 r4, r0, 4;\nadd.u32 r4, r4, r3;\nxor.b32 r5, r0, 32;\n"
    "shl.b32 r5, r5, 4;\nadd.u32 r5, r5, r3;\nmov.u64 rd2, data;\n";
const std::string copy = "cp.async.ca.shared.global [r4], [rd2], 16;\n",
                  commit = "cp.async.commit_group;\n",
                  second_copy = "cp.async.ca.shared.global [r4+2048], [rd2+16], 16;\n",
                  own = "ld.shared.u32 r6, [r4];\n" + keep,
                  others = "ld.shared.u32 r6, [r5];\n" + keep;

TEST(MemoryRaces, CopiesThatNobodyWaitsFor) {
  EXPECT_EQ(found(addresses + copy + own, two_warps), "asynchronous-race");
  EXPECT_EQ(found(addresses + copy + commit + own, two_warps), "asynchronous-race");
  EXPECT_EQ(found(addresses + copy + commit + "bar.sync 0;\n" + others, two_warps),
            "asynchronous-race");
  EXPECT_EQ(found(addresses + copy + commit + "cp.async.wait_group 0;\n" + own, two_warps), "");
  EXPECT_EQ(found(addresses + copy + "cp.async.wait_all;\n" + own, two_warps), "");
  // In no group.
  EXPECT_EQ(found(addresses + copy + "cp.async.wait_group 0;\n" + own, two_warps),
            "asynchronous-race");
}

TEST(MemoryRaces, CopiesWithoutABarrier) {
  const std::string start = addresses + copy + commit + "cp.async.wait_group 0;\n";
  EXPECT_EQ(found(start + others, two_warps), "asynchronous-race");
  EXPECT_EQ(found(start + "bar.sync 0;\n" + others, two_warps), "");
  EXPECT_EQ(found(addresses + copy + commit + "bar.sync 0;\ncp.async.wait_group 0;\n" + others,
                  two_warps),
            "asynchronous-race");
  const std::string neighbours = addresses + "xor.b32 r5, r4, 16;\n" + copy + commit;
  EXPECT_NE(message(neighbours + "cp.async.wait_group 0;\n" + others, one_warp)
                .find("insert a barrier behind cp.async.wait_group"),
            std::string::npos);
  EXPECT_NE(message(neighbours + others, one_warp).find("expected cp.async.wait_group"),
            std::string::npos);
}

TEST(MemoryRaces, OneGroupTooFew) {
  const std::string start = addresses + copy + commit + second_copy + commit;
  const std::string later = "ld.shared.u32 r6, [r4+2048];\nst.global.u32 [rd1], r6;\n";
  EXPECT_EQ(found(start + "cp.async.wait_group 1;\n" + own, two_warps), "");
  EXPECT_EQ(found(start + "cp.async.wait_group 1;\n" + later, two_warps), "asynchronous-race");
  EXPECT_EQ(found(start + "cp.async.wait_group 0;\n" + later, two_warps), "");
  // An empty group counts, as at the tail of a loop.
  EXPECT_EQ(found(start + commit + "cp.async.wait_group 1;\n" + later, two_warps), "");
}

TEST(MemoryRaces, OfATensorMapThatLanesPrepare) {
  const std::string zero = "mov.u32 r3, tile;\nmad.lo.u32 r4, r0, 4, r3;\nst.shared.u32 [r4], 0;\n",
                    one = "setp.eq.u32 p, r0, 0;\n@p ",
                    replace = "tensormap.replace.tile.rank.shared::cta.b1024.b32 [tile], 1;\n";
  EXPECT_EQ(found(zero + "bar.warp.sync -1;\n" + one + replace, one_warp), "");
  EXPECT_EQ(found(zero + one + replace, one_warp), "memory-race");
  EXPECT_EQ(found(replace, one_warp), "memory-race");
  // The field that is read is another one: the access is to the whole map.
  EXPECT_EQ(found("mov.u32 r3, tile;\nmad.lo.u32 r4, r0, 4, r3;\n" + one + replace +
                      "ld.shared.u32 r6, [r4];\n" + keep,
                  one_warp),
            "converged-exchange");
}

TEST(MemoryRaces, AnMbarrierUsedWithoutOrderAfterItsInitialization) {
  const auto body = [](const std::string& sync) {
    return "setp.ne.u32 q, r0, 0;\n@q bra READY;\nmbarrier.init.shared::cta.b64 [bar], 64;\n"
           "READY:\n" +
           sync + "mbarrier.arrive.shared::cta.b64 _, [bar];\n";
  };
  EXPECT_EQ(found(body("bar.sync 0;\n"), two_warps), "");
  EXPECT_EQ(found(body(""), two_warps), "mbarrier");
}

TEST(MemoryRaces, CopiesThatArriveAtAnMbarrier) {
  const auto body = [](const std::string& arrive, int count = 64) {
    return "setp.ne.u32 q, r0, 0;\n@q bra READY;\nmbarrier.init.shared::cta.b64 [bar], " +
           std::to_string(count) + ";\nREADY:\nbar.sync 0;\n" + addresses + copy + arrive +
           wait("bar", "SPIN") + others;
  };
  const std::string each = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];\n";
  EXPECT_EQ(found(body(each), two_warps), "");
  // The phase ends before the last lane of a warp, which all arrive in one instruction.
  EXPECT_EQ(found(body(each, 63), two_warps), "asynchronous-race");
  EXPECT_EQ(found(body("cp.async.mbarrier.arrive.shared::cta.b64 [bar];\n"
                       "mbarrier.arrive.shared::cta.b64 _, [bar];\n"),
                  two_warps),
            "");
  EXPECT_EQ(found(body("mbarrier.arrive.shared::cta.b64 _, [bar];\n"), two_warps),
            "asynchronous-race");
}

TEST(MemoryRaces, RefillUnderLdmatrix) {
  const std::string start = addresses + copy + commit + "cp.async.wait_group 0;\nbar.sync 0;\n" +
                            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r6, r7, r8, r9}, [r5];\n";
  EXPECT_EQ(found(start + copy + commit + "cp.async.wait_group 0;\n", two_warps),
            "asynchronous-race");
  EXPECT_EQ(found(start + "bar.sync 0;\n" + copy + commit + "cp.async.wait_group 0;\n", two_warps),
            "");
  // Into the other buffer.
  EXPECT_EQ(found(start + second_copy + commit + "cp.async.wait_group 0;\n", two_warps), "");
}

// ldmatrix is in the program order of all lanes; bytes that a lane loads by itself are not.
TEST(MemoryRaces, CollectiveReads) {
  const std::string start =
                        "mov.u32 r3, tile;\nshl.b32 r4, r0, 4;\nadd.u32 r4, r4, r3;\n"
                        "xor.b32 r5, r4, 16;\n",
                    matrix = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r6, r7, r8, r9}, [r4];\n",
                    store = "st.shared.u32 [r5], r0;\n";
  EXPECT_EQ(found(start + matrix + store, one_warp), "");
  EXPECT_EQ(found(start + "ld.shared.u32 r6, [r4];\n" + store, one_warp), "converged-exchange");
  // Written by others before: that needs a barrier.
  EXPECT_EQ(found(start + store + matrix, one_warp), "converged-exchange");
  EXPECT_EQ(found(start + store + "bar.warp.sync -1;\n" + matrix, one_warp), "");
}

// ---- Global memory.

TEST(MemoryRaces, BetweenBlocks) {
  const std::string write = "st.global.u32 [data], 7;\n", see = "ld.global.u32 r6, [data];\n";
  EXPECT_EQ(found(of_two_blocks(write, see + keep), two_blocks), "memory-race");
  EXPECT_EQ(found(of_two_blocks(see + keep, write), two_blocks), "memory-race");
  EXPECT_EQ(found(of_two_blocks(see, see), two_blocks), "");
  EXPECT_EQ(found(of_two_blocks(write, "ld.global.u32 r6, [data+4];\n"), two_blocks), "");
  const auto handed_over = [&](const std::string& set, const std::string& get) {
    return of_two_blocks(write + set, get + see + keep);
  };
  EXPECT_EQ(found(handed_over("st.release.gpu.global.u32 [counter], 1;\n",
                              poll("ld.acquire.gpu.global", "counter")),
                  two_blocks),
            "");
  // Scopes that do not reach the other CTA.
  EXPECT_EQ(found(handed_over("st.release.cta.global.u32 [counter], 1;\n",
                              poll("ld.acquire.gpu.global", "counter")),
                  two_blocks),
            "memory-race");
  EXPECT_EQ(found(handed_over("fence.acq_rel.cta;\nst.relaxed.gpu.global.u32 [counter], 1;\n",
                              poll("ld.acquire.gpu.global", "counter")),
                  two_blocks),
            "memory-race");
  EXPECT_EQ(found(handed_over("membar.gl;\nst.volatile.global.u32 [counter], 1;\n",
                              poll("ld.volatile.global", "counter") + "membar.gl;\n"),
                  two_blocks),
            "");
  EXPECT_EQ(found(handed_over("fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [counter], 1;\n",
                              poll("ld.acquire.gpu.global", "counter")),
                  two_blocks),
            "");
  EXPECT_EQ(found(handed_over("red.relaxed.gpu.global.add.u32 [counter], 1;\n",
                              poll("ld.acquire.gpu.global", "counter")),
                  two_blocks),
            "memory-race");
}

// Cells remember a few of the many that read them.
TEST(MemoryRaces, ReadByAllTheGrid) {
  const Launch grid{.grid = {40}, .block = {128}};
  const std::string read = "ld.global.u32 r6, [data+8];\n";
  const auto written_by = [&](int block, const std::string& before) {
    return found(fmt::format("mov.u32 r2, %ctaid.x;\n{}{}setp.eq.u32 q, r2, {};\n"
                             "setp.eq.and.u32 q, r0, 5, q;\n@q st.global.u32 [data+8], 7;\n",
                             read, before, block),
                 grid);
  };
  for (const int block : {0, 1, 17, 39}) {
    EXPECT_EQ(written_by(block, "bar.sync 0;\n"), "memory-race") << block;
    EXPECT_EQ(written_by(block, ""), "memory-race") << block;
  }
  EXPECT_EQ(written_by(40, ""), "");
}

TEST(MemoryRaces, AtomicsOfTwoBlocks) {
  EXPECT_EQ(found("red.global.add.u32 [counter], 1;\n", two_blocks), "");
  EXPECT_EQ(found("red.cta.global.add.u32 [counter], 1;\n", two_blocks), "memory-race");
  EXPECT_EQ(found("red.cta.global.add.u32 [counter], 1;\n", two_warps), "");
}

// The last CTA to come adds up what all have left.
TEST(MemoryRaces, TheLastBlock) {
  const auto last = [](const std::string& before, const std::string& atomic) {
    return "mov.u32 r2, %ctaid.x;\nmul.wide.u32 rd2, r2, 4;\nmov.u64 rd3, data;\n"
           "add.u64 rd2, rd2, rd3;\nsetp.ne.u32 q, r0, 5;\n@!q st.global.u32 [rd2], r2;\n" +
           before + "setp.ne.u32 q, r0, 0;\n@q bra END;\n" + atomic +
           "setp.ne.u32 q, r6, 1;\n@q bra END;\nld.global.u32 r6, [data];\n"
           "ld.global.u32 r7, [data+4];\nEND:\n";
  };
  const std::string both = "atom.acq_rel.gpu.global.add.u32 r6, [counter], 1;\n";
  EXPECT_EQ(found(last("bar.sync 0;\n", both), two_blocks), "");
  EXPECT_EQ(found(last("", both), two_blocks), "memory-race");
  EXPECT_EQ(found(last("bar.sync 0;\n", "atom.release.gpu.global.add.u32 r6, [counter], 1;\n"),
                  two_blocks),
            "memory-race");
  EXPECT_EQ(found(last("bar.sync 0;\n",
                       "membar.gl;\natom.global.add.u32 r6, [counter], 1;\n"
                       "membar.gl;\n"),
                  two_blocks),
            "");
}

TEST(MemoryRaces, ClusterMemory) {
  const Launch pair{.grid = {2}, .block = {32}, .cluster = {2}};
  const auto body = [](const std::string& between) {
    return "mov.u32 r2, %cluster_ctarank;\nxor.b32 r3, r2, 1;\nmov.u32 r4, tile;\nshl.b32 r5, r0, "
           "2;\nadd.u32 r4, r4, r5;\nmapa.shared::cluster.u32 r5, r4, r3;\n"
           "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
           "st.shared::cluster.u32 [r5], r0;\n" +
           between +
           "ld.shared.u32 r6, [r4];\n"
           "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  };
  EXPECT_EQ(found(body("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"), pair),
            "");
  EXPECT_EQ(found(body("bar.sync 0;\n"), pair), "memory-race");
  EXPECT_EQ(
      found(body("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n"), pair),
      "memory-race");
  EXPECT_EQ(found(body("fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\n"
                       "barrier.cluster.wait.aligned;\n"),
                  pair),
            "");
}

// tests/data/cuda/two_barriers.cu: a barrier of some warps completes while others wait at another.
TEST(EmulatorRaces, BarriersOfSomeWhileOthersWait) {
  const auto steps = [](const std::string& writers, const std::string& readers,
                        const std::string& all) {
    return found(words(128, 256) +
                     "mov.u32 r7, 0;\nmov.u32 r10, 0;\nAGAIN:\nand.b32 r8, r7, 1;\n"
                     "shl.b32 r8, r8, 10;\nadd.u32 r9, r5, r8;\nadd.u32 r8, r4, r8;\n"
                     "setp.ge.u32 q, r0, 128;\n@q bra READER;\n" +
                     writers + "st.shared.u32 [r8], r7;\nmov.u32 r9, r8;\nbra MEET;\nREADER:\n" +
                     readers + "MEET:\n" + all +
                     "ld.shared.u32 r6, [r9];\nadd.u32 r10, r10, r6;\nadd.u32 r7, r7, 1;\n"
                     "setp.lt.u32 q, r7, 6;\n@q bra AGAIN;\nst.global.u32 [rd1], r10;\n",
                 {.grid = {1}, .block = {256}});
  };
  const std::string sync = "bar.sync 1, 256;\n", meet = "bar.sync 0;\n";
  EXPECT_EQ(steps("", "", meet), "");
  EXPECT_EQ(steps("bar.sync 1, 128;\n", "", meet), "");
  EXPECT_EQ(steps(sync, "bar.arrive 1, 256;\n", meet), "");
  EXPECT_EQ(steps(sync, sync, meet), "");
  EXPECT_EQ(steps("", "", ""), "memory-race");
  EXPECT_EQ(steps("bar.sync 1, 128;\n", "", ""), "memory-race");
  // The arrival comes before what its thread reads.
  EXPECT_EQ(steps(sync, "bar.arrive 1, 256;\n", ""), "memory-race");
}

}  // namespace
}  // namespace tartan::test
