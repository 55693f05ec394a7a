// SPDX-License-Identifier: Apache-2.0
// The emulator's memory: state spaces, vectors, atomics, asynchronous copies, and invalid accesses.
#include <algorithm>
#include <bit>

#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using test::line_of;
using test::run_body;

TEST(EmulatorMemory, OutOfBoundsStopsWithTheFirstLaneAndItsAddress) {
  const std::string body = "st.global.u32 [rd1], r0;";
  const auto run = run_body(body, {.grid = {1}, .block = {64}}, 40);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "memory-fault");
  EXPECT_EQ(run.findings[0].lane, 40);
  EXPECT_EQ(run.findings[0].address % 256, 160u);
  EXPECT_EQ(run.findings[0].line, line_of(body, body));
}

TEST(EmulatorMemory, SmallAndNullAddressesFault) {
  for (const char* body :
       {"mov.u64 rd2, 0; ld.global.u32 r1, [rd2];", "mov.u64 rd2, 16; ld.u32 r1, [rd2];",
        "add.s64 rd2, rd0, -4; ld.global.u32 r1, [rd2];",
        "mov.u32 r2, 4096; ld.shared.u32 r1, [r2];", "mov.u64 rd2, 8; ld.local.u32 r1, [rd2];"}) {
    const auto run = run_body(body);
    ASSERT_TRUE(run.launched) << run.complaint;
    ASSERT_EQ(run.findings.size(), 1u) << body;
    EXPECT_EQ(run.findings[0].id, "memory-fault") << body;
  }
}

TEST(EmulatorMemory, MisalignedAccessesAreFound) {
  const auto run = run_body("add.s64 rd2, rd1, 4;\nld.global.v4.u32 {r1, r2, r3, r4}, [rd2];",
                            {.grid = {1}, .block = {1}});
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "misaligned-access");
}

TEST(EmulatorMemory, GenericAddressesReachEverySpace) {
  const auto run =
      run_body(R"(
    .local .align 8 .b8 mine[16];
    mov.u64 rd2, tile;
    cvta.shared.u64 rd3, rd2;
    mul.wide.u32 rd4, r0, 4;
    add.s64 rd3, rd3, rd4;
    st.u32 [rd3], r0;
    mov.u64 rd5, mine;
    cvta.local.u64 rd6, rd5;
    add.u32 r2, r0, 100;
    st.u32 [rd6+8], r2;
    bar.warp.sync -1;
    cvta.to.shared.u64 rd7, rd3;
    ld.shared.u32 r3, [rd7];
    ld.local.u32 r4, [mine+8];
    isspacep.shared p, rd3;
    selp.u32 r5, 1, 0, p;
    isspacep.global p, rd1;
    selp.u32 r6, 2, 0, p;
    ld.const.u32 r7, [numbers+4];
    add.u32 r3, r3, r4;
    mad.lo.u32 r5, r5, 1000, r3;
    mad.lo.u32 r6, r6, 1000, r5;
    add.u32 r6, r6, r7;
    st.u32 [rd1], r6;)",
               {.grid = {1}, .block = {32}}, 64, {},
               ".shared .align 4 .b8 tile[128];\n.const .align 4 .u32 numbers[3] = {7, 50000, 9};");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(run.out[i], 2 * i + 100 + 1000 + 2000 + 50000) << i;
}

TEST(EmulatorMemory, VectorsAndNarrowTypesKeepTheirBits) {
  const auto run = run_body(R"(
    shl.b32 r1, r0, 4;
    cvt.u64.u32 rd2, r1;
    add.s64 rd2, rd0, rd2;
    mov.u32 r2, 0x80ff7f01;
    st.global.v4.u32 [rd2], {r2, r0, r2, r0};
    ld.global.v2.u16 {r3, r4}, [rd2];
    ld.global.s8 r5, [rd2+3];
    ld.global.v2.b64 {rd3, rd4}, [rd2];
    setp.eq.s64 p, rd3, rd4;
    selp.u32 r6, 1, 0, p;
    st.global.v4.u32 [rd2], {r3, r4, r5, r6};)",
                            {.grid = {1}, .block = {32}}, 128);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(run.out[4 * i], 0x7f01u);
    EXPECT_EQ(run.out[4 * i + 1], 0x80ffu);
    EXPECT_EQ(run.out[4 * i + 2], 0xffffff80u);
    EXPECT_EQ(run.out[4 * i + 3], 1u);
  }
}

TEST(EmulatorMemory, AtomicsOfManyBlocksAddUp) {
  const auto run = run_body(R"(
    atom.global.add.u32 r1, [rd0], 1;
    red.global.max.s32 [rd0+4], r0;
    red.global.min.s32 [rd0+8], -5;
    atom.global.inc.u32 r2, [rd0+12], 9;
    mov.f32 f0, 0f3F800000;
    red.global.add.f32 [rd0+16], f0;
    red.global.or.b32 [rd0+20], r0;
    atom.global.add.noftz.f16x2 r3, [rd0+24], 0x3C003C00;)",
                            {.grid = {20}, .block = {50}}, 64, {.threads = 4});
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  EXPECT_EQ(run.out[0], 1000u);
  EXPECT_EQ(run.out[1], 49u);
  EXPECT_EQ(run.out[2], static_cast<std::uint32_t>(-5));
  EXPECT_EQ(run.out[3], 0u);
  EXPECT_EQ(std::bit_cast<float>(run.out[4]), 1000.0f);
  EXPECT_EQ(run.out[5], 63u);
  EXPECT_EQ(run.out[6], 0x63D063D0u);  // 1000 in f16
}

TEST(EmulatorMemory, AsynchronousCopiesFillWithZeros) {
  const auto run =
      run_body(R"(
    st.global.u32 [rd1], 0x01020304;
    bar.sync 0;
    mov.u32 r1, tile;
    shl.b32 r2, r0, 4;
    add.u32 r2, r1, r2;
    st.shared.v4.u32 [r2], {r0, r0, r0, r0};
    setp.ge.u32 p, r0, 8;
    @p bra WAIT;
    mul.wide.u32 rd2, r0, 16;
    add.s64 rd2, rd0, rd2;
    shl.b32 r3, r0, 1;
    cp.async.cg.shared.global [r2], [rd2], 16, r3;
  WAIT:
    cp.async.commit_group;
    cp.async.wait_group 0;
    ld.shared.u32 r4, [r2+8];
    st.global.u32 [rd1+1024], r4;)",
               {.grid = {1}, .block = {32}}, 1024, {}, ".shared .align 16 .b8 tile[512];");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t expected = i >= 8 ? i : 2 * i < 10 ? 0 : 2 * i == 10 ? 0x0304 : 0x01020304;
    EXPECT_EQ(run.out[256 + i], expected) << i;
  }
}

TEST(EmulatorMemory, MbarriersReleaseWhenAllHaveArrived) {
  const auto run = run_body(R"(
    mov.u32 r1, tile;
    setp.eq.u32 p, r0, 0;
    @p mbarrier.init.shared.b64 [r1], 64;
    bar.sync 0;
    setp.lt.u32 p, r0, 32;
    @!p bra ARRIVE;
    st.shared.u32 [r1+8], 77;
  ARRIVE:
    mbarrier.arrive.shared.b64 rd2, [r1];
  WAIT:
    mbarrier.try_wait.parity.shared.b64 q, [r1], 0;
    @!q bra WAIT;
    ld.shared.u32 r2, [r1+8];
    st.global.u32 [rd1], r2;)",
                            {.grid = {1}, .block = {64}}, 64, {.max_steps = 1'000'000},
                            ".shared .align 8 .b8 tile[16];");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(run.out[i], 77u);
}

TEST(EmulatorMemory, DynamicSharedMemoryFollowsTheStaticOne) {
  const std::string shared =
      ".shared .align 4 .b8 fixed[100];\n.extern .shared .align 16 .b8 dynamic[];";
  const std::string body = R"(
    mov.u32 r1, dynamic;
    mov.u32 r2, fixed;
    sub.u32 r3, r1, r2;
    shl.b32 r4, r0, 2;
    add.u32 r4, r1, r4;
    st.shared.u32 [r4], r3;
    ld.shared.u32 r5, [r4];
    mov.u32 r6, %dynamic_smem_size;
    mad.lo.u32 r5, r6, 1000, r5;
    st.global.u32 [rd1], r5;)";
  const auto run =
      run_body(body, {.grid = {1}, .block = {32}, .dynamic_shared = 128}, 64, {}, shared);
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], 128112u);
  const auto small =
      run_body(body, {.grid = {1}, .block = {32}, .dynamic_shared = 64}, 64, {}, shared);
  ASSERT_EQ(small.findings.size(), 1u);
  EXPECT_EQ(small.findings[0].id, "memory-fault");
  EXPECT_EQ(small.findings[0].lane, 16);
  const auto large =
      run_body(body, {.grid = {1}, .block = {32}, .dynamic_shared = 300'000}, 64, {}, shared);
  EXPECT_FALSE(large.launched);
  EXPECT_NE(large.complaint.find("launch-arguments"), std::string::npos) << large.complaint;
}

// Half of the blocks use red or 128 bits, half TMA or 32 bits.
TEST(EmulatorMemory, AtomicsOfSeveralWidthsAndCopiesAddUp) {
  const std::string choose =
      "mov.u32 r1, %ctaid.x;\nand.b32 r1, r1, 1;\nsetp.eq.u32 p, r1, 0;\nmov.u32 r2, 0;\n";
  const std::string count = "add.u32 r2, r2, 1;\nsetp.lt.u32 q, r2, 2000;\n";
  const auto run =
      run_body(choose + R"(
mov.u32 r3, 1;
st.shared.v4.u32 [ones], {r3, r3, r3, r3};
fence.proxy.async.shared::cta;
@p bra COPY;
RED:
red.global.add.u32 [rd0], 1;
)" + count + R"(@q bra RED;
bra END;
COPY:
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [rd0], [ones], 16;
)" + count + R"(@q bra COPY;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:)",
               {.grid = {8}, .block = {1}}, 4, {.threads = 4}, ".shared .align 16 .b8 ones[16];");
  ASSERT_TRUE(run.launched) << run.complaint;
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  EXPECT_EQ(run.out, (std::vector<std::uint32_t>{16000, 8000, 8000, 8000}));

  const auto wide = run_body(choose + R"(
.reg .b128 x, y, z;
.reg .b64 low, high;
@p bra NARROW;
AGAIN:
ld.global.v2.u64 {low, high}, [rd0];
mov.b128 x, {low, high};
add.u64 high, high, 1;
mov.b128 y, {low, high};
atom.global.cas.b128 z, [rd0], x, y;
mov.b128 {rd4, rd5}, z;
add.u64 rd5, rd5, 1;
setp.ne.u64 q, rd5, high;
@q bra AGAIN;
setp.ne.u64 q, rd4, low;
@q bra AGAIN;
)" + count + R"(@q bra AGAIN;
bra END;
NARROW:
red.global.add.u32 [rd0+4], 1;
)" + count + "@q bra NARROW;\nEND:",
                             {.grid = {4}, .block = {1}}, 4, {.threads = 4});
  ASSERT_TRUE(wide.launched) << wide.complaint;
  ASSERT_TRUE(wide.findings.empty()) << wide.findings[0].message;
  EXPECT_EQ(wide.out, (std::vector<std::uint32_t>{0, 4000, 4000, 0}));
}

// Global memory flushes subnormal numbers, shared memory does not; also at generic addresses.
TEST(EmulatorMemory, SumsOfSubnormalNumbers) {
  const auto run = run_body(R"(
mov.b32 f1, 0x80000003;
mov.u64 rd4, there;
cvta.shared.u64 rd4, rd4;
st.shared.f32 [there], f1;
st.shared.f32 [there+4], f1;
st.global.f32 [rd0], f1;
st.global.f32 [rd0+4], f1;
st.global.v2.f32 [rd0+8], {f1, f1};
red.shared.add.f32 [there], f1;
red.add.f32 [rd4+4], f1;
red.global.add.f32 [rd0], f1;
red.add.f32 [rd0+4], f1;
red.global.v2.f32.add [rd0+8], {f1, f1};
ld.shared.v2.u32 {r1, r2}, [there];
st.global.v2.u32 [rd0+16], {r1, r2};
mov.b32 f2, 0x00800000;
mov.b32 f3, 0x80800001;
st.global.f32 [rd0+24], f2;
atom.global.add.f32 f4, [rd0+24], f3;)",
                            {.grid = {1}, .block = {1}}, 7, {}, ".shared .align 8 .b8 there[8];");
  ASSERT_TRUE(run.launched) << run.complaint;
  EXPECT_EQ(run.out, (std::vector<std::uint32_t>{0x80000000, 0x80000000, 0x80000000, 0x80000000,
                                                 0x80000006, 0x80000006, 0x80000000}));
}

TEST(EmulatorMemory, ParametersAreReadOnly) {
  for (const char* body :
       {"mov.u64 rd2, out; cvta.param.u64 rd2, rd2; st.u32 [rd2], r0;",
        "mov.u64 rd2, out; cvta.param.u64 rd2, rd2; st.v2.u32 [rd2], {r0, r0};",
        "mov.u64 rd2, out; cvta.param.u64 rd2, rd2; red.add.u32 [rd2], 1;",
        "mov.u64 rd2, out; cvta.param.u64 rd2, rd2; setp.eq.u32 p, r0, 3; @p mov.u64 rd1, rd2; "
        "st.u32 [rd1], r0;"}) {
    const auto run = run_body(body);
    ASSERT_TRUE(run.launched) << run.complaint;
    ASSERT_EQ(run.findings.size(), 1u) << body;
    EXPECT_EQ(run.findings[0].id, "memory-fault") << body;
    EXPECT_NE(run.findings[0].message.find("read-only"), std::string::npos) << body;
  }
}

TEST(EmulatorMemory, RarelySeenForms) {
  const auto run = run_body(R"(
.reg .f64 g<2>;
mov.f64 g0, 0d4010000000000000;
rsqrt.approx.f64 g1, g0;
mov.b64 rd2, g1;
st.global.u64 [rd0], rd2;
mov.b32 f1, 0x80000001;
slct.ftz.u64.f32 rd3, 5, 6, f1;
slct.u64.f32 rd4, 5, 6, f1;
st.global.u64 [rd0+8], rd3;
st.global.u64 [rd0+16], rd4;)",
                            {.grid = {1}, .block = {1}}, 6);
  ASSERT_TRUE(run.launched) << run.complaint;
  EXPECT_EQ(run.out, (std::vector<std::uint32_t>{0, 0x3FE00000, 5, 0, 6, 0}));
}

}  // namespace
}  // namespace tartan
