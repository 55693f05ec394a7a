// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma of one CTA against a model written apart: each kind in each layout at awkward sizes,
// and random cases; its descriptors' and its order's mistakes. TARTAN_TENSOR_CASES asks for so many
// random cases of each kind.
#include <gtest/gtest.h>

#include "runtime/emulator/schedules/exploration.h"
#include "tests/emulator/tensor_gemm.h"

namespace tartan::test::tensor {
namespace {

struct Kind {
  std::string kind;
  std::vector<std::string> types;
  std::vector<std::string> results;
  bool mixed = false;  // of A and B, apart
  std::string target = "sm_100a";
};
const Kind kinds[] = {
    {"f16", {"f16", "bf16"}, {"f32", "f16"}},
    {"tf32", {"tf32"}, {"f32"}},
    {"f8f6f4", {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}, {"f32", "f16"}, true},
    {"i8", {"u8", "s8"}, {"s32"}, true},
    {"mxf8f6f4", {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}, {"f32"}, true},
    {"mxf4", {"e2m1"}, {"f32"}},
    {"mxf4nvf4", {"e2m1"}, {"f32"}},
};

// The scales of a block-scaled kind.
void choose_scales(Gemm& g, std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<const char*> list) {
    return std::string(list.begin()[random() % list.size()]);
  };
  g.m = 128;
  g.half = 0;
  if (g.kind == "mxf8f6f4") {
    g.vector = one_of({"", ".block32", ".scale_vec::1X"});
    g.scales = 1;
    g.scale_id = static_cast<int>(random() % 4);
    return;
  }
  g.layout_a.mn_major = g.layout_b.mn_major = false;
  const bool sixteens = g.kind == "mxf4nvf4" && random() % 2;
  g.scales = sixteens ? 4 : 2;
  g.scale_id = sixteens ? 0 : static_cast<int>(random() % 2) * 2;
  g.ue4m3 = sixteens && random() % 2;
  g.vector = sixteens           ? one_of({".block16", ".scale_vec::4X"})
             : g.kind == "mxf4" ? one_of({"", ".block32", ".scale_vec::2X"})
                                : one_of({".block32", ".scale_vec::2X"});
}

Layout random_layout(std::mt19937& random, int container, bool transposes) {
  constexpr int widths[] = {0, 32, 64, 128};
  const bool mn_major = transposes && random() % 2;
  if (mn_major && container == 32) return {128, true};
  return {widths[random() % 4], mn_major};
}

Gemm random_gemm(const Kind& kind, std::mt19937& random) {
  Gemm g;
  const auto one_of = [&](const auto& list) { return list[random() % list.size()]; };
  g.kind = kind.kind;
  g.target = kind.target;
  g.a = one_of(kind.types);
  g.b = kind.mixed ? one_of(kind.types) : g.a;
  g.d = g.a == "bf16" ? "f32" : one_of(kind.results);
  g.m = random() % 2 ? 128 : 64;
  g.half = g.m == 64 && random() % 2 ? 16 : 0;
  g.steps = 1 + static_cast<int>(random() % 3);
  g.layout_a = random_layout(random, g.container(g.a), true);
  g.layout_b = random_layout(random, g.container(g.b), true);
  g.n = 8 * (1 + static_cast<int>(random() % 5));
  const bool even = g.kind == "i8" || (g.layout_b.mn_major && g.container(g.b) == 8);
  if (even && g.n % 16) g.n += 8;
  g.a_in_tensor = random() % 4 == 0;
  if (g.a_in_tensor) g.layout_a.mn_major = false;
  g.accumulates = random() % 2;
  g.saturates = g.kind == "i8" && random() % 2;
  if (g.kind != "i8") {
    g.negates_a = random() % 4 == 0;
    g.negates_b = random() % 4 == 0;
  }
  if (g.scaled()) choose_scales(g, random);
  if (random() % 4 == 0) {
    g.sparse = true;
    if (g.layout_b.width == 32) g.layout_b.width = 64;  // 64 bytes of B along k
  }
  if (!g.scaled() && g.accumulates && random() % 4 == 0)
    for (int i = 0; i < 4; ++i) g.disabled.push_back(static_cast<std::uint32_t>(random()));
  if ((g.kind == "f16" || g.kind == "tf32") && random() % 4 == 0)
    g.scale_d = static_cast<int>(random() % 16);
  fill(g, random);
  return g;
}

TEST(EmulatorTensorProducts, EqualTheModelInRandomCases) {
  for (const Kind& kind : kinds) {
    std::mt19937 random(7);
    for (int i = 0; i < cases(7); ++i) {
      const Gemm g = random_gemm(kind, random);
      ASSERT_EQ(difference(g), "") << "case " << i << ": " << text(g);
    }
  }
}

TEST(EmulatorTensorProducts, EqualTheModelAtAwkwardSizes) {
  for (const Kind& kind : kinds)
    for (const int m : {64, 128})
      for (const int n : {8, 24, 80, 256}) {
        const bool scaled = kind.kind.starts_with("mx");
        if ((kind.kind == "i8" && n == 24) || (n == 256 && (scaled || m == 64)) ||
            (scaled && m == 64))
          continue;
        std::mt19937 random(static_cast<unsigned>(m + n));
        Gemm g{.kind = kind.kind, .a = kind.types[0], .b = kind.types[0], .d = kind.results[0]};
        g.m = m;
        g.n = n;
        g.steps = n == 256 ? 1 : 3;
        g.layout_a = g.layout_b = {n == 80 ? 0 : 128, false};
        if (scaled) choose_scales(g, random);
        fill(g, random);
        ASSERT_EQ(difference(g), "") << text(g);
      }
}

// Under other orders, where commits arrive late.
TEST(EmulatorTensorProducts, EqualTheModelUnderSchedules) {
  std::mt19937 random(3);
  for (const Kind& kind : kinds) {
    const Gemm g = random_gemm(kind, random);
    for (const char* schedule : {"1", "2"})
      ASSERT_EQ(difference(g, {.schedule = schedule, .checks = Checks::all}), "") << text(g);
  }
}

// Nothing but the order of its own waits decides what it does.
TEST(EmulatorTensorProducts, AreDecidedWithoutOtherOrders) {
  std::mt19937 random(3);
  Gemm g{.n = 16, .steps = 2};
  fill(g, random);
  const auto exploration = std::make_shared<detail::Exploration>();
  exploration->proves = true;
  EXPECT_EQ(difference(g, {.exploration = exploration, .checks = Checks::all}), "");
  for (const detail::Obstacle& each : exploration->obstacles) ADD_FAILURE() << each.text;
}

// A commit of the first CTA arrives in both.
TEST(EmulatorTensorProducts, CommitToAllCtasOfAMask) {
  const std::string body = R"(setp.eq.u32 q, r0, 0;
@q mbarrier.init.shared::cta.b64 [done], 1;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 r4, %cluster_ctarank;
or.b32 r5, r4, r0;
setp.eq.u32 q, r5, 0;
mov.b16 mask, 3;
@q tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], mask;
)" + wait("done", "WAIT") + R"(mul.wide.u32 rd1, r4, 4;
add.s64 rd1, rd0, rd1;
setp.eq.u32 q, r0, 0;
@q st.global.b32 [rd1], 7;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)";
  std::string ptx = tensor_text(body, 0);
  ptx.insert(ptx.find(".reg .pred"), ".reg .b16 mask;\n");
  for (const char* schedule : {"", "1"}) {
    const KernelRun run = run_tensor(ptx, 2, {1}, {.schedule = schedule, .checks = Checks::all},
                                     {.grid = {2}, .block = {128}, .cluster = {2, 1, 1}});
    EXPECT_EQ(findings_text(run), "");
    EXPECT_EQ(run.out, (Words{7, 7}));
  }
}

// ---- Mistakes.

struct Mistake {
  std::string from, to;  // in the kernel's text
  std::string rule, says;
};

TEST(EmulatorTensorProducts, FindsMistakes) {
  std::mt19937 random(1);
  Gemm g{.n = 16, .steps = 1};
  g.layout_a = g.layout_b = {128, false};
  fill(g, random);
  const Plan made = plan(g);
  const std::uint32_t idesc = instruction_descriptor(g);
  const auto with = [&](std::uint32_t bits) { return fmt::format("mov.b32 r8, 0x{:x};", bits); };
  const std::string mma = "tcgen05.mma.cta_group::1.kind::f16 [r9], da, db, r8, p;\n",
                    commit =
                        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
                        "[done];\n",
                    stores = "st.shared.b32 [r6], r7;\n";
  const Mistake mistakes[] = {
      {with(idesc), with(idesc | 4), "instruction-descriptor", "sparse bit (bit 2) is 1"},
      {with(idesc), with(idesc | 8), "instruction-descriptor", "saturate bit (bit 3)"},
      {with(idesc), with(idesc | 32), "instruction-descriptor", "type of D (bits 4 to 5) is 3"},
      {with(idesc), with(idesc | 2 << 7), "instruction-descriptor", "type of A (bits 7 to 9) is 2"},
      {with(idesc), with(idesc | 1 << 10), "instruction-descriptor", "expected the type of A"},
      {with(idesc), with(idesc & ~(0x3Fu << 17)), "instruction-descriptor",
       "N / 8 (bits 17 to 22) is 0"},
      {with(idesc), with(idesc | 1 << 24), "instruction-descriptor", "M / 16 (bits 24 to 28) is 9"},
      {with(idesc), with(idesc | 1u << 30), "instruction-descriptor", "reserved field (bits 29"},
      {"add.u32 r9, ta, 0", "add.u32 r9, ta, 0x100000", "tensor-memory", "begins in lane 16"},
      {"add.u32 r9, ta, 0", "add.u32 r9, ta, 500", "tensor-memory", "D at address 0x1f4"},
      {"add.s64 da, rd4, 0x40004", "add.s64 da, rd4, 0x40000", "matrix-descriptor",
       "bits 46 to 48 are 0"},
      {"add.s64 da, rd4, 0x4000", "add.s64 da, rd4, 0x6000", "matrix-descriptor",
       "swizzle mode (bits 61 to 63) is 3"},
      {"add.s64 db, rd4, ", "add.s64 rd4, rd4, 0x3000;\nadd.s64 db, rd4, ", "memory-fault",
       "the descriptor of B leads to"},
      {"fence.proxy.async.shared::cta;\n", "", "proxy-fence", "insert fence.proxy.async"},
      {mma, "setp.eq.u32 p, 0, 0;\n" + mma, "uninitialized-read", "was never written"},
      {"tcgen05.fence::after_thread_sync;\nand.b32", "and.b32", "tensor-fence",
       "the manual asks for tcgen05.fence::after_thread_sync in front of the second"},
      {commit, "mbarrier.arrive.shared::cta.b64 _, [done];\n" + commit, "deadlock", "end of phase"},
      {commit, "mbarrier.arrive.shared::cta.b64 _, [done];\n", "asynchronous-race",
       "expected tcgen05.commit in the thread that issued it"},
      {commit, commit + "st.shared.b32 [image], r8;\n", "asynchronous-race",
       "the tensor core may still be at work"},
      {commit, "tcgen05.mma.cta_group::1.kind::f16 [r9], [r9], db, r8, p;\n" + commit,
       "asynchronous-race", "is written by tcgen05.mma"},
  };
  for (const Mistake& each : mistakes) {
    std::string ptx = made.text;
    const std::size_t at = ptx.find(each.from);
    ASSERT_NE(at, std::string::npos) << each.from;
    ptx.replace(at, each.from.size(), each.to);
    const KernelRun run = run_tensor(ptx, static_cast<std::size_t>(128 * g.n), made.in);
    const std::string text = findings_text(run);
    EXPECT_NE(text.find("[" + each.rule + "]"), std::string::npos) << each.to << "\n" << text;
    EXPECT_NE(text.find(each.says), std::string::npos) << each.to << "\n" << text;
  }
}

}  // namespace
}  // namespace tartan::test::tensor
