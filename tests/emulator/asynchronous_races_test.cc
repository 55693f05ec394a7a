// SPDX-License-Identifier: Apache-2.0
// Races in which copies, asynchronous stores and mbarriers take part: each mistake beside kernels
// that are nearly the same and right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const Launch two_warps{.grid = {1}, .block = {64}}, two_blocks{.grid = {2}, .block = {64}},
    pair{.grid = {2}, .block = {64}, .cluster = {2}};

const std::string shared =
    ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 done;\n"
    ".shared .align 4 .u32 flag;\n.global .align 128 .u32 data[256];\n";

// The ids of the findings, each once. Most of these kernels end without a wait for their copies:
// what is said of that counts with `at_exit` alone.
std::string found(const std::string& body, const Launch& launch = two_warps, bool at_exit = false) {
  DeviceOptions options;
  options.checks = Checks::all;
  const KernelRun run = run_body(body, launch, 4096, options, shared);
  EXPECT_EQ(run.complaint, "") << body;
  std::string ids;
  for (const Finding& each : run.findings) {
    if (each.message.find("its CTA may have exited") != std::string::npos && !at_exit) continue;
    if (ids.find(each.id) == std::string::npos) ids += (ids.empty() ? "" : " ") + each.id;
  }
  return ids;
}

// r4: the thread's word of the tile.
const std::string init = R"(
mov.u32 r4, tile;
shl.b32 r3, r0, 2;
add.u32 r4, r4, r3;
mov.u32 r1, bar;
mov.u32 r2, done;
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.init.shared::cta.b64 [done], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
)";
const std::string load = "ld.shared.u32 r5, [r4];\n", store = "st.shared.u32 [r4], r0;\n",
                  fence = "fence.proxy.async;\n", barrier = "bar.sync 0;\n",
                  together = "bar.warp.sync -1;\n";

// Code of thread 0 alone; `label` names its end.
std::string alone(const std::string& body, const std::string& label) {
  return "setp.ne.u32 q, r0, 0;\n@q bra " + label + ";\n" + body + label + ":\n";
}
std::string expect(const std::string& mbarrier, int bytes = 256) {
  return fmt::format("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};\n", mbarrier, bytes);
}
std::string copy(const std::string& mbarrier, int bytes = 256, int to = 0) {
  return fmt::format(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+{}], [rd0+4096], "
      "{}, [{}];\n",
      to, bytes, mbarrier);
}
const std::string fill = alone(expect("bar") + copy("bar"), "FILLED");

TEST(AsynchronousRaces, CopyThenLoad) {
  EXPECT_EQ(found(init + fill + wait("bar", "W") + load), "");
  EXPECT_EQ(found(init + fill + alone(wait("bar", "W"), "WAITED") + barrier + load), "");
  EXPECT_EQ(found(init + fill + alone(wait("bar", "W") + load, "END")), "");
  // Lane 0 tells its own warp.
  const std::string first_warp = "setp.ge.u32 p, r0, 32;\n@p bra END;\n";
  EXPECT_EQ(found(init + fill + first_warp + alone(wait("bar", "W"), "WAITED") + together + load +
                  "END:\n"),
            "");
  EXPECT_EQ(found(init + fill + load), "asynchronous-race");
  EXPECT_EQ(found(init + fill + barrier + load), "asynchronous-race");
  EXPECT_EQ(found(init + fill + alone(wait("bar", "W"), "WAITED") + load), "asynchronous-race");
  EXPECT_EQ(found(init + fill + first_warp + alone(wait("bar", "W"), "WAITED") + load + "END:\n"),
            "asynchronous-race");
}

TEST(AsynchronousRaces, LoadThenCopy) {
  const std::string before = init + store + fence + barrier + load + fence;
  EXPECT_EQ(found(before + barrier + fill), "");
  EXPECT_EQ(found(before + "setp.ge.u32 p, r0, 32;\n@p bra OTHER;\nbar.sync 1, 64;\n" + fill +
                  "bra END;\nOTHER:\nbar.arrive 1, 64;\nEND:\n"),
            "");
  EXPECT_EQ(found(init + alone("ld.shared.u32 r5, [tile];\n" + fence + expect("bar") + copy("bar"),
                               "END")),
            "");
  EXPECT_EQ(found(init + "ld.shared.u32 r5, [r4+512];\n" + fill), "");
  EXPECT_EQ(found(before + fill), "asynchronous-race");
  EXPECT_EQ(found(before + together + fill), "asynchronous-race");
  EXPECT_EQ(found(before + "setp.ge.u32 p, r0, 32;\n@p bra OTHER;\nbar.arrive 1, 64;\n" + fill +
                  "bra END;\nOTHER:\nbar.sync 1, 64;\nEND:\n"),
            "asynchronous-race");
  EXPECT_EQ(found(init + load + "fence.proxy.async;\n" + fill), "asynchronous-race");
}

TEST(AsynchronousRaces, StoreThenCopy) {
  EXPECT_EQ(found(init + store + fence + barrier + fill), "");
  EXPECT_EQ(found(init + store + barrier + fence + fill), "");  // on the way, at the copy's thread
  EXPECT_EQ(found(init + store + "fence.proxy.async.shared::cta;\n" + barrier + fill), "");
  EXPECT_EQ(found(init +
                  alone("st.shared.u32 [tile], 1;\n" + fence + expect("bar") + copy("bar"), "END")),
            "");
  EXPECT_EQ(found(init + store + barrier + fill), "proxy-fence");
  EXPECT_EQ(found(init + store + "membar.gl;\n" + barrier + fill), "proxy-fence");
  EXPECT_EQ(found(init + store + "fence.proxy.async.global;\n" + barrier + fill), "proxy-fence");
  EXPECT_EQ(found(init + fence + store + barrier + fill), "proxy-fence");
  EXPECT_EQ(found(init + alone("st.shared.u32 [tile], 1;\n" + expect("bar") + copy("bar"), "END")),
            "proxy-fence");
  EXPECT_EQ(found(init + store + fence + fill), "asynchronous-race");
}

TEST(AsynchronousRaces, CopyThenStore) {
  EXPECT_EQ(found(init + fill + wait("bar", "W") + store), "");
  EXPECT_EQ(found(init + fill + alone(wait("bar", "W"), "WAITED") + barrier + store), "");
  EXPECT_EQ(found(init + fill + "st.shared.u32 [r4+256], r0;\n"), "");
  EXPECT_EQ(
      found(init + fill + wait("bar", "W") + barrier + alone(expect("done") + copy("done"), "END")),
      "");
  EXPECT_EQ(found(init + fill + store), "asynchronous-race");
  EXPECT_EQ(found(init + fill + barrier + store), "asynchronous-race");
  EXPECT_EQ(found(init + fill + alone(expect("done") + copy("done"), "END")), "asynchronous-race");
  // Both in one phase.
  EXPECT_EQ(found(init + alone(expect("bar", 512) + copy("bar") + copy("bar"), "END")),
            "asynchronous-race");
  EXPECT_EQ(found(init + alone(expect("bar", 512) + copy("bar") + copy("bar", 256, 256), "END")),
            "");
}

TEST(AsynchronousRaces, CopyWhoseBytesWereNotExpected) {
  // The second copy completes in the next phase.
  const std::string both =
      init + alone(expect("bar", 128) + copy("bar", 128) + copy("bar", 128, 128), "FILLED") +
      wait("bar", "W");
  EXPECT_EQ(found(both + "setp.ge.u32 p, r0, 32;\n@p bra END;\n" + load + "END:\n"), "");
  EXPECT_EQ(found(both + load), "asynchronous-race");
}

// The thread that stores, and what others do then.
const std::string out = alone(
    "cp.async.bulk.global.shared::cta.bulk_group [rd0], [tile], 256;\n"
    "cp.async.bulk.commit_group;\n",
    "STORED");
const std::string filled = init + store + fence + barrier;

TEST(AsynchronousRaces, SourceOfACopyOut) {
  const auto waits = [](const std::string& groups) {
    return alone("cp.async.bulk.wait_group" + groups + ";\n", "WAITED");
  };
  EXPECT_EQ(found(filled + out + waits(".read 0") + barrier + store), "");
  EXPECT_EQ(found(filled + out + waits(" 0") + barrier + store), "");
  EXPECT_EQ(found(filled + out + load), "");
  EXPECT_EQ(found(filled + out + "st.shared.u32 [r4+256], r0;\n"), "");
  EXPECT_EQ(found(filled + out + barrier + store), "asynchronous-race");
  EXPECT_EQ(found(filled + out + waits(".read 0") + store), "asynchronous-race");
  EXPECT_EQ(found(filled + out + waits(".read 1") + barrier + store), "asynchronous-race");
  EXPECT_EQ(found(filled + out + barrier + fill), "asynchronous-race");
  EXPECT_EQ(found(init + store + barrier + out), "proxy-fence");
  EXPECT_EQ(found(init + store + fence + out), "asynchronous-race");
}

TEST(AsynchronousRaces, CopiesThatOutliveTheirBlock) {
  const auto at_exit = [](const std::string& body) { return found(body, two_warps, true); };
  const auto waits = [](const std::string& what) { return alone(what, "WAITED"); };
  const std::string sent = filled + out;
  EXPECT_EQ(at_exit(sent + waits("cp.async.bulk.wait_group.read 0;\n")), "");
  EXPECT_EQ(at_exit(sent + waits("cp.async.bulk.wait_group 0;\n")), "");
  EXPECT_EQ(at_exit(init + fill + wait("bar", "W")), "");
  EXPECT_EQ(at_exit(init + fill + waits(wait("bar", "W"))), "");
  EXPECT_EQ(at_exit(sent), "store-at-exit");
  EXPECT_EQ(at_exit(sent + waits("cp.async.bulk.wait_group.read 1;\n")), "store-at-exit");
  EXPECT_EQ(at_exit(init + fill), "asynchronous-race");
  // Thread 1 waits for groups of its own.
  EXPECT_EQ(at_exit(sent + "setp.ne.u32 p, r0, 1;\n@p bra END;\ncp.async.bulk.wait_group 0;\n"
                           "END:\n"),
            "store-at-exit");
}

TEST(AsynchronousRaces, WhatACopyOutHasWritten) {
  const auto then = [](const std::string& wait, const std::string& access) {
    return found(filled + out + alone(wait, "WAITED") + barrier + access);
  };
  const std::string all = "cp.async.bulk.wait_group 0;\n", read = "ld.global.u32 r6, [rd1];\n",
                    write = "st.global.u32 [rd1], r0;\n";
  EXPECT_EQ(then(all, read), "");
  EXPECT_EQ(then(all, write), "");
  EXPECT_EQ(then("", "ld.global.u32 r6, [rd1+256];\n"), "");
  EXPECT_EQ(then("cp.async.bulk.wait_group.read 0;\n", read), "asynchronous-race");
  EXPECT_EQ(then("", read), "asynchronous-race");
  EXPECT_EQ(then("cp.async.bulk.wait_group.read 0;\n", write), "asynchronous-race");
  EXPECT_EQ(then("cp.async.bulk.wait_group 1;\n", write), "asynchronous-race");
  // Two blocks to the same place.
  EXPECT_EQ(found(filled + out, two_blocks), "asynchronous-race");
}

TEST(AsynchronousRaces, Reductions) {
  const std::string add = alone(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [rd0], [tile], 256;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
      "ADDED");
  const std::string of_block_1 = "mov.u32 r7, %ctaid.x;\nsetp.eq.u32 p, r7, 0;\n@p bra END;\n";
  EXPECT_EQ(found(filled + add, two_blocks), "");
  EXPECT_EQ(found(filled + add + of_block_1 + "red.global.add.u32 [rd1], 1;\nEND:\n", two_blocks),
            "");
  EXPECT_EQ(found(filled + add + barrier + "ld.global.u32 r6, [rd1];\n"), "");
  EXPECT_EQ(found("red.global.add.u32 [rd1], 1;\n" + filled + add, two_blocks), "");
  EXPECT_EQ(found(filled + add + of_block_1 + "st.global.u32 [rd1+1024], 1;\nEND:\n", two_blocks),
            "");
  EXPECT_EQ(
      found(filled + add + of_block_1 + barrier + "st.global.u32 [rd1], 1;\nEND:\n", two_blocks),
      "asynchronous-race");
  EXPECT_EQ(
      found(filled + add + of_block_1 + barrier + "ld.global.u32 r6, [rd1];\nEND:\n", two_blocks),
      "asynchronous-race");
  EXPECT_EQ(found(filled + add + "ld.global.u32 r6, [rd1];\n"), "asynchronous-race");
  EXPECT_EQ(found(filled + add + out, two_blocks), "asynchronous-race");
}

// Thread 0 of block 1 stores a word to the tile of block 0, whose threads then do `body`.
std::string to_peer(const std::string& body, const std::string& more = "") {
  return init +
         "barrier.cluster.arrive;\nbarrier.cluster.wait;\nmov.u32 r7, %cluster_ctarank;\n"
         "setp.eq.u32 p, r7, 0;\n@p bra HERE;\n" +
         alone(
             "mapa.shared::cluster.u32 r8, r4, 0;\nmapa.shared::cluster.u32 r9, r1, 0;\n"
             "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [r8], r0, [r9];\n" +
                 more,
             "SENT") +
         "bra END;\nHERE:\n" + alone(expect("bar", 4), "EXPECTED") + body +
         "END:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
}

TEST(AsynchronousRaces, StoresToAPeer) {
  const std::string word = "ld.shared.u32 r5, [tile];\n";
  EXPECT_EQ(found(to_peer(wait("bar", "W") + word), pair), "");
  EXPECT_EQ(found(to_peer(alone(wait("bar", "W"), "WAITED") + barrier + word), pair), "");
  EXPECT_EQ(found(to_peer("ld.shared.u32 r5, [tile+4];\n" + wait("bar", "W")), pair), "");
  EXPECT_EQ(found(to_peer(wait("bar", "W") + barrier + store), pair), "");
  EXPECT_EQ(found(to_peer(word + wait("bar", "W")), pair), "asynchronous-race");
  EXPECT_EQ(found(to_peer(alone(wait("bar", "W"), "WAITED") + word), pair), "asynchronous-race");
  EXPECT_EQ(found(to_peer(store + wait("bar", "W") + load), pair), "asynchronous-race");
  EXPECT_EQ(found(to_peer(store + wait("bar", "W")), pair), "asynchronous-race");
}

// Thread 0 of block 0 fills the tiles of both.
std::string multicast(const std::string& body, const std::string& before = "") {
  return init + before + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" +
         alone(expect("bar"), "EXPECTED") +
         "mov.u32 r7, %cluster_ctarank;\nsetp.ne.u32 p, r7, 0;\n@p bra SENT;\n" +
         "setp.ne.u32 p, r0, 0;\n@p bra SENT;\nmov.u16 h, 3;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
         "[tile], [rd0+4096], 256, [bar], h;\nSENT:\n" +
         body + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
}

TEST(AsynchronousRaces, Multicast) {
  const std::string half = ".reg .b16 h;\n";
  const auto is = [&](const std::string& body, const std::string& before = "") {
    return found(half + multicast(body, before), pair);
  };
  EXPECT_EQ(is(wait("bar", "W") + load), "");
  EXPECT_EQ(is(alone(wait("bar", "W"), "WAITED") + barrier + load), "");
  EXPECT_EQ(is(wait("bar", "W") + store), "");
  EXPECT_EQ(is(wait("bar", "W") + load, store + fence), "");
  EXPECT_EQ(is(load + wait("bar", "W")), "asynchronous-race");
  EXPECT_EQ(is(alone(wait("bar", "W"), "WAITED") + load), "asynchronous-race");
  EXPECT_EQ(is(store + wait("bar", "W")), "asynchronous-race");
  EXPECT_EQ(is(wait("bar", "W") + load, store), "proxy-fence");
}

TEST(AsynchronousRaces, Mbarriers) {
  const std::string once = "setp.eq.u32 p, r0, 0;\n@p mbarrier.init.shared::cta.b64 [bar], 64;\n",
                    arrive = "mbarrier.arrive.shared::cta.b64 _, [bar];\n",
                    over = "setp.eq.u32 q, r0, 0;\n@q mbarrier.inval.shared::cta.b64 [bar];\n";
  EXPECT_EQ(found(once + barrier + arrive + wait("bar", "W")), "");
  EXPECT_EQ(found(once + barrier + arrive + wait("bar", "W") + barrier + over), "");
  EXPECT_EQ(found(once + barrier + arrive + wait("bar", "W") + barrier + over + barrier + once +
                  barrier + arrive + wait("bar", "X")),
            "");
  EXPECT_EQ(
      found(once + barrier + arrive + wait("bar", "W") + barrier + "st.shared.u32 [flag], r0;\n"),
      "memory-race");
  EXPECT_EQ(found(once + "bar.warp.sync -1;\nsetp.ge.u32 q, r0, 32;\n@q nanosleep.u32 1000;\n" +
                  arrive + wait("bar", "W")),
            "mbarrier");
  EXPECT_EQ(found(arrive), "mbarrier");
  EXPECT_EQ(found(once + barrier + arrive + wait("bar", "W") + over), "mbarrier");
  EXPECT_EQ(found(once + barrier + arrive + wait("bar", "W") + "bar.warp.sync -1;\n" + over),
            "mbarrier");
}

// PTX ISA 9.0, 8.9.1.1: the arrival of cp.async.mbarrier.arrive is ordered behind the thread's
// copies, and behind nothing else that it did.
TEST(AsynchronousRaces, ArrivalsOfCopiesTellOfCopiesAlone) {
  const std::string
      begin =
          "mov.u32 r4, tile;\nand.b32 r6, r0, 31;\nshl.b32 r3, r6, 2;\nadd.u32 r4, r4, r3;\n"
          "cvt.u64.u32 rd2, r3;\nadd.u64 rd2, rd2, rd0;\n"
          "setp.eq.u32 p, r0, 0;\n@p mbarrier.init.shared::cta.b64 [bar], 32;\nbar.sync 0;\n"
          "setp.ge.u32 q, r0, 32;\n@q bra TAKE;\n",
      copy = "cp.async.ca.shared.global [r4], [rd2], 4;\n", fill = "st.shared.u32 [r4+128], r0;\n",
      told = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];\n",
      arrive = "mbarrier.arrive.shared::cta.b64 _, [bar];\n",
      take = "bra END;\nTAKE:\n" + wait("bar", "W"), copied = "ld.shared.u32 r5, [r4];\n",
      filled = "ld.shared.u32 r5, [r4+128];\n", end = "END:\n";
  EXPECT_EQ(found(begin + copy + told + take + copied + end), "");
  EXPECT_EQ(found(begin + fill + copy + told + take + copied + end), "");
  EXPECT_EQ(found(begin + fill + copy + told + take + filled + end), "memory-race");
  EXPECT_EQ(found(begin + fill + told + take + filled + end), "memory-race");
  EXPECT_EQ(
      found(begin + fill + copy + "cp.async.wait_all;\n" + arrive + take + copied + filled + end),
      "");
  EXPECT_EQ(found(begin + told + copy + take + copied + end), "asynchronous-race");
  // The mbarrier itself: its phase is over when the copies have arrived.
  const std::string over = "setp.eq.u32 q, r0, 32;\n@q mbarrier.inval.shared::cta.b64 [bar];\n";
  EXPECT_EQ(found(begin + copy + told + take + "bar.warp.sync -1;\n" + over + end), "");
}

// libcu++'s cuda::pipeline: one lane of those that come to match.any speaks for them, and the last
// one to count itself down invalidates the mbarriers.
TEST(AsynchronousRaces, MbarriersInvalidatedByOneLaneForOthers) {
  const std::string once =
                        "setp.eq.u32 p, r0, 0;\n@p mbarrier.init.shared::cta.b64 [bar], 64;\n"
                        "@p st.relaxed.cta.shared.u32 [flag], 64;\n",
                    use = "mbarrier.arrive.shared::cta.b64 _, [bar];\n" + wait("bar", "W"),
                    match = "match.any.sync.b32 r6, r1, -1;\n",
                    elect = "and.b32 r7, r0, 31;\nsetp.ne.u32 q, r7, 31;\n@q bra END;\n",
                    count =
                        "fence.sc.cta;\natom.add.acquire.cta.shared.u32 r8, [flag], -32;\n"
                        "setp.ne.u32 q, r8, 32;\n@q bra END;\n",
                    over = "mbarrier.inval.shared::cta.b64 [bar];\nEND:\n";
  EXPECT_EQ(found(once + barrier + use + match + elect + count + over), "");
  // Without the collective, the fence, or with a use that comes behind it.
  EXPECT_EQ(found(once + barrier + use + elect + count + over), "mbarrier");
  const std::string relaxed =
      "atom.add.relaxed.cta.shared.u32 r8, [flag], -32;\nsetp.ne.u32 q, r8, 32;\n@q bra END;\n";
  EXPECT_EQ(found(once + barrier + use + match + elect + relaxed + over), "mbarrier");
  EXPECT_EQ(
      found(once + barrier + use + match +
            "mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 0;\n" + elect + count + over),
      "mbarrier");
}

TEST(AsynchronousRaces, StrongWritesHideNoWeakOnes) {
  const std::string of_block_0 = "mov.u32 r7, %ctaid.x;\nsetp.ne.u32 p, r7, 0;\n@p bra ADD;\n",
                    add = "ADD:\nred.global.add.u32 [rd1], 1;\n";
  EXPECT_EQ(found(of_block_0 + "st.global.u32 [rd1], 0;\n" + add, two_blocks), "memory-race");
  EXPECT_EQ(found(of_block_0 + "ld.global.u32 r6, [rd1];\n" + add, two_blocks), "memory-race");
  EXPECT_EQ(found(of_block_0 + "st.relaxed.gpu.global.u32 [rd1], 0;\n" + add, two_blocks), "");
  EXPECT_EQ(found(of_block_0 + "st.global.u32 [rd1+1024], 0;\n" + add, two_blocks), "");
}

}  // namespace
}  // namespace tartan::test
