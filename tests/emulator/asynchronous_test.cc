// SPDX-License-Identifier: Apache-2.0
// mbarriers, bulk copies and other asynchronous accesses; packing conversions; the heap.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const std::string shared = ".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// ---- mbarriers.

TEST(EmulatorMbarrier, PhasesAlternate) {
  const KernelRun run = run_body(R"(
setp.ne.u32 p, r0, 0;
@p bra WAIT;
mbarrier.init.shared::cta.b64 [bar], 32;
WAIT:
bar.sync 0;
mov.u32 r1, 0;
mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 1;
selp.u32 r2, 1, 0, p;
mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 0;
selp.u32 r3, 2, 0, p;
bar.warp.sync 0xffffffff;
mbarrier.arrive.shared::cta.b64 rd2, [bar];
AGAIN:
mbarrier.try_wait.shared::cta.b64 p, [bar], rd2;
@!p bra AGAIN;
mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 0;
selp.u32 r4, 4, 0, p;
mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 1;
selp.u32 r5, 8, 0, p;
add.u32 r1, r2, r3;
add.u32 r1, r1, r4;
add.u32 r1, r1, r5;
st.global.u32 [rd1], r1;)",
                                 {.grid = {1}, .block = {32}}, 32, {}, shared);
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (const std::uint32_t word : run.out) EXPECT_EQ(word, 1u + 4u);
}

TEST(EmulatorMbarrier, PendingTransactionsKeepThePhaseOpen) {
  const KernelRun run = run_body(R"(
setp.ne.u32 q, r0, 0;
@q exit;
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 rd2, [bar], 48;
mbarrier.test_wait.shared::cta.b64 p, [bar], rd2;
selp.u32 r1, 1, 0, p;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 32;
mbarrier.test_wait.shared::cta.b64 p, [bar], rd2;
selp.u32 r2, 2, 0, p;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;
mbarrier.test_wait.shared::cta.b64 p, [bar], rd2;
selp.u32 r3, 4, 0, p;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 1;
selp.u32 r4, 8, 0, p;
add.u32 r1, r1, r2;
add.u32 r1, r1, r3;
add.u32 r1, r1, r4;
st.global.u32 [rd1], r1;)",
                                 {.grid = {1}, .block = {32}}, 32, {}, shared);
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  EXPECT_EQ(run.out[0], 4u + 8u) << "completions may come before what expects them";
}

TEST(EmulatorMbarrier, TooManyArrivalsTrap) {
  const KernelRun run = run_body(
      "setp.eq.u32 p, r0, 0;\n@p mbarrier.init.shared::cta.b64 [bar], 30;\nbar.sync 0;\n"
      "mbarrier.arrive.shared::cta.b64 _, [bar], 20;",
      {.grid = {1}, .block = {32}}, 32, {}, shared);
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "trap");
  EXPECT_EQ(run.findings[0].lane, 1);
}

// ---- Bulk copies.

const std::string fill_out = "mad.lo.u32 r2, r0, 3, 7;\nst.global.u32 [rd1], r2;\nbar.sync 0;\n";

TEST(EmulatorBulk, CopiesInAndOut) {
  const std::string body = fill_out + R"(
setp.ne.u32 q, r0, 0;
@q bra WAIT;
mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [rd0], 128, [bar];
WAIT:
bar.sync 0;
SPIN:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
@!p bra SPIN;
mov.u32 r3, tile;
mad.lo.u32 r3, r0, 4, r3;
ld.shared.u32 r4, [r3];
add.u32 r4, r4, 1000;
st.shared.u32 [r3+128], r4;
fence.proxy.async.shared::cta;
bar.sync 0;
@q exit;
cp.async.bulk.global.shared::cta.bulk_group [rd0+128], [tile+128], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;)";
  const KernelRun run = run_body(body, {.grid = {1}, .block = {32}}, 64, {}, shared);
  ASSERT_EQ(run.complaint, "");
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[32 + i], 1000 + 7 + 3 * i);
}

TEST(EmulatorBulk, Reduces) {
  const std::string body = fill_out + R"(
mov.u32 r3, tile;
mad.lo.u32 r3, r0, 4, r3;
st.shared.u32 [r3], r0;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 q, r0, 0;
@q exit;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [rd0], [tile], 64;
cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [rd0+64], [tile], 64;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;)";
  const KernelRun run = run_body(body, {.grid = {1}, .block = {32}}, 32, {}, shared);
  ASSERT_EQ(run.complaint, "");
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(run.out[i], 7 + 3 * i + i);
    EXPECT_EQ(run.out[16 + i], 7 + 3 * (16 + i));
  }
}

TEST(EmulatorBulk, BadCopiesAreFindings) {
  const auto finding = [](const std::string& copy) {
    const KernelRun run = run_body("mbarrier.init.shared::cta.b64 [bar], 1;\n" + copy,
                                   {.grid = {1}, .block = {1}}, 32, {}, shared);
    return run.findings.empty() ? run.complaint : run.findings[0].id;
  };
  const std::string in = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ";
  EXPECT_EQ(finding(in + "[tile], [rd0], 24, [bar];"), "misaligned-access");
  EXPECT_EQ(finding(in + "[tile+8], [rd0], 16, [bar];"), "misaligned-access");
  EXPECT_EQ(finding(in + "[tile], [rd0], 144, [bar];"), "memory-fault");
  EXPECT_EQ(finding(in + "[tile+1008], [rd0], 64, [bar];"), "memory-fault");
  EXPECT_EQ(finding(in + "[tile], [rd0], 128, [bar];"), "");
}

TEST(EmulatorAsynchronous, StoresAndReductionsCompleteTransactions) {
  const std::string expecting = R"(
setp.ne.u32 q, r0, 0;
@q exit;
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 rd2, [bar], 20;
mov.u32 r2, tile;
mov.u32 r3, bar;
mapa.shared::cluster.u32 r2, r2, 0;
mapa.shared::cluster.u32 r3, r3, 0;
mov.b32 r4, 5;
mov.b32 r5, 6;
mov.b32 r6, 7;
)";
  const KernelRun run = run_body(expecting + R"(
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [r2], {r4, r5, r6, r4}, [r3];
red.async.relaxed.cluster.shared::cluster.add.u32 [r2], r4, [r3];
)",
                                 {.grid = {1}, .block = {32}}, 32, {}, shared);
  EXPECT_NE(run.complaint.find("unsupported-instruction"), std::string::npos) << run.complaint;

  const KernelRun good = run_body(expecting + R"(
st.shared::cluster.u32 [r2+16], r5;
fence.proxy.async;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [r2], {r4, r5}, [r3];
st.async.shared::cta.v2.b32 [r2+8], {r6, r4}, [r3];
mbarrier.test_wait.shared::cta.b64 p, [bar], rd2;
selp.u32 r8, 100, 200, p;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [r2+16], r4, [r3];
mbarrier.test_wait.shared::cta.b64 p, [bar], rd2;
selp.u32 r9, 100, 200, p;
ld.shared.v4.u32 {r4, r5, r6, r7}, [tile];
st.global.v4.u32 [rd1], {r4, r5, r6, r7};
st.global.v2.u32 [rd1+16], {r8, r9};
ld.shared.u32 r4, [tile+16];
st.global.u32 [rd1+24], r4;)",
                                  {.grid = {1}, .block = {32}}, 32, {}, shared);
  ASSERT_EQ(good.complaint, "");
  ASSERT_TRUE(good.findings.empty()) << good.findings[0].message;
  const std::vector<std::uint32_t> wanted{5, 6, 7, 5, 200, 100, 11};
  EXPECT_EQ(std::vector(good.out.begin(), good.out.begin() + 7), wanted);
}

// ---- Packing conversions.

std::uint32_t one(const std::string& body) {
  const KernelRun run = run_body(body + "\nst.global.b32 [rd1], r1;");
  EXPECT_EQ(run.complaint, "");
  return run.launched ? run.out[0] : 0;
}

TEST(EmulatorConversion, PacksIntegers) {
  const std::string start = "mov.b32 r2, 300;\nmov.b32 r3, -5;\nmov.b32 r4, 0x12345678;\n";
  EXPECT_EQ(one(start + "cvt.pack.sat.s16.s32 r1, r2, r3;"), 0x012CFFFBu);
  EXPECT_EQ(one(start + "cvt.pack.sat.u16.s32 r1, r2, r3;"), 0x012C0000u);
  EXPECT_EQ(one(start + "cvt.pack.sat.s8.s32.b32 r1, r2, r3, r4;"), 0x56787FFBu);
  EXPECT_EQ(one(start + "cvt.pack.sat.u8.s32.b32 r1, r2, r3, r4;"), 0x5678FF00u);
  EXPECT_EQ(one(start + "cvt.pack.sat.s4.s32.b32 r1, r2, r3, r4;"), 0x3456787Bu);
  EXPECT_EQ(one(start + "cvt.pack.sat.u2.s32.b32 r1, r2, r3, r4;"), 0x2345678Cu);
}

// Only the lower half of a wider register is read, and its upper half becomes 0.
TEST(EmulatorConversion, PacksInWiderRegisters) {
  const std::string start =
      ".reg .b64 a, b, d;\nmov.b64 a, 0x100000003F800000;\nmov.b64 b, 0x2000000040000000;\n"
      "mov.b64 d, -1;\n";
  const auto halves = [&](const std::string& conversion) {
    const std::string take = ";\n.reg .b32 low, high;\nmov.b64 {low, high}, d;\n";
    EXPECT_EQ(one(start + conversion + take + "mov.b32 r1, high;"), 0u) << conversion;
    return one(start + conversion + take + "mov.b32 r1, low;");
  };
  EXPECT_EQ(halves("cvt.rn.f16x2.f32 d, a, b"), 0x3C004000u);
  EXPECT_EQ(halves("cvt.rn.relu.f16.f32 d, b"), 0x4000u);
  EXPECT_EQ(halves("cvt.pack.sat.u16.s32 d, a, 5"), 0xFFFF0005u);
  EXPECT_EQ(halves("cvt.pack.sat.u8.s32.b32 d, 3, 4, a"), 0x00000304u);
}

TEST(EmulatorConversion, PowersOfTwo) {
  const auto to = [](const std::string& how, float high, float low) {
    return one(".reg .b16 h;\nmov.b32 r2, " + std::to_string(bits(high)) + ";\nmov.b32 r3, " +
               std::to_string(bits(low)) + ";\ncvt." + how +
               ".ue8m0x2.f32 h, r2, r3;\ncvt.u32.u16 r1, h;");
  };
  EXPECT_EQ(to("rz", 1.0f, 1.5f), 0x7F7Fu);
  EXPECT_EQ(to("rp", 1.0f, 1.5f), 0x7F80u);
  EXPECT_EQ(to("rp", -4.0f, 0.0f), 0x8100u);
  EXPECT_EQ(to("rz", HUGE_VALF, 0x1p-127f), 0xFF00u);
  EXPECT_EQ(to("rp.satfinite", HUGE_VALF, 0x1.8p-127f), 0xFE01u);
  EXPECT_EQ(to("rp.satfinite", 0x1.8p127f, 0x1p-140f), 0xFE00u);
  EXPECT_EQ(one(".reg .b16 h;\nmov.b16 h, 0x7F80;\ncvt.rn.bf16x2.ue8m0x2 r1, h;"), 0x3F804000u);
  EXPECT_EQ(one(".reg .b16 h;\nmov.b16 h, 0x00FF;\ncvt.rn.bf16x2.ue8m0x2 r1, h;"), 0x00407FFFu);
}

// ---- Pairs of f32.

TEST(EmulatorFloatPairs, MatchScalars) {
  const KernelRun run = run_body(R"(
mov.b32 f1, 1.5;
mov.b32 f2, -2.0;
mov.b32 f3, 4.0;
mov.b32 f4, 0f00000001;
mov.b64 rd2, {f1, f2};
mov.b64 rd3, {f3, f4};
add.rn.f32x2 rd4, rd2, rd3;
st.global.u64 [rd0], rd4;
sub.rn.f32x2 rd4, rd2, rd3;
st.global.u64 [rd0+8], rd4;
mul.rn.ftz.f32x2 rd4, rd2, rd3;
st.global.u64 [rd0+16], rd4;
fma.rp.f32x2 rd4, rd2, rd3, rd2;
st.global.u64 [rd0+24], rd4;)",
                                 {.grid = {1}, .block = {1}}, 8);
  ASSERT_EQ(run.complaint, "");
  const std::vector<std::uint32_t> wanted{bits(5.5f), bits(-2.0f), bits(-2.5f), bits(-2.0f),
                                          bits(6.0f), bits(-0.0f), bits(7.5f),  bits(-2.0f)};
  EXPECT_EQ(run.out, wanted);
}

// ---- The heap.

constexpr const char* heap_functions =
    ".extern .func (.param .b64 at) malloc(.param .b64 size);\n"
    ".extern .func free(.param .b64 at);\n";

// Each lane writes to its own allocation and reads it back after all have written.
TEST(EmulatorHeap, AllocationsDoNotOverlap) {
  const KernelRun run = run_body(R"({
.param .b64 size;
.param .b64 at;
mov.b64 rd2, 20;
st.param.b64 [size], rd2;
call.uni (at), malloc, (size);
ld.param.b64 rd3, [at];
}
st.u32 [rd3], r0;
st.u32 [rd3+16], r0;
bar.sync 0;
ld.u32 r1, [rd3];
ld.u32 r2, [rd3+16];
add.u32 r1, r1, r2;
st.global.u32 [rd1], r1;
{
.param .b64 at;
st.param.b64 [at], rd3;
call.uni free, (at);
})",
                                 {.grid = {1}, .block = {64}}, 64, {}, heap_functions);
  ASSERT_EQ(run.complaint, "");
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(run.out[i], 2 * i);
}

TEST(EmulatorHeap, ExhaustionAndFree) {
  const KernelRun run = run_body(R"(
mov.u32 r5, 0;
mov.u32 r6, 0;
LOOP:
{
.param .b64 size;
.param .b64 at;
mov.b64 rd2, 6000000;
st.param.b64 [size], rd2;
call.uni (at), malloc, (size);
ld.param.b64 rd3, [at];
call.uni (at), malloc, (size);
ld.param.b64 rd4, [at];
}
setp.eq.u64 p, rd3, 0;
@p add.u32 r6, r6, 100;
setp.ne.u64 p, rd4, 0;
@p add.u32 r6, r6, 100;
{
.param .b64 at;
st.param.b64 [at], rd4;
call.uni free, (at);
st.param.b64 [at], rd3;
call.uni free, (at);
}
add.u32 r5, r5, 1;
add.u32 r6, r6, 1;
setp.lt.u32 p, r5, 10;
@p bra LOOP;
st.global.u32 [rd1], r6;)",
                                 {.grid = {1}, .block = {1}}, 1, {}, heap_functions);
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  EXPECT_EQ(run.out[0], 10u) << "the first of two fits each time, the second never";
}

TEST(EmulatorHeap, FreeOfAForeignAddressIsAFinding) {
  const KernelRun run =
      run_body("{\n.param .b64 at;\nst.param.b64 [at], rd0;\ncall.uni free, (at);\n}",
               {.grid = {1}, .block = {1}}, 1, {}, heap_functions);
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].id, "memory-fault");
}

// ---- Unsupported instructions are reported before anything runs.

TEST(EmulatorLoading, NamesUnsupportedInstructions) {
  for (const std::string instruction :
       {"cp.async.bulk.tensor.3d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes "
        "[tile], [rd0, {r1, r2, r3}], [bar], {r4, r5};",
        "lg2.approx.ftz.f64 rd2, rd3;", "tcgen05.wait::ld.sync.aligned;",
        "barrier.cluster.meet;"}) {
    const KernelRun run = run_body("mov.u32 r5, 1;\n" + instruction, {}, 4, {}, shared);
    EXPECT_FALSE(run.launched) << instruction;
    EXPECT_NE(run.complaint.find("unsupported-instruction"), std::string::npos)
        << instruction << '\n'
        << run.complaint;
    const std::string name = instruction.substr(0, instruction.find_first_of(" ;"));
    EXPECT_NE(run.complaint.find(name), std::string::npos) << run.complaint;
    const int line = line_of("mov.u32 r5, 1;\n" + instruction, instruction, shared);
    EXPECT_NE(run.complaint.find("test.ptx:" + std::to_string(line) + ":"), std::string::npos)
        << run.complaint;
  }
}

TEST(EmulatorLoading, DynamicSharedNamesTakeOffsets) {
  const KernelRun run = run_body(
      "mov.u32 r1, dynamic+8;\nmov.u64 rd2, dynamic+12;\ncvt.u32.u64 r2, rd2;\nmov.u32 r3, "
      "dynamic;\nsub.u32 r1, r1, r3;\nsub.u32 r2, r2, r3;\nst.global.v2.u32 [rd0], {r1, r2};",
      {.grid = {1}, .block = {1}, .dynamic_shared = 64}, 4, {},
      shared + ".extern .shared .align 16 .b8 dynamic[];\n");
  ASSERT_EQ(run.complaint, "");
  EXPECT_EQ(run.out[0], 8u);
  EXPECT_EQ(run.out[1], 12u);
}

}  // namespace
}  // namespace tartan::test
