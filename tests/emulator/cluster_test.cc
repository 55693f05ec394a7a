// SPDX-License-Identifier: Apache-2.0
// Clusters: their registers, barrier, distributed shared memory, multicasts, and invalid launches.
#include <gtest/gtest.h>

#include "tartan/runtime/tensor_map.h"
#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const std::string shared = ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";
const std::string meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
// rd1: the block's 32 words of the output.
const std::string own_part =
    "mov.u32 r1, %ctaid.x;\nmul.wide.u32 rd2, r1, 128;\nadd.s64 rd1, rd1, rd2;\n"
    "mov.u32 r2, %cluster_ctarank;\n";
const Launch two{.grid = {4}, .block = {32}, .cluster = {2, 1, 1}};

void expect_clean(const KernelRun& run) {
  EXPECT_EQ(run.complaint, "");
  for (const Finding& finding : run.findings)
    ADD_FAILURE() << finding.id << ": " << finding.message;
}

TEST(EmulatorCluster, SpecialRegisters) {
  const std::string body = R"(
mov.u32 r1, %ctaid.x;
mov.u32 r2, %ctaid.y;
mov.u32 r3, %nctaid.x;
mad.lo.u32 r1, r2, r3, r1;
mul.wide.u32 rd2, r1, 64;
add.s64 rd1, rd0, rd2;
mov.pred p, %is_explicit_cluster;
selp.u32 r2, 1, 0, p;
mov.u32 r3, %cluster_ctarank;
mov.u32 r4, %cluster_nctarank;
mov.u32 r5, %cluster_ctaid.x;
st.global.v4.u32 [rd1], {r2, r3, r4, r5};
mov.u32 r2, %cluster_ctaid.y;
mov.u32 r3, %cluster_nctaid.x;
mov.u32 r4, %cluster_nctaid.y;
mov.u32 r5, %cluster_nctaid.z;
st.global.v4.u32 [rd1+16], {r2, r3, r4, r5};
mov.u32 r2, %clusterid.x;
mov.u32 r3, %clusterid.y;
mov.u32 r4, %nclusterid.x;
mov.u32 r5, %nclusterid.y;
st.global.v4.u32 [rd1+32], {r2, r3, r4, r5};)";
  const auto run = run_body(body, {.grid = {6, 4}, .block = {1}, .cluster = {3, 2, 1}}, 24 * 16);
  expect_clean(run);
  for (std::uint32_t y = 0; y < 4; ++y)
    for (std::uint32_t x = 0; x < 6; ++x) {
      const std::vector<std::uint32_t> wanted{
          1, x % 3 + 3 * (y % 2), 6, x % 3, y % 2, 3, 2, 1, x / 3, y / 2, 2, 2};
      const auto first = run.out.begin() + 16 * (x + 6 * y);
      EXPECT_EQ(std::vector(first, first + 12), wanted) << x << "," << y;
    }
  const auto single = run_body(body, {.grid = {2, 1}, .block = {1}}, 32);
  expect_clean(single);
  const std::vector<std::uint32_t> wanted{0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 2, 1};
  EXPECT_EQ(std::vector(single.out.begin() + 16, single.out.begin() + 28), wanted);
}

// ---- Distributed shared memory.

// A variable's name gives its shared::cluster address, as mapa does. Instructions of its own block
// accept it, too; code that puts addresses into descriptors must remove the block's rank.
TEST(EmulatorCluster, VariableAddressesIncludeTheBlockRank) {
  const std::string body = own_part + R"(
mov.u32 r3, tile;
mapa.shared::cluster.u32 r4, r3, r2;
setp.eq.u32 p, r3, r4;
selp.u32 r5, 1, 0, p;
add.u32 r6, r1, 7;
st.shared.u32 [r3+4], r6;
ld.shared.u32 r7, [tile+4];
st.shared::cluster.u32 [r3+8], r6;
ld.shared.u32 r0, [r4+8];
cvt.u64.u32 rd3, r3;
cvta.shared.u64 rd3, rd3;
isspacep.shared::cta q, rd3;
selp.u32 r4, 1, 0, q;
st.global.v4.u32 [rd1], {r5, r7, r0, r4};
ld.u32 r5, [rd3+4];
getctarank.shared::cluster.u32 r6, r3;
shr.u32 r4, r3, 18;
setp.ne.u32 p, r4, 0;
selp.u32 r4, 1, 0, p;
st.global.v4.u32 [rd1+16], {r5, r6, r4, r4};
)" + meet;
  const auto run =
      run_body(body, {.grid = {4}, .block = {1}, .cluster = {2, 1, 1}}, 4 * 32, {}, shared);
  expect_clean(run);
  for (std::uint32_t block = 0; block < 4; ++block) {
    const auto first = run.out.begin() + 32 * block;
    const std::uint32_t value = block + 7;
    EXPECT_EQ(std::vector(first, first + 8),
              (std::vector<std::uint32_t>{1, value, value, 1, value, block % 2, 1, 1}));
  }
  // A block outside a cluster counts from the window's start.
  const auto alone = run_body("mov.u32 r1, tile;\nst.global.u32 [rd0], r1;", {}, 1, {}, shared);
  expect_clean(alone);
  EXPECT_LT(alone.out[0], 1024u);
}

// Without bit 24 an address leads to the even block of its pair: so kernels name an mbarrier there.
TEST(EmulatorCluster, BitOfAnAddressSaysWhichOfAPairOfBlocks) {
  const auto run = run_body(own_part + R"(
mov.u32 r3, tile;
st.shared.u32 [r3], r1;
)" + meet + R"(
and.b32 r4, r3, 0xFEFFFFFF;
ld.shared::cluster.u32 r5, [r4];
getctarank.shared::cluster.u32 r6, r4;
st.global.v2.u32 [rd1], {r5, r6};
)" + meet,
                            {.grid = {4}, .block = {1}, .cluster = {4, 1, 1}}, 4 * 32, {}, shared);
  expect_clean(run);
  for (std::uint32_t block = 0; block < 4; ++block) {
    EXPECT_EQ(run.out[32 * block], block & ~1u);
    EXPECT_EQ(run.out[32 * block + 1], block & ~1u);
  }
}

TEST(EmulatorCluster, ReadsAndWritesOfOtherBlocks) {
  const auto run = run_body(own_part + R"(
mov.u32 r3, tile;
mad.lo.u32 r4, r0, 4, r3;
mad.lo.u32 r5, r1, 1000, r0;
st.shared.u32 [r4], r5;
)" + meet + R"(
xor.b32 r6, r2, 1;
mapa.shared::cluster.u32 r7, r4, r6;
ld.shared::cluster.u32 r8, [r7];
cvt.u64.u32 rd3, r4;
cvta.shared.u64 rd3, rd3;
mapa.u64 rd4, rd3, r6;
ld.u32 r9, [rd4];
sub.u32 r10, r8, r9;
getctarank.shared::cluster.u32 r11, r7;
getctarank.u64 r12, rd3;
isspacep.shared::cta p, rd4;
selp.u32 r13, 1, 0, p;
isspacep.shared::cluster q, rd4;
selp.u32 r14, 0, 1, q;
add.u32 r10, r10, r13;
add.u32 r10, r10, r14;
sub.u32 r11, r11, r6;
sub.u32 r12, r12, r2;
add.u32 r10, r10, r11;
add.u32 r10, r10, r12;
add.u32 r8, r8, r10;
red.shared::cluster.add.u32 [r7+512], r8;
atom.shared::cluster.add.u32 r9, [r7+640], 1;
)" + meet + R"(
ld.shared.u32 r9, [r4+512];
ld.shared.u32 r10, [r4+640];
mad.lo.u32 r9, r10, 1000000, r9;
st.global.u32 [rd1], r9;)",
                            two, 128, {}, shared);
  expect_clean(run);
  // Lane 0 of a block added what it read from its neighbour to the neighbour's sum: its own value.
  for (std::uint32_t block = 0; block < 4; ++block)
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      EXPECT_EQ(run.out[32 * block + lane], 1000000 + 1000 * block + lane);
}

TEST(EmulatorCluster, BadAddressesAreFindings) {
  const auto finding = [](const std::string& access, std::uint32_t blocks = 2) {
    const auto run =
        run_body(own_part + "mov.u32 r3, tile;\nmov.u32 r7, 0;\n" + access + meet,
                 {.grid = {4}, .block = {32}, .cluster = {blocks, 1, 1}}, 128, {}, shared);
    EXPECT_EQ(run.complaint, "");
    return run.findings.empty() ? "" : run.findings[0].id + ": " + run.findings[0].message;
  };
  const std::string map = "mapa.shared::cluster.u32 r4, r3, 1;\n";
  EXPECT_EQ(finding(map + "st.shared::cluster.u32 [r4+1020], r7;\n"), "");
  EXPECT_NE(finding(map + "st.shared::cluster.u32 [r4+2048], r7;\n")
                .find("the CTA of rank 1 has 1024 bytes of shared memory"),
            std::string::npos);
  EXPECT_NE(finding("mapa.shared::cluster.u32 r4, r3, 2;\n").find("rank 2 in a cluster of 2"),
            std::string::npos);
  EXPECT_NE(finding(map, 1).find("rank 1 in a cluster of 1"), std::string::npos);
  EXPECT_NE(finding(map + "st.shared.u32 [r4], r7;\n").find("a cluster address"),
            std::string::npos);
  EXPECT_NE(finding("barrier.cluster.wait;\n").find("cluster-barrier"), std::string::npos);
  EXPECT_NE(finding("barrier.cluster.arrive;\nbarrier.cluster.arrive;\n").find("cluster-barrier"),
            std::string::npos);
}

TEST(EmulatorCluster, SharedMemoryEndsWithItsBlock) {
  const std::string late = own_part + "mov.u32 r3, tile;\nmov.u32 r8, 0;\n" + meet +
                           "setp.eq.u32 p, r2, 1;\n@p exit;\nnanosleep.u32 20;\nnanosleep.u32 20;\n"
                           "mapa.shared::cluster.u32 r4, r3, 1;\nld.shared::cluster.u32 r5, [r4];";
  const auto run = run_body(late, two, 128, {}, shared);
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_NE(run.findings[0].message.find("CTA of rank 1 has exited"), std::string::npos);
}

// ---- The barrier.

// Exited threads are not waited for; arrive and wait may be separate; phases follow each other.
TEST(EmulatorCluster, BarrierPhases) {
  const auto run = run_body(own_part + R"(
setp.ge.u32 p, r0, 20;
@p exit;
mov.u32 r3, tile;
mov.u32 r4, 0;
mov.u32 r5, 0;
xor.b32 r6, r2, 1;
mapa.shared::cluster.u32 r7, r3, r6;
LOOP:
add.u32 r5, r5, 1;
st.shared.u32 [r3], r5;
barrier.cluster.arrive.release;
add.u32 r9, r9, 1;
barrier.cluster.wait.acquire;
ld.shared::cluster.u32 r8, [r7];
sub.u32 r8, r8, r5;
or.b32 r4, r4, r8;
barrier.cluster.arrive.relaxed;
barrier.cluster.wait;
setp.lt.u32 p, r5, 50;
@p bra LOOP;
mad.lo.u32 r4, r4, 1000, r9;
st.global.u32 [rd1], r4;)",
                            two, 128, {}, shared);
  expect_clean(run);
  for (std::uint32_t block = 0; block < 4; ++block)
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      EXPECT_EQ(run.out[32 * block + lane], lane < 20 ? 50u : 0u);
}

// ---- mbarriers and copies across blocks.

// Two blocks hand a number back and forth through each other's shared memory.
TEST(EmulatorCluster, RemoteArrivalsAndStores) {
  const auto run = run_body(own_part + R"(
mov.u32 r3, tile;
mov.u32 r4, bar;
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
st.shared.u32 [tile], 0;
READY:
)" + meet + R"(
@q bra END;
xor.b32 r5, r2, 1;
mapa.shared::cluster.u32 r6, r3, r5;
mapa.shared::cluster.u32 r7, r4, r5;
mov.u32 r8, 0;
setp.ne.u32 p, r2, 0;
@p bra RECEIVE;
SEND:
ld.shared.u32 r9, [tile];
add.u32 r9, r9, 1;
mov.u32 r11, 1;
st.shared::cluster.u32 [r6], r9;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r7];
setp.ge.u32 p, r8, 100;
@p bra END;
RECEIVE:
and.b32 r10, r8, 1;
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [bar], r10;
@p bra GOT;
bra WAIT;
GOT:
add.u32 r8, r8, 1;
setp.lt.u32 p, r8, 101;
@p bra SEND;
END:
)" + meet + "ld.shared.u32 r9, [tile];\nst.global.u32 [rd1], r9;",
                            two, 128, {}, shared);
  expect_clean(run);
  EXPECT_EQ(run.out[0] + run.out[32], 2u * 201 - 1) << run.out[0] << " and " << run.out[32];
}

// Each block copies its tile to its neighbour's, 512 bytes further, by a bulk copy.
TEST(EmulatorCluster, BulkCopyBetweenBlocks) {
  const auto run = run_body(own_part + R"(
mov.u32 r3, tile;
mov.u32 r4, bar;
mad.lo.u32 r5, r0, 4, r3;
mad.lo.u32 r6, r1, 100, r0;
st.shared.u32 [r5], r6;
fence.proxy.async.shared::cta;
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
READY:
)" + meet + R"(
@q bra WAIT;
xor.b32 r7, r2, 1;
mapa.shared::cluster.u32 r8, r3, r7;
mapa.shared::cluster.u32 r9, r4, r7;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [r8+512], [tile], 128, [r9];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@!p bra WAIT;
ld.shared.u32 r6, [r5+512];
st.global.u32 [rd1], r6;
)" + meet,
                            two, 128, {}, shared);
  expect_clean(run);
  for (std::uint32_t block = 0; block < 4; ++block)
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      EXPECT_EQ(run.out[32 * block + lane], 100 * (block ^ 1) + lane);
}

std::string multicast(std::uint32_t mask) {
  return own_part + R"(
add.u32 r5, r0, 7;
mul.wide.u32 rd3, r0, 4;
add.s64 rd3, rd0, rd3;
st.global.u32 [rd3+512], r5;
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
READY:
)" + meet +
         R"(
or.b32 r3, r0, r2;
setp.ne.u32 p, r3, 0;
@p bra WAIT;
mov.b16 h, )" +
         std::to_string(mask) + R"(;
createpolicy.fractional.L2::evict_last.b64 rd4, 1.0;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [tile+128], [rd0+512], 128, [bar], h, rd4;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@!p bra WAIT;
mov.u32 r3, tile;
mad.lo.u32 r3, r0, 4, r3;
ld.shared.u32 r4, [r3+128];
st.global.u32 [rd1], r4;
)" + meet;
}

TEST(EmulatorCluster, MulticastReachesEveryBlock) {
  const Launch all{.grid = {4}, .block = {32}, .cluster = {4, 1, 1}};
  const auto run = run_body(".reg .b16 h;\n" + multicast(0xF), all, 160, {}, shared);
  expect_clean(run);
  for (std::uint32_t block = 0; block < 4; ++block)
    for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(run.out[32 * block + lane], lane + 7);
  const auto wide = run_body(".reg .b16 h;\n" + multicast(0x1F), all, 160, {}, shared);
  ASSERT_EQ(wide.findings.size(), 1u);
  EXPECT_NE(wide.findings[0].message.find("0x1f, which exceeds the cluster of 4"),
            std::string::npos);
}

// Each of two blocks loads half of a box and multicasts it to both.
TEST(EmulatorCluster, TensorMulticast) {
  const std::string text = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
.reqnctapercluster 2, 1, 1
{
.shared .align 128 .b8 tile[512];
.shared .align 8 .b64 bar;
.reg .pred p, q;
.reg .b16 h;
.reg .b32 r<12>;
.reg .b64 rd<4>, m;
ld.param.u64 rd0, [out];
mov.b64 m, map;
cvta.param.u64 m, m;
mov.u32 r0, %tid.x;
mov.u32 r1, %cluster_ctarank;
setp.ne.u32 q, r0, 0;
@q bra READY;
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
READY:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@q bra WAIT;
mov.u32 r2, tile;
shl.b32 r3, r1, 8;
add.u32 r2, r2, r3;
mov.u32 r4, 0;
shl.b32 r5, r1, 2;
mov.b16 h, 3;
createpolicy.fractional.L2::evict_first.b64 rd2, 1.0;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [r2], [m, {r4, r5}], [bar], h, rd2;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@!p bra WAIT;
mov.u32 r6, tile;
mov.u32 r7, %ctaid.x;
shl.b32 r7, r7, 7;
add.u32 r7, r7, r0;
mul.wide.u32 rd1, r7, 4;
add.s64 rd0, rd0, rd1;
mad.lo.u32 r6, r0, 4, r6;
ld.shared.u32 r8, [r6];
st.global.u32 [rd0], r8;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
}
)";
  auto device = Device::open("emulator");
  auto module = device->load(text);
  ASSERT_TRUE(static_cast<bool>(module)) << module.diags().text();
  auto kernel = module->kernel("k");
  ASSERT_TRUE(static_cast<bool>(kernel)) << kernel.diags().text();
  auto memory = device->allocate(8 * 64), out = device->allocate(2 * 512);
  std::vector<std::uint32_t> words(128);
  for (std::uint32_t i = 0; i < 128; ++i) words[i] = i * i;
  ASSERT_TRUE(static_cast<bool>(memory->write(words)));
  const TensorMap map{.type = u32,
                      .address = memory->address(),
                      .extents = {16, 8},
                      .strides = {64},
                      .box = {16, 4}};
  ASSERT_TRUE(static_cast<bool>(
      kernel->launch({.grid = {2}, .block = {128}}, Arguments().add(*map.encode()).add(*out))));
  const Status status = device->synchronize();
  ASSERT_TRUE(static_cast<bool>(status)) << status.diags().text();
  const auto got = out->read_all<std::uint32_t>();
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ((*got)[i], (i % 128) * (i % 128));
}

// ---- Launches.

TEST(EmulatorCluster, RejectsInvalidLaunches) {
  const auto complaint = [](const std::string& directives, Launch launch,
                            const std::string& target = "sm_90") {
    std::string text = kernel_text("");
    text.insert(text.find("{"), directives + "\n");
    text.replace(text.find("sm_90"), 5, target);
    return run_text(text, launch, 4).complaint;
  };
  const auto grid = [](std::uint32_t blocks, std::uint32_t cluster = 0) {
    return Launch{
        .grid = {blocks}, .block = {32}, .cluster = cluster ? Dim3{cluster, 1, 1} : Dim3{0, 0, 0}};
  };
  EXPECT_EQ(complaint(".reqnctapercluster 1, 1, 1", grid(1)), "");
  EXPECT_EQ(complaint(".reqnctapercluster 2, 1, 1", grid(4)), "");
  EXPECT_EQ(complaint(".reqnctapercluster 2", grid(4, 2)), "");
  EXPECT_NE(complaint(".reqnctapercluster 2, 1, 1", grid(4, 4)).find(".reqnctapercluster"),
            std::string::npos);
  EXPECT_NE(complaint(".reqnctapercluster 2, 1, 1", grid(3)).find("not a multiple of the cluster"),
            std::string::npos);
  EXPECT_NE(complaint(".explicitcluster", grid(4)).find(".explicitcluster"), std::string::npos);
  EXPECT_EQ(complaint(".explicitcluster", grid(4, 2)), "");
  EXPECT_EQ(complaint(".maxclusterrank 4", grid(4, 4)), "");
  EXPECT_NE(complaint(".maxclusterrank 2", grid(4, 4)).find(".maxclusterrank"), std::string::npos);
  EXPECT_NE(complaint("", grid(32, 32)).find("expected 1 to 16 thread blocks"), std::string::npos);
  EXPECT_NE(complaint("", grid(4, 2), "sm_80").find("unsupported on sm_80"), std::string::npos);
}

TEST(EmulatorCluster, RegisterBudgetIsChecked) {
  const auto complaint = [](const std::string& body) { return run_body(body).complaint; };
  EXPECT_EQ(complaint("setmaxnreg.inc.sync.aligned.u32 232;\nsetmaxnreg.dec.sync.aligned.u32 24;"),
            "");
  EXPECT_NE(complaint("setmaxnreg.inc.sync.aligned.u32 30;").find("immediate-range"),
            std::string::npos);
  EXPECT_EQ(complaint("createpolicy.fractional.L2::evict_first.b64 rd3, 1.0;\n"
                      "ld.global.L2::cache_hint.u32 r4, [rd0], rd3;\n"
                      "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n"
                      "discard.global.L2 [rd0], 128;"),
            "");
}

}  // namespace
}  // namespace tartan::test
