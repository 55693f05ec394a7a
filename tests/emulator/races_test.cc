// SPDX-License-Identifier: Apache-2.0
// Races and missing fences around asynchronous copies that Order sees, and right kernels in which
// it must see none.
#include <gtest/gtest.h>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const std::string shared =
    ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 full;\n"
    ".shared .align 8 .b64 empty;\n";
const std::string init = R"(
mov.u32 r1, tile;
mov.u64 rd4, tile;
cvta.shared.u64 rd4, rd4;
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [full], 1;
mbarrier.init.shared::cta.b64 [empty], 1;
READY:
bar.sync 0;
)";
const std::string copy =
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [rd0], 1024, "
    "[full];\n";

// The finding's message and id, or nothing.
std::string found(const std::string& body, Launch launch = {.grid = {1}, .block = {64}}) {
  const KernelRun run = run_body(body, launch, 1024, {}, shared);
  EXPECT_EQ(run.complaint, "");
  return run.findings.empty() ? "" : run.findings[0].message + " [" + run.findings[0].id + "]";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whatever reads the box, in front of the wait and behind it.
TEST(EmulatorRaces, EveryWayToReadABox) {
  const std::string first = init + "@q bra THERE;\n" + copy + "THERE:\nbar.sync 0;\n";
  for (const std::string access :
       {"ld.shared.u32 r5, [r1];", "ld.u32 r5, [rd4];", "ld.shared::cluster.u32 r5, [r1];",
        "atom.shared.add.u32 r5, [r1], 0;", "red.shared.add.u32 [r1], 0;",
        "atom.add.u32 r5, [rd4], 0;", "ldmatrix.sync.aligned.m8n8.x1.b16 {r5}, [rd4];",
        "wmma.load.c.sync.aligned.row.m16n16k16.f32 {f0, f1, f2, f3, f4, f5, f6, f7}, [rd4], 16;",
        "st.shared.u32 [r1], r0;", "st.u32 [rd4], r0;"}) {
    const std::string message = found(first + access);
    EXPECT_TRUE(holds(message, "the copy may still be under way")) << access << " " << message;
    EXPECT_TRUE(holds(message, "[asynchronous-race]")) << access << " " << message;
    EXPECT_EQ(found(first + wait("full", "SPIN") + access), "") << access;
  }
}

// Two rounds through one stage, of which the second warp changes the first 16 bytes and loads.
std::string ring(const std::string& consumer) {
  return found(init + "setp.ge.u32 p, r0, 32;\n@p bra CONSUMER;\n@q bra END;\n" + copy +
               wait("empty", "W0") + copy + "bra END;\nCONSUMER:\n" + wait("full", "W1") +
               "setp.ne.u32 q, r0, 32;\n" + consumer + "END:\n");
}

TEST(EmulatorRaces, LoadsOfAStageThatWasChanged) {
  const std::string release = "@!q mbarrier.arrive.shared::cta.b64 _, [empty];\n",
                    change = "@!q st.shared.u32 [r1], r0;\nfence.proxy.async.shared::cta;\n",
                    load = "ld.shared.u32 r9, [r1];\n";
  const std::string together = "bar.warp.sync -1;\n", done = load + together + release;
  EXPECT_TRUE(holds(ring(release + load), "is read by ld.shared.u32 on line"));
  EXPECT_TRUE(holds(ring(change + release + together + load), "is read by ld.shared.u32 on line"));
  EXPECT_TRUE(holds(ring(change + together + load + release), "by thread 33 (warp 1, lane 1)"));
  EXPECT_EQ(ring(change + together + done), "");
  EXPECT_EQ(ring(change + together + done + wait("full", "W2", 1) + load), "");
}

TEST(EmulatorRaces, EveryWriterFences) {
  const std::string out =
      "@q bra END;\ncp.async.bulk.global.shared::cta.bulk_group [rd0], [tile], 1024;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n";
  const std::string address = init + "mul.lo.u32 r3, r0, 16;\nadd.u32 r3, r3, r1;\n";
  const std::string store = "st.shared.u32 [r3], r0;\n", fence = "fence.proxy.async.shared::cta;\n";
  const std::string half = "setp.ge.u32 p, r0, 32;\n@p " + fence;
  const std::string fragment =
      "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [r1], {f0, f1, f2, f3, f4, f5, f6, f7}, "
      "16;\n";
  EXPECT_TRUE(holds(found(address + store + "bar.sync 0;\n" + out), "[proxy-fence]"));
  EXPECT_TRUE(holds(found(address + store + half + "bar.sync 0;\n" + out), "[proxy-fence]"));
  EXPECT_TRUE(holds(found(address + fence + store + "bar.sync 0;\n" + out), "[proxy-fence]"));
  EXPECT_TRUE(holds(found(address + fragment + "bar.sync 0;\n" + out), "[proxy-fence]"));
  EXPECT_EQ(found(address + store + fence + "bar.sync 0;\n" + out), "");
  EXPECT_EQ(found(address + fragment + fence + "bar.sync 0;\n" + out), "");
  // One who knows of all stores may fence for all.
  EXPECT_EQ(found(address + store + "bar.sync 0;\n" + fence + out), "");
}

// Block 0 sends words to block 1, whose thread 0 has made the mbarrier.
std::string sent(const std::string& receiver, const std::string& sender) {
  const std::string meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  return found(
      "mov.u32 r1, tile;\nsetp.ne.u32 q, r0, 0;\nmov.u32 r2, %cluster_ctarank;\n"
      "setp.eq.u32 p, r2, 0;\n@p bra SEND;\n@q bra HERE;\n"
      "mbarrier.init.shared::cta.b64 [full], 1;\nmbarrier.init.shared::cta.b64 [empty], "
      "1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 8;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [empty], 4;\nHERE:\n" +
          meet + receiver + "bra END;\nSEND:\n" + meet +
          "@q bra END;\nmapa.shared::cluster.u32 r3, r1, 1;\nmov.u32 r4, full;\n"
          "mapa.shared::cluster.u32 r4, r4, 1;\nmov.u32 r6, empty;\n"
          "mapa.shared::cluster.u32 r6, r6, 1;\n" +
          sender + "END:\n" + meet,
      {.grid = {2}, .block = {32}, .cluster = {2, 1, 1}});
}

TEST(EmulatorRaces, AsynchronousStores) {
  const auto store = [](int at, const std::string& barrier) {
    return "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [r3+" + std::to_string(at) +
           "], r0, [" + barrier + "];\n";
  };
  const std::string both = store(0, "r4") + store(4, "r4");
  EXPECT_TRUE(holds(sent("LATE:\nadd.u32 r9, r9, 1;\nsetp.lt.u32 p, r9, 20000;\n@p bra LATE;\n"
                         "ld.shared.u32 r5, [r1];\n",
                         both),
                    "the asynchronous operation may still be under way"));
  EXPECT_EQ(sent(wait("full", "SPIN") + "ld.shared.v2.u32 {r5, r6}, [r1];\n", both), "");
  // Words of 16 bytes with an mbarrier each: every one counts for its own.
  EXPECT_EQ(sent(wait("full", "SPIN") + "ld.shared.v2.u32 {r5, r6}, [r1];\n" +
                     wait("empty", "MORE") + "ld.shared.u32 r7, [r1+12];\n",
                 both + store(12, "r6")),
            "");
}

TEST(EmulatorRaces, SourceOfACopyBetweenBlocks) {
  const auto run = [](const std::string& behind) {
    return sent(wait("full", "SPIN"),
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [r3], "
                "[tile], 16, [r4];\n" +
                    behind);
  };
  EXPECT_TRUE(holds(run("st.shared.u32 [tile], r0;\n"), "may still be under way"));
}

TEST(EmulatorRaces, PlacesOfMbarriers) {
  const auto complaint = [](const std::string& body) {
    const auto run =
        run_body(body, {.grid = {2}, .block = {1}, .cluster = {2, 1, 1}}, 64, {}, shared);
    return run.complaint + (run.findings.empty() ? "" : run.findings[0].message);
  };
  const std::string remote =
      "mov.u32 r1, full;\nmbarrier.init.shared::cta.b64 [full], 4;\nbarrier.cluster.arrive;\n"
      "barrier.cluster.wait;\nmapa.shared::cluster.u32 r2, r1, 1;\nmov.u64 rd4, full;\n"
      "cvta.shared.u64 rd4, rd4;\nmov.u32 r5, %cluster_ctarank;\nxor.b32 r5, r5, 1;\n"
      "mapa.u64 rd5, rd4, r5;\n";
  const std::string end = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  for (const std::string good :
       {"mbarrier.arrive.shared::cluster.b64 _, [r2];\n",
        "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [r2], 4;\n",
        "mbarrier.arrive.b64 _, [rd5];\n", "mbarrier.inval.b64 [rd4];\n"})
    EXPECT_EQ(complaint(remote + good + end), "") << good;
  for (const std::string bad :
       {"mbarrier.arrive.shared::cluster.b64 rd6, [r2];\n",
        "mbarrier.try_wait.parity.shared::cluster.b64 p, [r2], 1;\n",
        "mbarrier.init.shared::cluster.b64 [r2], 1;\n", "mbarrier.arrive.b64 rd6, [rd5];\n",
        "mbarrier.inval.b64 [rd5];\n", "mbarrier.try_wait.parity.b64 p, [rd5], 1;\n",
        "mbarrier.init.b64 [rd0], 1;\n"})
    EXPECT_TRUE(holds(complaint(remote + bad + end), "own CTA")) << bad;
}

TEST(EmulatorRaces, MbarriersCountSoManyBytes) {
  const std::string most = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 1048575;\n";
  EXPECT_EQ(found(init + "@q exit;\n" + most), "");
  EXPECT_TRUE(holds(found(init + "@q exit;\n" + most +
                          "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 1;\n"),
                    "at most 1048575 in total"));
}

// The same mbarrier again and again: its phases start anew, and the clocks do not grow.
TEST(EmulatorRaces, MbarriersThatAreMadeAgain) {
  const std::string body = init + "@q exit;\nmov.u32 r3, 0;\nAGAIN:\n" + copy +
                           wait("full", "SPIN") +
                           "mbarrier.inval.shared::cta.b64 [full];\n"
                           "mbarrier.init.shared::cta.b64 [full], 1;\nadd.u32 r3, r3, 1;\n"
                           "setp.lt.u32 p, r3, 1000;\n@p bra AGAIN;\n";
  EXPECT_EQ(found(body), "");
  EXPECT_TRUE(holds(found(body + copy + "ld.shared.u32 r5, [tile];\n"), "(parity 0)"));
}

}  // namespace
}  // namespace tartan::test
