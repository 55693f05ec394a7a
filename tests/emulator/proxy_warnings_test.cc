// SPDX-License-Identifier: Apache-2.0
// What the manual asks for and much code in use leaves out, each beside its right twin: proxy
// fences behind loads and behind mbarrier.init, waits of the cluster's scope, one lane that stores,
// a wait before the exit. All of these warn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"
#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const Launch one_warp{.grid = {1}, .block = {32}}, two_warps{.grid = {1}, .block = {64}},
    two_blocks{.grid = {2}, .block = {64}}, pair{.grid = {2}, .block = {64}, .cluster = {2}};

const std::string shared =
    ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 done;\n";

std::vector<Finding> findings(const std::string& body, const Launch& launch,
                              const std::string& target) {
  DeviceOptions options;
  options.checks = Checks::memory;
  std::string text = kernel_text(body, shared);
  text.replace(text.find("sm_90"), 5, target);
  KernelRun run = run_text(text, launch, 4096, options);
  EXPECT_EQ(run.complaint, "") << body;
  return run.findings;
}

// The ids of the findings; the same for both targets.
std::string found(const std::string& body, const Launch& launch = two_warps) {
  std::string ids[2];
  for (const bool second : {false, true})
    for (const Finding& each : findings(body, launch, second ? "sm_100a" : "sm_90a"))
      ids[second] += (ids[second].empty() ? "" : " ") + each.id;
  EXPECT_EQ(ids[0], ids[1]);
  return ids[0];
}

std::string message(const std::string& body, const Launch& launch = two_warps) {
  const auto all = findings(body, launch, "sm_90a");
  return all.empty() ? "" : all[0].message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Code of thread 0 alone; `label` names its end.
std::string alone(const std::string& body, const std::string& label) {
  return "setp.ne.u32 q, r0, 0;\n@q bra " + label + ";\n" + body + label + ":\n";
}

// r1, r2: the mbarriers; r4: the thread's word of the tile.
const std::string words =
    "mov.u32 r1, bar;\nmov.u32 r2, done;\nmov.u32 r4, tile;\nshl.b32 r3, r0, 2;\n"
    "add.u32 r4, r4, r3;\n";
const std::string inits =
    "mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.init.shared::cta.b64 [done], 64;\n";
const std::string barrier = "bar.sync 0;\n", fence = "fence.proxy.async;\n",
                  fence_inits = "fence.mbarrier_init.release.cluster;\n",
                  store = "st.shared.u32 [r4], r0;\n", load = "ld.shared.u32 r5, [r4];\n";
const std::string init = words + alone(inits + fence_inits, "READY") + barrier;
const std::string ready = init + store + fence + barrier;

std::string copy(int bytes = 256) {
  return fmt::format(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {0};\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [rd0+4096], {0}, "
      "[bar];\n",
      bytes);
}
const std::string fill = alone(copy(), "FILLED") + wait("bar", "W");

TEST(ProxyWarnings, LoadThenCopy) {
  EXPECT_EQ(found(ready + load + barrier + fill), "proxy-fence-read");
  EXPECT_EQ(found(ready + load + fence + barrier + fill), "");
  EXPECT_EQ(found(ready + load + "fence.proxy.async.shared::cta;\n" + barrier + fill), "");
  EXPECT_EQ(found(ready + load + barrier + fence + fill), "");  // on the way, as behind a store
  EXPECT_EQ(found(ready + fence + load + barrier + fill), "proxy-fence-read");
  EXPECT_EQ(found(ready + load + "fence.proxy.async.global;\n" + barrier + fill),
            "proxy-fence-read");
  EXPECT_EQ(found(ready + load + "fence.acq_rel.cta;\n" + barrier + fill), "proxy-fence-read");
  // Of one warp alone.
  EXPECT_EQ(found(ready + load + "setp.lt.u32 p, r0, 32;\n@p bra OTHER;\n" + fence + "OTHER:\n" +
                  barrier + fill),
            "proxy-fence-read");
  EXPECT_EQ(found(ready + "ld.shared.u32 r5, [r4+512];\n" + barrier + fill), "");
  EXPECT_EQ(found(ready + alone("ld.shared.u32 r5, [tile];\n" + copy() + wait("bar", "W"), "END")),
            "proxy-fence-read");
  // Without an order it is a race.
  EXPECT_EQ(found(ready + load + fence + fill), "asynchronous-race");
}

TEST(ProxyWarnings, ArrivalsOrderToo) {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [done];\n",
                    next = alone(wait("done", "FREE") + copy(), "FILLED") + wait("bar", "W");
  EXPECT_EQ(found(ready + load + arrive + next), "proxy-fence-read");
  EXPECT_EQ(found(ready + load + fence + arrive + next), "");
  EXPECT_EQ(found(ready + load + arrive + alone(wait("done", "FREE") + fence + copy(), "FILLED") +
                  wait("bar", "W")),
            "");
}

TEST(ProxyWarnings, EveryLoadOfTheGenericProxy) {
  const auto is = [](const std::string& read, const std::string& more) {
    return found(ready + read + more + barrier + fill);
  };
  const std::string loads[] = {
      "cvt.u64.u32 rd2, r4;\ncvta.shared.u64 rd2, rd2;\nld.u32 r5, [rd2];\n",
      "ld.volatile.shared.u32 r5, [r4];\n", "ld.shared::cluster.u32 r5, [r4];\n",
      "and.b32 r6, r0, 15;\nshl.b32 r6, r6, 4;\nmov.u32 r7, tile;\nadd.u32 r6, r6, r7;\n"
      "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r7, r8}, [r6];\n",
      "mov.u32 r3, tile;\nwmma.load.a.sync.aligned.row.m16n16k16.shared.f16 "
      "{r5, r6, r7, r8, r9, r10, r11, r12}, [r3], 16;\n"};
  for (const std::string& each : loads) {
    EXPECT_EQ(is(each, ""), "proxy-fence-read") << each;
    EXPECT_EQ(is(each, fence), "") << each;
  }
}

TEST(ProxyWarnings, OneFindingCountsAll) {
  const std::string both = ready + load + "ld.shared.u32 r6, [tile];\n" + barrier + fill + barrier +
                           load + barrier + alone(copy(), "AGAIN") + wait("bar", "X", 1);
  EXPECT_EQ(found(both), "proxy-fence-read");
  const std::string text = message(both);
  EXPECT_TRUE(has(text, " is read by ld.shared.u32 on line")) << text;
  EXPECT_TRUE(has(text, "insert fence.proxy.async between the load and the barrier")) << text;
  EXPECT_TRUE(has(text, "more such pairs of accesses, and 2 more of instructions)")) << text;
}

TEST(ProxyWarnings, GlobalMemory) {
  const std::string read = "ld.global.u32 r5, [rd1];\n",
                    out = alone(
                        "cp.async.bulk.global.shared::cta.bulk_group [rd0], [tile], 256;\n"
                        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
                        "STORED");
  EXPECT_EQ(found(ready + read + barrier + out), "proxy-fence-read");
  EXPECT_EQ(found(ready + read + "fence.proxy.async.shared::cta;\n" + barrier + out),
            "proxy-fence-read");
  EXPECT_EQ(found(ready + read + fence + barrier + out), "");
  EXPECT_EQ(found(ready + read + "fence.proxy.async.global;\n" + barrier + out), "");
  EXPECT_EQ(found(ready + "ld.global.u32 r5, [rd1+1024];\n" + barrier + out), "");
}

// Thread 0 of block 1 puts something into the tile of block 0, whose threads have loaded it.
std::string into_peer(const std::string& send, const std::string& behind_load) {
  return ready + load + behind_load +
         "barrier.cluster.arrive;\nbarrier.cluster.wait;\nmov.u32 r7, %cluster_ctarank;\n"
         "setp.eq.u32 p, r7, 0;\n@p bra HERE;\n" +
         alone("mapa.shared::cluster.u32 r8, r4, 0;\nmapa.shared::cluster.u32 r9, r1, 0;\n" + send,
               "SENT") +
         "bra END;\nHERE:\n" +
         alone("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n", "EXPECTED") +
         wait("bar", "W") + "END:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
}

TEST(ProxyWarnings, CopiesIntoAPeer) {
  const std::string bulk =
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [r8], [tile+512], "
      "16, [r9];\n";
  EXPECT_EQ(found(into_peer(bulk, ""), pair), "proxy-fence-read");
  EXPECT_EQ(found(into_peer(bulk, fence), pair), "");
  // st.async is not of the async proxy.
  EXPECT_EQ(found(into_peer("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [r8], "
                            "{r0, r0, r0, r0}, [r9];\n",
                            ""),
                  pair),
            "");
}

TEST(ProxyWarnings, InitThenCopy) {
  const auto is = [](const std::string& behind_init, const std::string& before_copy = "") {
    return found(words + alone(inits + behind_init, "READY") + barrier +
                 alone(before_copy + copy(), "FILLED") + wait("bar", "W"));
  };
  EXPECT_EQ(is(""), "mbarrier-init-fence");
  EXPECT_EQ(is(fence_inits), "");
  EXPECT_EQ(is(fence), "");
  EXPECT_EQ(is("fence.proxy.async.shared::cta;\n"), "");
  EXPECT_EQ(is("", fence), "");
  EXPECT_EQ(is("fence.proxy.async.global;\n"), "mbarrier-init-fence");
  EXPECT_EQ(is("fence.acq_rel.cluster;\n"), "mbarrier-init-fence");
  EXPECT_EQ(is("membar.gl;\n"), "mbarrier-init-fence");
  // One thread does it all; a fence in front; one of a thread that made nothing.
  EXPECT_EQ(found(words + alone(inits + copy() + wait("bar", "W"), "END")), "mbarrier-init-fence");
  EXPECT_EQ(found(words + alone(inits + fence_inits + copy() + wait("bar", "W"), "END")), "");
  EXPECT_EQ(found(words + alone(fence_inits + fence + inits + copy() + wait("bar", "W"), "END")),
            "mbarrier-init-fence");
  EXPECT_EQ(
      found(words + alone(inits, "READY") + barrier + "setp.ne.u32 p, r0, 32;\n@p bra END;\n" +
            fence_inits + copy() + wait("bar", "W") + "END:\n"),
      "mbarrier-init-fence");
  EXPECT_EQ(
      found(words + alone(inits, "READY") + barrier + "setp.ne.u32 p, r0, 32;\n@p bra END;\n" +
            fence + copy() + wait("bar", "W") + "END:\n"),
      "");
  // Made again.
  const std::string again =
      "mbarrier.inval.shared::cta.b64 [bar];\nmbarrier.init.shared::cta.b64 "
      "[bar], 1;\n";
  EXPECT_EQ(found(words + alone(inits + fence_inits + again + copy() + wait("bar", "W"), "END")),
            "mbarrier-init-fence");
  // Arrivals alone are of the generic proxy.
  EXPECT_EQ(found(words + alone(inits, "READY") + barrier +
                  "mbarrier.arrive.shared::cta.b64 _, [done];\n" + wait("done", "W")),
            "");
  const std::string text =
      message(words + alone(inits, "READY") + barrier + alone(copy(), "FILLED") + wait("bar", "W"));
  EXPECT_TRUE(has(text, "set up by mbarrier.init.shared::cta.b64 on line")) << text;
  EXPECT_TRUE(has(text, "insert fence.mbarrier_init.release.cluster behind mbarrier.init")) << text;
}

const std::string meet = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";

// Block 1 writes, and tells block 0 at its mbarrier `done`; block 0 waits there and reads.
std::string from_peer(const std::string& write, const std::string& wait, const std::string& read,
                      const std::string& before = "") {
  return init +
         "mapa.shared::cluster.u32 r8, r4, 0;\nmapa.shared::cluster.u32 r9, r2, 0;\n"
         "mapa.shared::cluster.u32 r10, r4, 1;\n" +
         before + meet + "mov.u32 r7, %cluster_ctarank;\nsetp.eq.u32 p, r7, 0;\n@p bra HERE;\n" +
         write + "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r9];\nbra END;\nHERE:\n" +
         wait + read + "END:\n" + meet;
}

TEST(ProxyWarnings, WaitsForAnotherBlock) {
  const std::string push = "st.shared::cluster.u32 [r8], r0;\n", narrow = wait("done", "W"),
                    pull = "ld.shared::cluster.u32 r5, [r10];\n";
  std::string wide = narrow;
  wide.replace(wide.find(".shared::cta"), 0, ".acquire.cluster");
  EXPECT_EQ(found(from_peer(push, narrow, load), pair), "mbarrier-wait-scope");
  EXPECT_EQ(found(from_peer(push, wide, load), pair), "");
  EXPECT_EQ(found(from_peer(store, narrow, pull), pair), "mbarrier-wait-scope");
  EXPECT_EQ(found(from_peer(store, wide, pull), pair), "");
  EXPECT_EQ(
      found(from_peer("st.global.u32 [rd1], r0;\n", narrow, "ld.global.u32 r5, [rd1];\n"), pair),
      "mbarrier-wait-scope");
  EXPECT_EQ(
      found(from_peer("st.global.u32 [rd1], r0;\n", wide, "ld.global.u32 r5, [rd1];\n"), pair), "");
  // One thread waits for all.
  EXPECT_EQ(found(from_peer(push, alone(narrow, "WAITED") + barrier, load), pair),
            "mbarrier-wait-scope");
  EXPECT_EQ(found(from_peer(push, alone(wide, "WAITED") + barrier, load), pair), "");
  // That it was read may be known by any wait, and so may what nobody uses.
  EXPECT_EQ(found(from_peer("ld.shared::cluster.u32 r5, [r8];\n", narrow, store), pair), "");
  EXPECT_EQ(found(from_peer(push, narrow, ""), pair), "");
  // What a barrier of the cluster has told is known.
  EXPECT_EQ(found(from_peer("", narrow, pull, store), pair), "");
  const std::string text = message(from_peer(push, narrow, load), pair);
  EXPECT_TRUE(has(text, "whose scope is .cta where it says none")) << text;
  EXPECT_TRUE(has(text, "expected .acquire.cluster")) << text;
}

TEST(ProxyWarnings, OneLaneStores) {
  const std::string sent = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
                    to = "cp.async.bulk.global.shared::cta.bulk_group ";
  EXPECT_EQ(found(ready + to + "[rd0], [tile], 256;\n" + sent, one_warp), "store-by-every-lane");
  EXPECT_EQ(found(ready + alone(to + "[rd0], [tile], 256;\n" + sent, "END"), one_warp), "");
  // Rows of their own; what is not the same.
  EXPECT_EQ(found(ready + "mul.wide.u32 rd2, r0, 16;\nadd.u64 rd2, rd2, rd0;\n" + to +
                      "[rd2], [tile], 16;\n" + sent,
                  one_warp),
            "");
  EXPECT_EQ(found(ready + "shl.b32 r5, r0, 4;\nmov.u32 r6, tile;\nadd.u32 r5, r5, r6;\n" + to +
                      "[rd0], [r5], 16;\n" + sent,
                  one_warp),
            "asynchronous-race");
  const std::string text = message(ready + to + "[rd0], [tile], 256;\n" + sent, one_warp);
  EXPECT_TRUE(has(text, "32 lanes of the warp issue the same store")) << text;
  EXPECT_TRUE(has(text, "elect.sync")) << text;
}

// A warp stores rows of 32 words through a tensor map, `lanes` of it each; CTAs are `distance`
// words apart.
std::vector<Finding> boxes(int lanes, int distance, unsigned blocks) {
  const std::string text = fmt::format(R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128])
{{
  .shared .align 128 .b8 tile[128];
  .reg .pred p;
  .reg .b32 r<8>;
  .reg .b64 m;
  mov.u32 r0, %tid.x;
  mov.u32 r1, tile;
  shl.b32 r2, r0, 2;
  add.u32 r2, r2, r1;
  st.shared.u32 [r2], r0;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.ge.u32 p, r0, {};
  @p bra END;
  mov.u32 r3, %ctaid.x;
  mul.lo.u32 r3, r3, {};
  mov.u64 m, map;
  cvta.param.u64 m, m;
  cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [m, {{r3}}], [r1];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END:
  ret;
}})",
                                       lanes, distance);
  auto device = Device::open("emulator", {.checks = Checks::memory});
  const auto out = device->allocate(4 * 256);
  const TensorMap map{.type = u32, .address = out->address(), .extents = {256}, .box = {32}};
  const auto encoded = map.encode();
  EXPECT_TRUE(encoded) << encoded.diags().text();
  auto kernel = device->load(text, "boxes.ptx")->kernel("k");
  EXPECT_TRUE(kernel->launch({.grid = {blocks}, .block = {32}}, Arguments().add(*encoded)));
  (void)device->synchronize();
  return device->findings();
}

TEST(ProxyWarnings, OneLaneStoresABox) {
  EXPECT_TRUE(boxes(1, 32, 2).empty());
  const auto all = boxes(32, 32, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].id, "store-by-every-lane");
  const auto overlap = boxes(1, 28, 2);
  ASSERT_EQ(overlap.size(), 1u);
  EXPECT_EQ(overlap[0].id, "asynchronous-race");
  EXPECT_TRUE(has(overlap[0].message, "their tiles overlap")) << overlap[0].message;
}

TEST(ProxyWarnings, StoresAtTheExit) {
  const std::string out = alone(
      "cp.async.bulk.global.shared::cta.bulk_group [rd0], [tile], 256;\n"
      "cp.async.bulk.commit_group;\n",
      "STORED");
  const std::string waits = alone("cp.async.bulk.wait_group.read 0;\n", "WAITED");
  EXPECT_EQ(found(ready + out), "store-at-exit");
  EXPECT_EQ(found(ready + out + waits), "");
  // What writes the block's own memory is a race.
  EXPECT_EQ(found(init + alone(copy(), "FILLED")), "asynchronous-race");
  EXPECT_EQ(found(init + fill), "");
  const std::string text = message(ready + out);
  EXPECT_TRUE(has(text, "cp.async.bulk.wait_group.read 0 in that thread before it exits")) << text;
}

TEST(ProxyWarnings, TheAdviceFitsTheTwo) {
  const std::string out = alone(
                        "cp.async.bulk.global.shared::cta.bulk_group [rd0], [tile], 256;\n"
                        "cp.async.bulk.commit_group;\n",
                        "STORED"),
                    waits = alone("cp.async.bulk.wait_group 0;\n", "WAITED");
  const std::string tiles = message(ready + out + waits, two_blocks);
  EXPECT_TRUE(has(tiles, "their tiles overlap")) << tiles;
  EXPECT_FALSE(has(tiles, "wait_group")) << tiles;
  const std::string second =
      "setp.ne.u32 p, r0, 32;\n@p bra END;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [rd0], [tile], 256;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n";
  const std::string threads = message(ready + out + waits + second);
  EXPECT_TRUE(has(threads, "let one thread issue the copy")) << threads;
  const std::string own =
      message(ready + alone("cp.async.bulk.global.shared::cta.bulk_group [rd0], "
                            "[tile], 256;\ncp.async.bulk.commit_group;\n"
                            "st.shared.u32 [tile], 1;\n"
                            "cp.async.bulk.wait_group 0;\n",
                            "END"));
  EXPECT_TRUE(has(own, "its thread has not executed cp.async.bulk.wait_group for its group"))
      << own;
  const std::string other = message(ready + out + barrier + "st.global.u32 [rd1], r0;\n" + waits);
  EXPECT_TRUE(has(other,
                  "expected cp.async.bulk.wait_group, without .read, for its group in the "
                  "thread that issued it, and a barrier behind it"))
      << other;
}

}  // namespace
}  // namespace tartan::test
