// SPDX-License-Identifier: Apache-2.0
// The mistakes that people made with tcgen05, each as a wrong program and a right one: what finds
// it, and that nothing is said of the right one. docs/blackwell.md has the same list, by the same
// numbers. TARTAN_DUMP=FOLDER writes the programs.
#include <gtest/gtest.h>

#include "tests/emulator/tensor_mistakes.h"

namespace tartan::test::tensor {
namespace {

Mistake in_pipeline(const std::string& row, const std::string& from, const std::string& to,
                    const std::string& id, const std::string& says, int which = 0) {
  const std::string right = pipeline_body();
  return {row, {edited(right, from, to, which)}, {right}, By::run, id, says};
}

TEST(EmulatorTensorMistakes, Pipelines) {
  const std::string body = pipeline_body();
  const Mistake mistakes[] = {
      // 5: the accumulator is given back before it is read.
      {"05",
       {edited(body, wait_ld + before + arrive_empty, before + arrive_empty + wait_ld)},
       {body},
       By::run,
       "asynchronous-race",
       "but that is not ordered before this access"},
      // 6: it is given back before all of it is read.
      {"06",
       {edited(body, wait_ld + before + arrive_empty,
               before + arrive_empty + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w20}, [own+15];\n" +
                   wait_ld)},
       {body},
       By::run,
       "asynchronous-race",
       "tcgen05.ld"},
      // 7: all threads arrive where one is expected.
      in_pipeline("07", "[bars+40], 128;", "[bars+40], 1;", "deadlock", "pending: 1 arrival"),
      in_pipeline("09", "fence.proxy.async.shared::cta;\n", "", "proxy-fence",
                  "insert fence.proxy.async"),
      // 13: the next tile's products do not wait until the accumulator is free.
      in_pipeline("13", "[bars+40], 0;\n", "[bars+40], 1;\n", "asynchronous-race",
                  "tensor memory at lane 0, column 0"),
      in_pipeline("19", "[bars], 32;", "[bars], 33;", "deadlock", "pending: 1 arrival"),
      in_pipeline("25", "setp.ne.u32 p, 0, 0;\n", "setp.eq.u32 p, 0, 0;\n", "uninitialized-read",
                  "was never written"),
      // 28: a stage is given back by an arrival, before the products have read it.
      in_pipeline("28", commit_word + "[bars+16];\n",
                  "mbarrier.arrive.shared::cta.b64 _, [bars+16];\n", "asynchronous-race", "image"),
      // 29: the epilogue waits for the wrong phase.
      in_pipeline("29", "[bars+32], 0;\n", "[bars+32], 1;\n", "asynchronous-race",
                  "tcgen05.ld.sync.aligned.32x32b.x16.b32"),
      // 34: a commit for which nobody waits.
      in_pipeline("34l", commit_word + "[bars+32];\n", "", "deadlock", "pending: 1 arrival", 1),
  };
  for (const Mistake& each : mistakes) expect_found(each);
}

// Where the barriers are as strong as they are without a word, a note alone asks for fences.
TEST(EmulatorTensorMistakes, FencesBetweenThreads) {
  const std::string body = pipeline_body();
  const Mistake mistakes[] = {
      {"11a",
       {edited(body, before, "", 0)},
       {body},
       By::run,
       "tensor-fence",
       "before_thread_sync behind the first"},
      // Behind the wait for the accumulator, and that for the first stage.
      {"11b",
       {edited(edited(body, after, "", 5), after, "", 5)},
       {body},
       By::run,
       "tensor-fence",
       "after_thread_sync in front of the second"},
      {"11c",
       {edited(body, "[bars+32], 0;\n@!p bra W0;\n" + after, "[bars+32], 0;\n@!p bra W0;\n")},
       {body},
       By::run,
       "tensor-fence",
       "after_thread_sync in front of the second"},
  };
  for (const Mistake& each : mistakes) expect_found(each);
}

// Relaxed arrivals and waits order tensor memory by the fences alone: as the manual's examples.
TEST(EmulatorTensorMistakes, RelaxedBarriers) {
  std::string body = pipeline_body();
  const auto relax = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = body.find(from, at)) != std::string::npos; at += to.size())
      body.replace(at, from.size(), to);
  };
  relax(arrive_empty, "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bars+40];\n");
  relax("parity.shared::cta.b64 p, [bars+40]", "parity.relaxed.cta.shared::cta.b64 p, [bars+40]");
  relax("parity.shared::cta.b64 p, [bars+32]", "parity.relaxed.cta.shared::cta.b64 p, [bars+32]");
  const Mistake mistakes[] = {
      {"11d",
       {edited(body, before, "")},
       {body},
       By::run,
       "asynchronous-race",
       "tcgen05.ld.sync.aligned.32x32b.x16.b32"},
      {"11e",
       {edited(body, "[bars+32], 0;\n@!p bra W0;\n" + after, "[bars+32], 0;\n@!p bra W0;\n")},
       {body},
       By::run,
       "asynchronous-race",
       "is written by tcgen05.mma"},
  };
  for (const Mistake& each : mistakes) expect_found(each);
}

// ---- One thread or warp after another.

TEST(EmulatorTensorMistakes, EndsOfBarriersAndCtas) {
  const std::string inval = "@q mbarrier.inval.shared::cta.b64 [done];\n",
                    again = "@q mbarrier.init.shared::cta.b64 [done], 1;\n";
  const std::string right = tiles(publish + issue + commits + waits + after),
                    over = right + "bar.sync 0;\n";
  const Mistake mistakes[] = {
      {"24a", small(tiles(publish + issue + commits + inval)), small(over + inval), By::run,
       "mbarrier", "the commit may still arrive"},
      {"24b", small(tiles(publish + issue + commits + again)), small(over + inval + again), By::run,
       "mbarrier", "the commit may still arrive"},
      {"24c", small(tiles(publish + issue + commits)), small(right), By::run, "asynchronous-race",
       "the commit may still arrive"},
      // The last of two commits, with work of its own, is the one that counts.
      {"24d", small(over + issue + commits), small(right), By::run, "asynchronous-race",
       "the commit may still arrive"},
  };
  for (const Mistake& each : mistakes) expect_found(each);
}

// A second commit without work of its own arrives with the first.
TEST(EmulatorTensorMistakes, CommitsOfTheSameWork) {
  const Program two{.body = tiles("@q mbarrier.init.shared::cta.b64 [other], 1;\n" + publish +
                                  issue + commits + "@q " + commit_word + "[other];\n" + waits +
                                  after + "@q mbarrier.inval.shared::cta.b64 [other];\n"),
                    .columns = 64,
                    .threads = 128,
                    .shared = tile_shared + ".shared .align 8 .b64 other;\n"};
  EXPECT_EQ(found(two, By::run), "");
}

TEST(EmulatorTensorMistakes, TensorMemory) {
  std::string stores = "mov.u32 v0, 0x3c003c00;\n";
  for (int i = 1; i < 8; ++i) stores += fmt::format("mov.u32 v{}, v0;\n", i);
  const std::string st = "tcgen05.st.sync.aligned.32x32b.x8.b32 [own+32], " + numbered("v", 8) +
                         ";\n",
                    halves = "tcgen05.st.sync.aligned.32x32b.x4.unpack::16b.b32 [own+32], " +
                             numbered("v", 4) + ";\n",
                    ld = "tcgen05.ld.sync.aligned.32x32b.x8.b32 " + numbered("w", 8) +
                         ", [own+32];\n",
                    from_tensor =
                        "@q tcgen05.mma.cta_group::1.kind::f16 [ta], [ta+32], db, r8, "
                        "0;\n",
                    give =
                        "mul.wide.u32 rd1, r0, 4;\nadd.s64 rd1, rd0, rd1;\nst.global.b32 "
                        "[rd1], w0;\n",
                    result = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [ta];\n";
  const std::string right = tiles(stores + st + wait_st + before + publish + after + from_tensor +
                                  commits + waits + after);
  const auto without = [&](const std::string& from) { return small(edited(right, from, "")); };
  const std::string read = edited(result, "[ta]", "[own]") + wait_ld + give;
  const std::string load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own];\n" + wait_ld;
  const std::string over =
      "add.u32 r7, ta, 32;\n@q tcgen05.mma.cta_group::1.kind::f16 [r7], da, db, r8, 0;\n";
  const Mistake mistakes[] = {
      {"03a",
       {.body = "", .threads = 128, .frees = false},
       small(""),
       By::run,
       "tensor-memory",
       "are still allocated when the CTA ends"},
      {"04", small("tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own+64];\n" + wait_ld),
       small("tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own+63];\n" + wait_ld), By::run,
       "tensor-memory", "column 64 is not allocated"},
      {"11f", without(wait_st), small(right), By::run, "asynchronous-race",
       "expected tcgen05.wait::st in its warp"},
      {"11g", without(before), small(right), By::run, "tensor-fence", "before_thread_sync"},
      // 34: a part of a warp.
      {"34c",
       small("and.b32 r3, r0, 31;\nsetp.lt.u32 p, r3, 16;\n@!p bra PART;\n" + load + "PART:\n"),
       small(load), By::run, "divergent-collective", "which wait elsewhere"},
      // 12: P over S.
      {"12", small(right + ld + st + wait_ld + wait_st), small(right + ld + wait_ld + st + wait_st),
       By::run, "asynchronous-race", "expected tcgen05.wait::ld in its warp"},
      // 13: A is overwritten while the product may still read it.
      {"13b", small(edited(right, waits, st + wait_st + waits)), small(right), By::run,
       "asynchronous-race", "tcgen05.st.sync.aligned.32x32b.x8.b32"},
      {"13c", small(edited(right, from_tensor, from_tensor + over)),
       small(edited(right, from_tensor, from_tensor + edited(over, "[r7]", "[ta]"))), By::run,
       "unspecified-order", "writes its D there"},
      // 34: a copy over what a product may still read.
      {"34n",
       small(edited(right, from_tensor,
                    "add.s64 da, da, 0;\n" + from_tensor +
                        "@q tcgen05.cp.cta_group::1.128x256b [ta+32], da;\n")),
       small(edited(right, from_tensor,
                    "@q tcgen05.cp.cta_group::1.128x256b [ta+32], da;\n" + from_tensor)),
       By::run, "asynchronous-race", "tcgen05.cp.cta_group::1.128x256b"},
      // 16: A of 16 bits, one element a column.
      {"16", small(edited(right, st, halves) + read), small(right + read), By::run,
       "uninitialized-read", "was never written"},
  };
  for (const Mistake& each : mistakes) expect_found(each);
}

TEST(EmulatorTensorMistakes, Accumulators) {
  const std::string wide = "mov.b32 r9, 0x8080010;\n",  // N 32
      second = "@q tcgen05.mma.cta_group::1.kind::f16 [ta], da, db, r9, 0;\n",
                    beside =
                        "add.u32 r7, ta, 8;\n@q tcgen05.mma.cta_group::1.kind::f16 [r7], da, "
                        "db, r8, 0;\n",
                    apart = edited(beside, "ta, 8", "ta, 16");
  const std::string end = commits + waits + after;
  const auto with = [&](const std::string& more) {
    return small(tiles(publish + issue + wide + more + end));
  };
  // M 32 and N 64 of .ws are 16 columns in all lanes.
  const auto stationary = [](int column) {
    return fmt::format(
        "mov.b32 r9, 0x2100010;\nadd.u32 r7, ta, {};\n"
        "@q tcgen05.mma.ws.cta_group::1.kind::f16 [r7], da, da, r9, 0;\n",
        column);
  };
  const Mistake mistakes[] = {
      {"order-a", with(second), with(issue), By::run, "unspecified-order", "N 32"},
      {"order-b", with(beside), with(apart), By::run, "unspecified-order", "lane 0, column 8"},
      {"order-d", with(stationary(16) + stationary(24)), with(stationary(16) + stationary(32)),
       By::run, "unspecified-order", "column 24"},
      {"order-c", with(beside),
       small(tiles(publish + issue + commits + wait("done", "FIRST") + after + "bar.sync 0;\n" +
                   beside + commits + wait("done", "SECOND", 1))),
       By::run, "unspecified-order", "leaves open which product comes first"},
  };
  for (const Mistake& each : mistakes) expect_found(each);
}

TEST(EmulatorTensorMistakes, Collectors) {
  const auto of_a = [&](const std::string& use) {
    return edited(issue, "kind::f16", "kind::f16.collector::a::" + use);
  };
  const std::string end = commits + waits + after;
  const auto with = [&](const std::string& products) {
    return small(tiles(publish + products + end));
  };
  const Program right = with(of_a("fill") + of_a("use") + of_a("lastuse"));
  const Mistake mistakes[] = {
      {"collector-a", with(of_a("use")), right, By::run, "collector-use", "nothing is kept there"},
      {"collector-b", with(of_a("fill") + issue + of_a("lastuse")), right, By::run, "collector-use",
       "nothing is kept there"},
      {"collector-c", with(of_a("fill") + "add.s64 da, da, 32;\n" + of_a("use")), right, By::run,
       "collector-use", "with another A"},
      {"collector-d",
       small(tiles(publish + of_a("fill") + end +
                   "mov.u32 r6, image;\n@q st.shared.b32 [r6], 0;\n"
                   "fence.proxy.async.shared::cta;\nbar.sync 0;\n" +
                   of_a("use") + commits + wait("done", "AGAIN", 1))),
       right, By::run, "collector-use", "A has changed since"},
  };
  for (const Mistake& each : mistakes) expect_found(each);
}

// A copy by one thread and a product by another need the fences, and no wait.
TEST(EmulatorTensorMistakes, PipelinedPairs) {
  const auto with = [&](const std::string& pair) {
    return small(tiles("setp.eq.u32 alloc, r0, 64;\nadd.s64 da, da, 0;\n" + publish +
                       "@q tcgen05.cp.cta_group::1.128x256b [ta+32], da;\n" + pair + commits +
                       waits + after + "setp.eq.u32 alloc, r1, 0;\n"));
  };
  const std::string use = "@alloc tcgen05.mma.cta_group::1.kind::f16 [ta], [ta+32], db, r8, 0;\n",
                    other = "@alloc " + commit_word + "[second];\n" + wait("second", "THERE");
  const auto pair = [&](const std::string& from, const std::string& to) {
    Program out = with(from + "bar.sync 0;\n" + to + use + other);
    out.shared += ".shared .align 8 .b64 second;\n";
    out.body = "setp.eq.u32 q, r0, 0;\n@q mbarrier.init.shared::cta.b64 [second], 1;\n" + out.body;
    return out;
  };
  const Mistake mistakes[] = {
      {"pair-a", pair("", after), pair(before, after), By::run, "asynchronous-race",
       "but not what they issue"},
      {"pair-b", pair(before, ""), pair(before, after), By::run, "asynchronous-race",
       "but not what they issue"},
  };
  for (const Mistake& each : mistakes) expect_found(each);
}

// The address is free when the other warps have read the accumulator.
TEST(EmulatorTensorMistakes, DeallocationBehindAllAccesses) {
  const std::string ld = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own];\n" + wait_ld,
                    dealloc =
                        "@!alloc bra KEEPS;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 "
                        "ta, 32;\nKEEPS:\n";
  const auto with = [&](const std::string& barrier) {
    return Program{.body = ld + barrier + dealloc, .threads = 128, .shared = "", .frees = false};
  };
  expect_found(
      {"03b", with(""), with("bar.sync 0;\n"), By::run, "asynchronous-race", "tcgen05.dealloc"});
}

// 10: the epilogue's stores, then a TMA store.
TEST(EmulatorTensorMistakes, StoresBeforeTma) {
  const auto with = [&](const std::string& fence) {
    return small(
        "mov.u32 r3, image;\nshl.b32 r4, r0, 2;\nadd.u32 r3, r3, r4;\nst.shared.b32 [r3], "
        "r0;\n" +
        fence +
        "bar.sync 0;\nsetp.eq.u32 q, r0, 0;\nmov.u32 r3, image;\n"
        "@q cp.async.bulk.global.shared::cta.bulk_group [rd0], [r3], 512;\n"
        "@q cp.async.bulk.commit_group;\n@q cp.async.bulk.wait_group 0;\n");
  };
  expect_found({"10", with(""), with("fence.proxy.async.shared::cta;\n"), By::run, "proxy-fence",
                "insert fence.proxy.async"});
}

// 27: the stage of another CTA is filled, and its mbarrier told so at scope .cta.
TEST(EmulatorTensorMistakes, RemoteArrivals) {
  const auto with = [&](const std::string& scope) {
    Program out = small(tiles(
        "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.aligned;\n"
        "barrier.cluster.wait.aligned;\nmov.u32 r10, %cluster_ctarank;\nsetp.eq.u32 p, r10, "
        "0;\n@p bra READS;\nmov.u32 r11, image;\nmapa.shared::cluster.u32 r12, r11, 0;\n"
        "mov.u32 r11, ready;\nmapa.shared::cluster.u32 r13, r11, 0;\n"
        "@q st.shared::cluster.b32 [r12], r5;\nfence.proxy.async;\n@q mbarrier.arrive.release." +
        scope +
        ".shared::cluster.b64 _, [r13];\nbra DONE;\nREADS:\n@!q bra DONE;\n"
        "THERE:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [ready], 0;\n"
        "@!p bra THERE;\nfence.proxy.async;\n" +
        issue + commits + waits +
        "DONE:\nbar.warp.sync -1;\nbarrier.cluster.arrive.aligned;\n"
        "barrier.cluster.wait.aligned;\n"));
    out.body = "setp.eq.u32 q, r0, 0;\n@q mbarrier.init.shared::cta.b64 [ready], 1;\n" + out.body;
    out.shared += ".shared .align 8 .b64 ready;\n";
    out.cluster = 2;
    return out;
  };
  expect_found({"27", with("cta"), with("cluster"), By::run, "asynchronous-race", "image"});
}

// 17: the halves of M 64. 18: the scales of the next four steps are in the next columns.
TEST(EmulatorTensorMistakes, PlacesOfOperands) {
  std::string stores = "mov.u32 v0, 0x7f7f7f7f;\n";
  for (int i = 1; i < 8; ++i) stores += fmt::format("mov.u32 v{}, v0;\n", i);
  stores += "tcgen05.st.sync.aligned.32x32b.x8.b32 [own+32], " + numbered("v", 8) + ";\n" +
            wait_st + before;
  const std::string m64 = "mov.b32 r8, 0x4040010;\nadd.u32 r7, ta, 0x100000;\n";
  const auto halves = [&](const std::string& a) {
    return small(tiles(stores + publish + after + m64 + "add.u32 r6, ta, " + a +
                       ";\n@q tcgen05.mma."
                       "cta_group::1.kind::f16 [r7], [r6], db, r8, 0;\n" +
                       commits + waits + after));
  };
  const auto scales = [&](int column, const std::string& stored) {
    return small(tiles(stored + publish + after +
                       fmt::format("mov.b32 r8, 0x8840000;\nadd.u32 r6, ta, {};\nadd.u32 r7, ta, "
                                   "36;\n@q tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale "
                                   "[ta], da, db, r8, [r6], [r7], 0;\n",
                                   column) +
                       commits + waits + after +
                       "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own];\n" + wait_ld +
                       "mul.wide.u32 rd1, r0, 4;\nadd.s64 rd1, rd0, rd1;\nst.global.b32 [rd1], "
                       "w0;\n"));
  };
  const std::string one_warp = edited(stores, "tcgen05.st",
                                      "@alloc bra STORES;\nbra STORED;\n"
                                      "STORES:\ntcgen05.st") +
                               "STORED:\n";
  const Mistake mistakes[] = {
      {"17", halves("32"), halves("0x100020"), By::run, "tensor-memory",
       "expected both in the same half of the lanes"},
      {"18a", scales(44, stores), scales(32, stores), By::run, "uninitialized-read",
       "was never written"},
      // One warp alone has stored the scales: its own quarter of the lanes.
      {"18b", scales(32, one_warp), scales(32, stores), By::run, "", "scales"},
  };
  for (const Mistake& each : mistakes)
    if (each.row != "18b") expect_found(each);
  const std::string text = found(mistakes[2].wrong, By::run);
  EXPECT_TRUE(text.find("[tensor-memory]") != std::string::npos ||
              text.find("[uninitialized-read]") != std::string::npos)
      << text;
}

// Where TMA or cp writes over the slot of an address that everybody has read.
TEST(EmulatorTensorMistakes, SlotOfAnAddress) {
  const std::string copy = R"(setp.eq.u32 q, r0, 0;
@q mbarrier.init.shared::cta.b64 [done], 1;
@q fence.mbarrier_init.release.cluster;
bar.sync 0;
@q mbarrier.arrive.expect_tx.shared::cta.b64 _, [done], 16;
@q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [slot], [rd9], 16, [done];
)" + waits;
  std::string text = tensor_text(copy, 32);
  text = edited(text, ".align 4 .b32 slot;", ".align 16 .b32 slot[4];");
  const auto findings = [&](const std::string& of) {
    return findings_text(run_tensor(of, 32, {1, 2, 3, 4}));
  };
  const std::string unfenced = findings(text);
  EXPECT_NE(unfenced.find("[proxy-fence-read]"), std::string::npos) << unfenced;
  EXPECT_EQ(unfenced.find("[proxy-fence]"), std::string::npos) << unfenced;
  EXPECT_EQ(findings(edited(text, "bar.sync 0;\n@q mbarrier.arrive",
                            "fence.proxy.async;\nbar.sync 0;\n@q mbarrier.arrive")),
            "");
}

TEST(EmulatorTensorMistakes, AccessAfterDeallocation) {
  const std::string body =
      "bar.sync 0;\n@alloc tcgen05.dealloc.cta_group::1.sync.aligned.b32 ta, 32;\nbar.sync 0;\n"
      "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own];\n" +
      wait_ld;
  const std::string text =
      found({.body = body, .threads = 128, .shared = "", .frees = false}, By::run);
  EXPECT_NE(text.find("access after tcgen05.dealloc on line"), std::string::npos) << text;
}

}  // namespace
}  // namespace tartan::test::tensor
