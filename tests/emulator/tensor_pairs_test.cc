// SPDX-License-Identifier: Apache-2.0
// Products of pairs of CTAs (tcgen05 with .cta_group::2) against a model written apart: each kind
// with M 128 and 256, dense, sparse and scaled, in random layouts and at awkward sizes.
// TARTAN_TENSOR_CASES asks for so many random cases of each kind.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/emulator/schedules/exploration.h"
#include "tests/emulator/tensor_pair_gemm.h"

namespace tartan::test::tensor {
namespace {

struct Kind {
  std::string kind;
  std::vector<std::string> types, results;
  bool mixed = false;  // of A and B, apart
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

void choose_scales(Gemm& g, std::mt19937& random) {
  g.half = 0;
  if (g.kind == "mxf8f6f4") {
    g.vector = random() % 2 ? "" : ".block32";
    g.scales = 1;
    g.scale_id = static_cast<int>(random() % 4);
    return;
  }
  g.layout_a.mn_major = g.layout_b.mn_major = false;
  const bool sixteens = g.kind == "mxf4nvf4" && random() % 2;
  g.scales = sixteens ? 4 : 2;
  g.scale_id = sixteens ? 0 : static_cast<int>(random() % 2) * 2;
  g.ue4m3 = sixteens && random() % 2;
  g.vector = sixteens ? ".block16" : ".block32";
}

Layout random_layout(std::mt19937& random, int container) {
  constexpr int widths[] = {0, 32, 64, 128};
  const bool mn_major = random() % 2;
  if (mn_major && container == 32) return {128, true};
  return {widths[random() % 4], mn_major};
}

PairGemm random_pair(const Kind& kind, int m, std::mt19937& random) {
  const auto one_of = [&](const auto& list) { return list[random() % list.size()]; };
  PairGemm pair{.whole = {}, .issuer = static_cast<int>(random() % 2)};
  Gemm& g = pair.whole;
  g.kind = kind.kind;
  g.a = one_of(kind.types);
  g.b = kind.mixed ? one_of(kind.types) : g.a;
  g.d = g.a == "bf16" ? "f32" : one_of(kind.results);
  g.m = m;
  g.steps = 1 + static_cast<int>(random() % 2);
  g.layout_a = random_layout(random, g.container(g.a));
  g.layout_b = random_layout(random, g.container(g.b));
  g.n = 16 * (1 + static_cast<int>(random() % 5));
  const bool even = g.kind == "i8" || (g.layout_b.mn_major && g.container(g.b) == 8);
  if (even && g.n % 32) g.n += 16;
  g.a_in_tensor = random() % 4 == 0;
  if (g.a_in_tensor) g.layout_a.mn_major = false;
  g.accumulates = random() % 2;
  g.saturates = g.kind == "i8" && random() % 2;
  if (g.kind != "i8") {
    g.negates_a = random() % 4 == 0;
    g.negates_b = random() % 4 == 0;
  }
  g.sparse = random() % 3 == 0 && (m == 256 || !g.scaled());
  if (g.sparse && g.layout_b.width == 32) g.layout_b.width = 64;  // 64 bytes of B along k
  if (rows_of(g) == Rows::scattered) g.half = random() % 2 ? 16 : 0;
  if (g.scaled()) choose_scales(g, random);
  if (!g.scaled() && g.accumulates && random() % 3 == 0)
    for (int i = 0; i < 8; ++i) g.disabled.push_back(static_cast<std::uint32_t>(random()));
  if ((g.kind == "f16" || g.kind == "tf32") && random() % 4 == 0)
    g.scale_d = static_cast<int>(random() % 16);
  fill(g, random);
  return pair;
}

TEST(EmulatorTensorPairs, EqualTheModelInRandomCases) {
  for (const Kind& kind : kinds)
    for (const int m : {128, 256}) {
      std::mt19937 random(static_cast<unsigned>(m));
      for (int i = 0; i < cases(2); ++i) {
        const PairGemm pair = random_pair(kind, m, random);
        ASSERT_EQ(difference(pair), "")
            << "case " << i << ", issued by " << pair.issuer << ": " << text(pair.whole);
      }
    }
}

TEST(EmulatorTensorPairs, EqualTheModelAtAwkwardSizes) {
  for (const Kind& kind : kinds)
    for (const int m : {128, 256})
      for (const int n : {16, 48, 256})
        for (const bool sparse : {false, true}) {
          const bool scaled = kind.kind.starts_with("mx");
          if ((kind.kind == "i8" && n % 32) || (scaled && sparse && m == 128)) continue;
          if (n == 256 && (sparse || (scaled && m == 256))) continue;
          std::mt19937 random(static_cast<unsigned>(m + n));
          PairGemm pair;
          Gemm& g = pair.whole;
          g = {.kind = kind.kind, .a = kind.types[0], .b = kind.types[0], .d = kind.results[0]};
          g.m = m;
          g.n = n;
          g.sparse = sparse;
          g.layout_a = g.layout_b = {n == 48 ? 0 : 128, false};
          if (scaled) choose_scales(g, random);
          fill(g, random);
          ASSERT_EQ(difference(pair), "") << text(g);
        }
}

// Commits arrive late, and the CTAs come in other orders.
TEST(EmulatorTensorPairs, EqualTheModelUnderSchedules) {
  std::mt19937 random(3);
  for (const Kind& kind : kinds) {
    const PairGemm pair = random_pair(kind, random() % 2 ? 128 : 256, random);
    for (const char* schedule : {"1", "2"})
      ASSERT_EQ(difference(pair, {.schedule = schedule, .checks = Checks::all}), "")
          << text(pair.whole);
  }
}

// Nobody looks at races or at undefined bits.
TEST(EmulatorTensorPairs, EqualTheModelUnchecked) {
  std::mt19937 random(5);
  for (const Kind& kind : kinds) {
    const PairGemm pair = random_pair(kind, random() % 2 ? 128 : 256, random);
    ASSERT_EQ(difference(pair, {}), "") << text(pair.whole);
  }
}

TEST(EmulatorTensorPairs, AreDecidedWithoutOtherOrders) {
  std::mt19937 random(3);
  for (const int issuer : {0, 1}) {
    PairGemm pair{.whole = {.m = 256, .n = 32, .steps = 2}, .issuer = issuer};
    fill(pair.whole, random);
    const auto exploration = std::make_shared<detail::Exploration>();
    exploration->proves = true;
    EXPECT_EQ(difference(pair, {.exploration = exploration, .checks = Checks::all}), "");
    for (const detail::Obstacle& each : exploration->obstacles) ADD_FAILURE() << each.text;
  }
}

// Two pairs in a cluster; and commits by two instructions in place of one for both CTAs.
TEST(EmulatorTensorPairs, EqualTheModelInLargerClusters) {
  std::mt19937 random(3);
  PairGemm pair{.whole = {.m = 128, .n = 32}, .issuer = 1};
  const Gemm& g = pair.whole;
  fill(pair.whole, random);
  Plan made = plan(pair);
  const auto words = static_cast<std::size_t>(256 * d_columns(g));
  KernelRun run = run_tensor(made.text, 2 * words, made.in, {.checks = Checks::all},
                             {.grid = {4}, .block = {128}, .cluster = {4, 1, 1}});
  ASSERT_EQ(findings_text(run), "");
  EXPECT_EQ(run.report.trust.level, "assumed");  // nobody has measured the sums of pairs
  const auto middle = run.out.begin() + static_cast<std::ptrdiff_t>(words);
  EXPECT_EQ(difference(g, Words(run.out.begin(), middle)), "");
  EXPECT_EQ(difference(g, Words(middle, run.out.end())), "");
  const std::string both =
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[done], mask;\n";
  made.text.replace(
      made.text.find(both), both.size(),
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [done];\n"
      "mov.u32 r3, done;\nmapa.shared::cluster.u32 r3, r3, 0;\n"
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [r3];\n");
  run = run_tensor(made.text, words, made.in, {.checks = Checks::all}, pair_launch);
  ASSERT_EQ(findings_text(run), "");
  EXPECT_EQ(difference(g, run.out), "");
}

// ---- Copies and allocation.

// Each CTA copies rows of its own shared memory to its own lanes.
TEST(EmulatorTensorPairs, CopyInBothCtas) {
  const std::string start = pair_start(4096) + fill_image(1024) +
                            "tcgen05.st.sync.aligned.32x32b.x8.b32 [own+4], " + numbered("w", 8) +
                            ";\n" + pair_issues(1);
  std::string end = pair_waits(8) + "tcgen05.ld.sync.aligned.32x32b.x8.b32 " + numbered("w", 8) +
                    ", [own+4];\ntcgen05.wait::ld.sync.aligned;\n";
  for (int i = 0; i < 8; ++i) end += fmt::format("st.global.b32 [rd1+{}], w{};\n", 4 * i, i);
  Words in(2048);
  for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = 1000 + i;
  std::string zeros;
  for (int i = 0; i < 8; ++i) zeros += fmt::format("mov.b32 w{}, 0;\n", i);
  const auto run = [&](const std::string& between) {
    return run_tensor(pair_text(zeros + start +
                                    "add.s64 da, rd4, 0x401000080000;\n"  // rows of 32 bytes
                                    "tcgen05.cp.cta_group::2.128x256b [ta+4], da;\n" +
                                    between + end + pair_ends(),
                                4096),
                      256 * 8, in, {.checks = Checks::all}, pair_launch);
  };
  const KernelRun good = run("");
  ASSERT_EQ(findings_text(good), "");
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t lane = 0; lane < 128; ++lane)
      for (std::size_t i = 0; i < 8; ++i)
        ASSERT_EQ(good.out[(rank * 128 + lane) * 8 + i],
                  in[rank * 1024 + lane / 8 * 64 + i / 4 * 32 + lane % 8 * 4 + i % 4])
            << rank << " " << lane << " " << i;
  // The source of the even CTA is overwritten before it is over.
  const std::string text = findings_text(
      run("mov.u32 r5, image;\nand.b32 r5, r5, 0xFEFFFFFF;\nst.shared::cluster.b32 [r5], r5;\n"));
  EXPECT_NE(text.find("[asynchronous-race]"), std::string::npos) << text;
  EXPECT_NE(text.find("of CTA rank 0 is read by tcgen05.cp"), std::string::npos) << text;
}

// Two warps of each CTA: what the second one asks for is free when the first has given it back.
TEST(EmulatorTensorPairs, WaitForColumnsOfBothCtas) {
  const auto body = [](const std::string& counts) {
    return "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" + counts +
           "setp.gt.u32 p, r1, 1;\n@p bra END;\nsetp.eq.u32 p, r1, 1;\n@p bra SECOND;\n"
           "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slots], 512;\n"
           "bar.sync 1, 64;\nld.shared.b32 ta, [slots];\n"
           "tcgen05.dealloc.cta_group::2.sync.aligned.b32 ta, 512;\nbra END;\nSECOND:\n"
           "bar.sync 1, 64;\n"
           "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slots+4], r5;\n"
           "bar.warp.sync 0xffffffff;\nld.shared.b32 ta, [slots+4];\n"
           "tcgen05.dealloc.cta_group::2.sync.aligned.b32 ta, r5;\nEND:\n";
  };
  const std::string slots = ".shared .align 4 .b32 slots[2];\n";
  for (const char* schedule : {"", "1", "2", "3"}) {
    const KernelRun run = run_tensor(tensor_text(body("mov.u32 r5, 64;\n"), 0, slots), 1, {1},
                                     {.schedule = schedule, .checks = Checks::all}, pair_launch);
    EXPECT_EQ(findings_text(run), "") << schedule;
  }
  const std::string text = findings_text(
      run_tensor(tensor_text(body("mov.u32 r4, %cluster_ctarank;\nmul.lo.u32 r5, r4, 32;\nadd.u32 "
                                  "r5, r5, 32;\n"),
                             0, slots),
                 1, {1}, {.checks = Checks::all}, pair_launch));
  EXPECT_NE(text.find("expected the same of both"), std::string::npos) << text;
}

// A field that CTA pairs do not allow.
TEST(EmulatorTensorPairs, FindIllegalShapes) {
  const struct {
    std::string kind;
    std::uint32_t set, cleared;
    std::string says;
  } shapes[] = {{"f16", 4 << 24, 0x1F << 24, "8 or 16 (M 128 or 256) with .cta_group::2"},
                {"f16", 3 << 17, 0x3F << 17, "an even number to 32 (N 16 to 256)"},
                {"i8", 6 << 17, 0x3F << 17, "a multiple of 4 (N 32 to 256)"},
                {"f8f6f4", 1 << 16 | 6 << 17, 0x3F << 17, "an MN-major B of 8 bits or less"}};
  for (const auto& each : shapes) {
    std::mt19937 random(1);
    PairGemm pair;
    Gemm& g = pair.whole;
    g = {.kind = each.kind, .m = 256, .n = 32};
    if (each.kind == "i8") g.a = g.b = "s8", g.d = "s32";
    if (each.kind == "f8f6f4") g.a = g.b = "e4m3";
    fill(g, random);
    Plan made = plan(pair);
    const std::uint32_t idesc = instruction_descriptor(g);
    const std::string from = fmt::format("mov.b32 r8, 0x{:x};", idesc);
    made.text.replace(made.text.find(from), from.size(),
                      fmt::format("mov.b32 r8, 0x{:x};", (idesc & ~each.cleared) | each.set));
    const std::string text = findings_text(
        run_tensor(made.text, 256 * 32, made.in, {.checks = Checks::all}, pair_launch));
    EXPECT_NE(text.find("[instruction-descriptor]"), std::string::npos) << text;
    EXPECT_NE(text.find(each.says), std::string::npos) << text;
  }
}

// Of 64 rows in each CTA, an A in tensor memory and the scales have copies.
TEST(EmulatorTensorPairs, FindMissingCopies) {
  std::mt19937 random(1);
  PairGemm pair;
  Gemm& g = pair.whole;
  g = {.kind = "mxf8f6f4", .a = "e4m3", .b = "e4m3", .m = 128, .n = 64, .a_in_tensor = true};
  g.scales = 1;
  fill(g, random);
  const Plan made = plan(pair);
  const auto text_of = [&](int column) {
    std::string ptx = made.text;
    const std::string store = fmt::format("[own+{}], ", column);
    const std::size_t at = ptx.find(store);
    EXPECT_NE(at, std::string::npos) << ptx;
    // The upper lanes get something else.
    ptx.insert(ptx.rfind("tcgen05.st", at), "setp.gt.u32 p, r0, 63;\n@p xor.b32 v0, v0, 0x0101;\n");
    return findings_text(run_tensor(ptx, 256 * 32, made.in, {.checks = Checks::all}, pair_launch));
  };
  std::string text = text_of(256);
  EXPECT_NE(text.find("expected a copy in each 64 lanes"), std::string::npos) << text;
  text = text_of(384);
  EXPECT_NE(text.find("a copy in each 32 lanes"), std::string::npos) << text;
  EXPECT_EQ(text_of(400), "");  // other columns' scales
}

}  // namespace
}  // namespace tartan::test::tensor
