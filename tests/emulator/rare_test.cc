// SPDX-License-Identifier: Apache-2.0
// Rarely used instructions of sm_90 and sm_100.
#include <cmath>

#include "tests/emulator/kernel.h"
#include "tests/emulator/scalar.h"

namespace tartan {
namespace {

using test::KernelRun;
using test::ScalarCase;

std::string blackwell_text(const std::string& body, const std::string& declarations = {}) {
  std::string text = test::kernel_text(body, declarations);
  text.replace(0, text.find(".address_size"), ".version 9.0\n.target sm_100a\n");
  return text;
}

KernelRun run_blackwell(const std::string& body, const std::string& declarations = {},
                        Launch launch = {.grid = {1}, .block = {32}}, std::size_t words = 64,
                        const DeviceOptions& options = {}) {
  return test::run_text(blackwell_text(body, declarations), launch, words, options);
}

std::vector<std::vector<std::uint64_t>> scalars(const std::vector<ScalarCase>& cases) {
  auto engine = emulator::make_engine({});
  return test::run_scalar_cases(**engine, cases);
}

// ---- Stores.

TEST(EmulatorRare, BulkStoresFillSharedMemoryWithZeros) {
  const std::string fill = R"(
mov.u32 r1, area;
mad.lo.u32 r1, r0, 4, r1;
st.shared.u32 [r1], 0xFFFFFFFF;
bar.sync 0;
setp.eq.u32 q, r0, 0;
mov.u64 rd3, SIZE;
mov.u32 r3, area;
@q st.bulk.weak.shared::cta [r3+16], rd3, 0;
bar.sync 0;
ld.shared.u32 r2, [r1];
st.global.u32 [rd1], r2;
)";
  const std::string area = ".shared .align 16 .b8 area[128];\n";
  const auto with_size = [&](const std::string& size) {
    std::string body = fill;
    return run_blackwell(body.replace(body.find("SIZE"), 4, size), area);
  };
  const KernelRun run = with_size("24");
  ASSERT_EQ(run.complaint, "");
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::size_t i = 0; i < 32; ++i)
    EXPECT_EQ(run.out[i], i >= 4 && i < 10 ? 0 : 0xFFFFFFFF) << i;
  EXPECT_EQ(with_size("12").findings.at(0).id, "misaligned-access");
  EXPECT_EQ(with_size("4096").findings.at(0).id, "memory-fault");
}

TEST(EmulatorRare, GenericBulkStores) {
  const KernelRun run = run_blackwell(R"(
setp.ne.u32 q, r0, 0;
@q bra done;
mov.u32 r1, area;
st.shared.u64 [r1+8], -1;
cvta.shared.u64 rd2, area;
st.bulk [rd2+8], 8, 0;
ld.shared.u32 r2, [r1+8];
st.global.u32 [rd1], r2;
.reg .u32 size;
mov.u32 size, 8;
st.shared.u64 [r1], -1;
st.bulk [rd2], size, 0;
ld.shared.u32 r2, [r1+4];
st.global.u32 [rd1+4], r2;
st.bulk [rd0], 8, 0;
done:
)",
                                      ".shared .align 16 .b8 area[16];\n");
  ASSERT_EQ(run.complaint, "");
  EXPECT_EQ(run.out[0], 0u);
  EXPECT_EQ(run.out[1], 0u);
  ASSERT_EQ(run.findings.size(), 1u);  // of global memory
  EXPECT_EQ(run.findings[0].id, "memory-fault");
}

TEST(EmulatorRare, VectorsWithGapsLeaveMemoryAsItIs) {
  const KernelRun run = run_blackwell(R"(
setp.ne.u32 q, r0, 0;
@q bra done;
st.global.v4.b32 [rd0], {1, 2, 3, 4};
st.global.v4.b32 [rd0+16], {5, 6, 7, 8};
mov.u32 r1, 100;
mov.u64 rd2, 0x700000008;
st.global.v8.b32 [rd0], {r1, _, _, r1, _, _, _, r1};
st.global.v4.b64 [rd0+32], {rd2, _, rd2, _};
done:
)");
  ASSERT_EQ(run.complaint, "");
  const std::uint32_t want[] = {100, 2, 3, 100, 5, 6, 7, 100, 8, 7, 0, 0, 8, 7, 0, 0};
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(run.out[i], want[i]) << i;
}

TEST(EmulatorRare, LateStoresAndReductions) {
  const KernelRun run = run_blackwell(R"(
mov.u32 r1, 7;
st.async.mmio.release.gpu.global.b32 [rd1], r1;
red.async.mmio.release.sys.global.add.u32 [rd1], r0;
st.async.release.gpu.b32 [rd1+128], r1;
red.async.release.gpu.add.u32 [rd1+128], r0;
)");
  ASSERT_EQ(run.complaint, "");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(run.out[i], 7 + i % 32);
}

TEST(EmulatorRare, MaskedBulkCopies) {
  const KernelRun run = run_blackwell(R"(
mov.u32 r1, area;
mad.lo.u32 r1, r0, 4, r1;
st.shared.u32 [r1], 0x44332211;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 q, r0, 0;
@q bra done;
.reg .b16 h;
mov.u16 h, 0x8005;
cp.async.bulk.global.shared::cta.bulk_group.cp_mask [rd0], [area], 48, h;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
done:
)",
                                      ".shared .align 16 .b8 area[128];\n");
  ASSERT_EQ(run.complaint, "");
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_EQ(run.out[i], i >= 12      ? 0u
                          : i % 4 == 0 ? 0x00330011u
                          : i % 4 == 3 ? 0x44000000u
                                       : 0u)
        << i;
}

// ---- Arithmetic.

TEST(EmulatorRare, ExtremaOfThreeMagnitudes) {
  std::vector<ScalarCase> cases;
  for (const char* name : {"min", "max"})
    for (const char* ftz : {"", ".ftz"})
      for (const char* nan : {"", ".NaN"})
        cases.push_back({.text = std::string(name) + ftz + nan + ".abs.f32 d, a, b, c;",
                         .sources = {32, 32, 32}});
  const auto got = scalars(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string& text = cases[i].text;
    const bool flushes = text.find("ftz") != std::string::npos,
               passes_nan = text.find("NaN") != std::string::npos;
    for (int lane = 0; lane < test::scalar_lanes; ++lane) {
      std::vector<std::uint32_t> numbers;  // magnitudes, which are in the order of their bits
      bool any_nan = false;
      for (int s = 0; s < 3; ++s) {
        auto bits = static_cast<std::uint32_t>(test::scalar_input(32, s, lane)) & 0x7FFFFFFF;
        if (flushes && bits < 0x00800000) bits = 0;
        if (bits > 0x7F800000) any_nan = true;
        else numbers.push_back(bits);
      }
      std::uint32_t want = 0x7FFFFFFF;
      if (!numbers.empty() && !(any_nan && passes_nan))
        want = text[1] == 'i' ? *std::min_element(numbers.begin(), numbers.end())
                              : *std::max_element(numbers.begin(), numbers.end());
      EXPECT_EQ(got[i][static_cast<std::size_t>(lane)], want) << text << " lane " << lane;
    }
  }
}

// A factor 0x7FF7, TMA's fill for out-of-bounds elements, gives +0; otherwise the result is as
// without .oob.
TEST(EmulatorRare, FusedProductsOfOutOfBoundsOperands) {
  std::vector<ScalarCase> cases;
  for (const char* relu : {"", ".relu"})
    for (const char* type : {"f16", "bf16", "f16x2", "bf16x2"}) {
      const int width = std::string(type).ends_with("x2") ? 32 : 16;
      for (const char* prologue :
           {"", "mov.b16 a, 0x7FF7; ", "mov.b16 b, 0x7FF7; ", "mov.b16 c, 0x7FF7; ",
            "mov.b32 a, 0x7FF73C00; ", "mov.b32 b, 0x3C007FF7; "}) {
        const bool wide = std::string(prologue).find("b32") != std::string::npos;
        if (*prologue && wide != (width == 32)) continue;
        for (const char* oob : {".oob", ""})
          cases.push_back(
              {.text = std::string(prologue) + "fma.rn" + oob + relu + "." + type + " d, a, b, c;",
               .d = width,
               .sources = {width, width, width}});
      }
    }
  const auto got = scalars(cases);
  for (std::size_t i = 0; i < cases.size(); i += 2) {
    const std::string& text = cases[i].text;
    std::uint64_t keep = 0xFFFFFFFF;
    if (text.find("a, 0x7FF7;") != std::string::npos ||
        text.find("b, 0x7FF7;") != std::string::npos)
      keep = 0;
    if (text.find("0x7FF73C00") != std::string::npos) keep = 0xFFFF;
    if (text.find("0x3C007FF7") != std::string::npos) keep = 0xFFFF0000;
    for (std::size_t lane = 0; lane < test::scalar_lanes; ++lane)
      EXPECT_EQ(got[i][lane], got[i + 1][lane] & keep) << text << " lane " << lane;
  }
}

TEST(EmulatorRare, BarriersMayBeAligned) {
  const KernelRun run = test::run_body(
      "setp.lt.u32 q, r0, 5;\nbar.cta.red.popc.aligned.u32 r1, 0, q;\nbar.sync.aligned 0;\n"
      "st.global.u32 [rd1], r1;\n");
  ASSERT_EQ(run.complaint, "");
  EXPECT_EQ(run.out[31], 5u);
}

// ---- clusterlaunchcontrol.

// Each cluster counts the positions that it works for: its own, then those of clusters that it
// cancels. The following words count the blocks that started.
std::string stealing(const std::string& try_cancel, const std::string& query) {
  return R"(
.reg .b128 answer;
mov.u32 r1, %ctaid.x;
mov.u32 r4, %cluster_ctarank;
sub.u32 r1, r1, r4;
mov.u32 r2, %ctaid.y;
mov.u32 r3, %ctaid.z;
setp.eq.u32 q, r0, 0;
@q mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
@q red.global.add.u32 [rd0+512], 1;
mov.u32 r9, 0;
barrier.cluster.arrive;
barrier.cluster.wait;
next:
mov.u32 r4, %cluster_ctarank;
add.u32 r4, r4, r1;
mad.lo.u32 r4, r2, 6, r4;
mad.lo.u32 r4, r3, 18, r4;
mad.wide.u32 rd2, r4, 4, rd0;
@q red.global.add.u32 [rd2], 1;
@q mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
)" + try_cancel +
         R"(
wait:
mbarrier.try_wait.parity.shared::cta.b64 p, [bar], r9;
@!p bra wait;
ld.shared.b128 answer, [response];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;
)" + query +
         R"(
xor.b32 r9, r9, 1;
barrier.cluster.arrive;
barrier.cluster.wait;
@p bra next;
)";
}

constexpr const char* stealing_declarations =
    ".shared .align 16 .b8 response[16];\n.shared .align 8 .b8 bar[8];\n";

void expect_each_once(const KernelRun& run, std::size_t places) {
  ASSERT_EQ(run.complaint, "");
  ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
  for (std::size_t i = 0; i < places; ++i) EXPECT_EQ(run.out[i], 1u) << i;
  EXPECT_EQ(run.out[places], 0u);
}

TEST(EmulatorRare, ClustersThatHaveNotStartedAreCancelled) {
  const std::string text = stealing(
      "@q clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
      "[response], [bar];",
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {r1, r2, r3, _}, answer;");
  const Launch launch{.grid = {6, 3, 2}, .block = {32}};
  for (const int threads : {1, 4}) {
    const KernelRun run =
        run_blackwell(text, stealing_declarations, launch, 129, {.threads = threads});
    expect_each_once(run, 36);
    if (threads == 1) {
      EXPECT_EQ(run.out[128], 1u);
    }
  }
  // The response is written, whatever shared memory was.
  const KernelRun checked = run_blackwell(text, stealing_declarations, launch, 129,
                                          {.threads = 1, .checks = Checks::all});
  for (const Finding& each : checked.findings) EXPECT_NE(each.id, "uninitialized-read");
}

TEST(EmulatorRare, CancelResponseReachesAllBlocksOfACluster) {
  const std::string text = stealing(
      "mov.u32 r5, %cluster_ctarank;\nsetp.eq.and.u32 p, r5, 0, q;\n"
      "cvta.shared.u64 rd3, response;\ncvta.shared.u64 rd4, bar;\n"
      "@p clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.multicast::cluster::"
      "all.b128 [rd3], [rd4];",
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 r1, answer;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 r2, answer;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 r3, answer;");
  for (const int threads : {1, 3}) {
    const KernelRun run = run_blackwell(text, stealing_declarations,
                                        {.grid = {6, 3, 2}, .block = {32}, .cluster = {2, 1, 1}},
                                        129, {.threads = threads});
    expect_each_once(run, 36);
    if (threads == 1) {
      EXPECT_EQ(run.out[128], 2u);
    }
  }
}

// ---- Unsupported instructions.

TEST(EmulatorRare, NamesUnsupportedInstructions) {
  const std::pair<const char*, const char*> refused[] = {
      {"tex.2d.v4.f32.s32 {r1, r2, r3, r4}, [rd0, {r5, r6}];", "textures"},
      {"tld4.r.2d.v4.f32.f32 {r1, r2, r3, r4}, [rd0, {f5, f6}];", "textures"},
      {"txq.width.b32 r1, [rd0];", "textures"},
      {"suld.b.1d.b32.trap r1, [rd0, {r2}];", "surfaces"},
      {"sust.b.1d.b32.trap [rd0, {r2}], r1;", "surfaces"},
      {"sured.b.add.1d.u32.trap [rd0, {r2}], r1;", "surfaces"},
      {"suq.width.b32 r1, [rd0];", "surfaces"},
      {"multimem.red.global.add.u32 [rd0], r1;", "multimem"},
  };
  for (const auto& [line, word] : refused) {
    const KernelRun run = run_blackwell(line);
    EXPECT_FALSE(run.launched);
    EXPECT_NE(run.complaint.find("not emulated"), std::string::npos) << run.complaint;
    EXPECT_NE(run.complaint.find(word), std::string::npos) << run.complaint;
    EXPECT_NE(run.complaint.find("[unsupported-instruction]"), std::string::npos) << run.complaint;
  }
}

}  // namespace
}  // namespace tartan
