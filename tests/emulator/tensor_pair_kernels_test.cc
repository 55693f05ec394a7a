// SPDX-License-Identifier: Apache-2.0
// Kernels for pairs of CTAs: TMA loads of both complete at an mbarrier of the even one, of every
// kind at sizes that tiles do not divide, and decided for all schedules; and the mistakes that
// people made in such kernels.
#include <gtest/gtest.h>

#include "runtime/emulator/schedules/exploration.h"
#include "tests/emulator/tensor_pair_kernel.h"

namespace tartan::test::tensor {
namespace {

PairKernel kernel_of(const std::string& kind, int m, int n, int stages) {
  PairKernel out;
  Gemm& g = out.whole;
  g.kind = kind;
  g.a = g.b = kind == "i8"               ? "s8"
              : kind == "f16"            ? "bf16"
              : kind == "tf32"           ? "tf32"
              : kind.starts_with("mxf4") ? "e2m1"
                                         : "e4m3";
  g.d = kind == "i8" ? "s32" : "f32";
  g.m = m;
  g.n = n;
  g.steps = 4 * stages;
  g.layout_a = g.layout_b = {128, false};
  if (g.scaled()) {
    g.scales = kind == "mxf8f6f4" ? 1 : kind == "mxf4" ? 2 : 4;
    g.vector = kind == "mxf4nvf4" ? ".block16" : "";
    g.ue4m3 = kind == "mxf4nvf4";
  }
  std::mt19937 random(static_cast<unsigned>(m + n));
  fill(g, random);
  out.rows = m - 19;
  out.columns = n - 5;
  out.depth = 128 * stages - 48;
  cut(out);
  return out;
}

constexpr const char* kinds[] = {"f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"};

TEST(EmulatorTensorPairKernels, EqualTheModel) {
  for (const char* kind : kinds)
    for (const int m : {128, 256}) {
      const PairKernel kernel = kernel_of(kind, m, m == 128 ? 64 : 32, 3);
      EXPECT_EQ(difference(kernel), "") << text(kernel.whole);
    }
}

TEST(EmulatorTensorPairKernels, EqualTheModelUnderSchedules) {
  const PairKernel kernel = kernel_of("f16", 128, 32, 5);
  for (const char* schedule : {"1", "2", "3"})
    EXPECT_EQ(difference(kernel, {.schedule = schedule, .checks = Checks::all}), "");
}

TEST(EmulatorTensorPairKernels, AreDecidedWithoutOtherOrders) {
  for (const char* kind : kinds) {
    const PairKernel kernel = kernel_of(kind, 128, 32, 3);
    const auto exploration = std::make_shared<detail::Exploration>();
    exploration->proves = true;
    EXPECT_EQ(difference(kernel, {.exploration = exploration, .checks = Checks::all}), "") << kind;
    for (const detail::Obstacle& each : exploration->obstacles) ADD_FAILURE() << each.text;
  }
}

// Each CTA expects its own bytes at the mbarrier of the even one.
TEST(EmulatorTensorPairKernels, BothCtasExpectBytes) {
  const PairKernel kernel = kernel_of("f16", 128, 32, 3);
  std::string ptx = text_of(kernel);
  const std::string own = "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [full",
                    remote = "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [r5";
  for (std::size_t at = 0; (at = ptx.find(own, at)) != std::string::npos;) {
    ptx.replace(at, own.size(), remote);
    const std::size_t bytes = ptx.find("], ", at) + 3;
    ptx.replace(bytes, ptx.find(';', at) - bytes, std::to_string(128 * (64 + 16)));
  }
  for (const char* mbarrier : {"[full], ", "[full+8], "})
    ptx.replace(ptx.find(mbarrier) + std::string(mbarrier).size(), 1, "2");
  const auto exploration = std::make_shared<detail::Exploration>();
  exploration->proves = true;
  const KernelRun run = run_pair(kernel, ptx, {.exploration = exploration, .checks = Checks::all});
  ASSERT_EQ(findings_text(run), "");
  EXPECT_EQ(difference(kernel.whole, run.out), "");
  for (const detail::Obstacle& each : exploration->obstacles) ADD_FAILURE() << each.text;
}

// ---- Mistakes.

struct Change {
  std::string from, to;
};

std::string changed(std::string text, const std::vector<Change>& changes) {
  for (const Change& each : changes) {
    const std::size_t at = text.rfind(each.from);
    EXPECT_NE(at, std::string::npos) << each.from;
    if (at != std::string::npos) text.replace(at, each.from.size(), each.to);
  }
  return text;
}

const std::string barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

TEST(EmulatorTensorPairKernels, FindMistakes) {
  const PairKernel kernel = kernel_of("f16", 256, 32, 3);
  const std::string good = text_of(kernel);
  const int bytes = 2 * 128 * (128 + 16);
  const std::string commit =
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 ";
  const auto expect = [&](int stage, int count) {
    return fmt::format("_, [full+{}], {};\n", 8 * stage, count);
  };
  const struct {
    std::vector<Change> changes;
    std::string rule, says;
  } mistakes[] = {
      {{}, "", ""},
      // Allocation before the other CTA has begun.
      {{{"READY:\n" + barrier, "READY:\n"}}, "tensor-memory", "need not have begun"},
      // Relaxed, the barrier still says that it has.
      {{{"READY:\n" + barrier,
         "READY:\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n"}},
       "",
       ""},
      // A wait of scope .cta hears of the tensor core of the other CTA.
      {{{"acquire.cluster.shared::cta.b64 p, [done], 0",
         "acquire.cta.shared::cta.b64 p, [done], 0"}},
       "",
       ""},
      // Deallocation before the other CTA has read its D.
      {{{barrier + "@!alloc", "bar.sync 0;\n@!alloc"}}, "asynchronous-race", "tcgen05.dealloc"},
      // Each CTA's copies complete at its own mbarrier, and the products wait for one of them.
      {{{"and.b32 r5, r5, 0xFEFFFFFF;\n", ""},
        {"@lead mbarrier.arrive.expect_tx.shared::cta.b64 " + expect(0, bytes),
         "mbarrier.arrive.expect_tx.shared::cta.b64 " + expect(0, bytes / 2)},
        {"@lead mbarrier.arrive.expect_tx.shared::cta.b64 " + expect(1, bytes),
         "mbarrier.arrive.expect_tx.shared::cta.b64 " + expect(1, bytes / 2)},
        {"@lead mbarrier.arrive.expect_tx.shared::cta.b64 " + expect(0, bytes),
         "mbarrier.arrive.expect_tx.shared::cta.b64 " + expect(0, bytes / 2)}},
       "asynchronous-race",
       "of CTA rank 1 is written"},
      // Without .cta_group::2 a copy cannot complete at the other CTA's mbarrier.
      {{{"::bytes.cta_group::2", "::bytes"}},
       "memory-fault",
       "completes at an mbarrier of rank 0: expected one of the same CTA"},
      // The bytes of one CTA are expected; more than come.
      {{{expect(1, bytes), expect(1, bytes / 2)}}, "asynchronous-race", ""},
      {{{expect(1, bytes), expect(1, bytes + 16)}}, "deadlock", "16 bytes"},
      // Stages are freed in one of the CTAs.
      {{{"mov.b16 mask, 3;\n", "mov.b16 mask, 1;\n"}}, "deadlock", "mbarrier"},
      {{{"tcgen05.commit.cta_group::2", "tcgen05.commit.cta_group::1"}},
       "cta-group",
       "must use the same group"},
      {{{"tcgen05.dealloc.cta_group::2.sync.aligned.b32 ta, 512",
         "tcgen05.dealloc.cta_group::2.sync.aligned.b32 ta, 256"}},
       "tensor-memory",
       "which has 512"},
      {{{"@!alloc bra ALLOCATED;\n", "@!alloc bra ALLOCATED;\n@!lead bra ALLOCATED;\n"}},
       "deadlock",
       "a warp of the other CTA of its pair to do so"},
      {{{"[slot], 512;\n", "[slot], %n;\n"},
        {"@!alloc bra ALLOCATED;\n", "@!alloc bra ALLOCATED;\nselp.b32 %n, 512, 256, lead;\n"},
        {".reg .b16 mask", ".reg .b32 %n;\n.reg .b16 mask"}},
       "tensor-memory",
       "expected the same of both"},
      // A commit may arrive in the other CTA when that has exited.
      {{{"[done], mask;\nISSUED:\n", "[done], mask;\n" + commit + "[empty], mask;\nISSUED:\n"}},
       "memory-fault",
       "that CTA may have exited"},
      // One of the CTAs keeps its columns.
      {{{"@!alloc bra FREED;\n", "@!lead bra FREED;\n@!alloc bra FREED;\n"}},
       "tensor-memory",
       "still allocated"},
  };
  for (const auto& each : mistakes) {
    const std::string ptx = changed(good, each.changes);
    const std::string text = findings_text(run_pair(kernel, ptx));
    const std::string what = each.changes.empty() ? "the right one" : each.changes[0].to;
    if (each.rule.empty() && each.says.empty()) EXPECT_EQ(text, "") << what;
    else EXPECT_NE(text.find("[" + each.rule), std::string::npos) << what << "\n" << text;
    EXPECT_NE(text.find(each.says), std::string::npos) << what << "\n" << text;
    // In another order, too.
    const std::string later =
        findings_text(run_pair(kernel, ptx, {.schedule = "1", .checks = Checks::all}));
    EXPECT_EQ(later.empty(), text.empty()) << what << "\n" << later;
  }
}

// The swizzle of a box that TMA wrote is that of the descriptor that reads it.
TEST(EmulatorTensorPairKernels, AreCopiedWithTheSwizzleOfTheirDescriptors) {
  const PairKernel kernel = kernel_of("f16", 256, 32, 3);
  const std::string found = findings_text(
      run_pair(kernel, text_of(kernel), {.checks = Checks::all}, TensorMap::Swizzle::none));
  for (const char* const words : {"the descriptor of A has a 128-byte swizzle, the copy of line ",
                                  " with no swizzle; ", "[matrix-descriptor]"})
    EXPECT_NE(found.find(words), std::string::npos) << words << found;
}

// No barrier of the cluster at the end: all threads arrive in both CTAs when they have read D, and
// the warps that deallocate wait for that. What else came to a CTA's mbarriers is over with phases
// that it has waited for.
TEST(EmulatorTensorPairKernels, EndWithoutABarrier) {
  const PairKernel kernel = kernel_of("f16", 128, 32, 3);
  const std::string waits =
      "READ:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [read], 0;\n"
      "@!p bra READ;\n";
  std::string arrives = "mov.u32 r3, read;\n";
  for (const int rank : {0, 1})
    arrives += fmt::format(
        "mapa.shared::cluster.u32 r4, r3, {};\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r4];\n",
        rank);
  const std::string right = changed(
      text_of(kernel),
      {{barrier + "@!alloc bra FREED;\n", arrives + "@!alloc bra FREED;\n" + waits},
       {"mbarrier.init.shared::cta.b64 [done], 1;\n",
        "mbarrier.init.shared::cta.b64 [done], 1;\nmbarrier.init.shared::cta.b64 [read], 256;\n"},
       {".b64 full[2]", ".b64 read, full[2]"}});
  const KernelRun run = run_pair(kernel, right);
  ASSERT_EQ(findings_text(run), "");
  EXPECT_EQ(difference(kernel.whole, run.out), "");
  const std::string text = findings_text(run_pair(kernel, changed(right, {{waits, ""}})));
  EXPECT_NE(text.find("tcgen05.dealloc"), std::string::npos) << text;
}

// Cells that a CTA stores before products of the pair.
TEST(EmulatorTensorPairKernels, FindStoresThatAreUnderWay) {
  std::mt19937 random(1);
  PairGemm pair{.whole = {.m = 256, .n = 16, .accumulates = true}};
  fill(pair.whole, random);
  const Plan made = plan(pair);
  const auto text_of = [&](const std::vector<Change>& changes) {
    return findings_text(run_tensor(changed(made.text, changes), 256 * 16, made.in,
                                    {.checks = Checks::all}, pair_launch));
  };
  const std::string stored = "tcgen05.wait::st.sync.aligned;\n",
                    told = "fence.proxy.async.shared::cta;\n" + barrier;
  EXPECT_EQ(text_of({}), "");
  for (const Change& change : {Change{stored, ""},
                               {told,
                                "fence.proxy.async.shared::cta;\n"
                                "bar.sync 0;\n"}}) {
    const std::string text = text_of({change});
    EXPECT_NE(text.find("[asynchronous-race]"), std::string::npos) << text;
    EXPECT_NE(text.find("tcgen05.st"), std::string::npos) << text;
  }
  std::string text = text_of({{"fence.proxy.async.shared::cta;\n", ""}});
  EXPECT_NE(text.find("[proxy-fence]"), std::string::npos) << text;
  // Nobody has written the D of the odd CTA.
  text = text_of({{told, told + "@q bra STORED;\n"},
                  {"tcgen05.st.sync", "setp.eq.u32 p, r19, 1;\n@p bra STORED;\ntcgen05.st.sync"},
                  {"@q bra STORED;\n", "STORED:\n"},
                  {stored, ""},
                  {"STORED;\ntcgen05.st", "UNSTORED;\ntcgen05.st"},
                  {"tcgen05.fence::before_thread_sync;\nfence.proxy",
                   "UNSTORED:\n" + stored + "tcgen05.fence::before_thread_sync;\nfence.proxy"}});
  EXPECT_NE(text.find("[uninitialized-read]"), std::string::npos) << text;
}

// A second product over a D that both CTAs have read: the odd one says so by arrivals at an
// mbarrier of the even one.
TEST(EmulatorTensorPairKernels, FindArrivalsOfTheWrongScope) {
  std::mt19937 random(1);
  PairGemm pair{.whole = {.m = 256, .n = 16}};
  fill(pair.whole, random);
  Plan made = plan(pair);
  const std::string end = "tcgen05.fence::before_thread_sync;\n" + barrier + "@!alloc bra FREED;\n";
  const std::size_t mma = made.text.find("tcgen05.mma"),
                    commit = made.text.find("and.b32 r3, r18, 14");
  const std::string again = made.text.substr(mma, commit - mma);
  const std::string right = changed(
      made.text,
      {{end,
        "tcgen05.fence::before_thread_sync;\nmov.u32 r3, read;\nmapa.shared::cluster.u32 r3, r3, "
        "0;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r3];\n@!q bra AGAIN;\n"
        "READ:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [read], 0;\n"
        "@!p bra READ;\ntcgen05.fence::after_thread_sync;\n" +
            again +
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster."
            "b64 [done], mask;\nAGAIN:\nbar.warp.sync 0xffffffff;\nWAIT2:\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [done], 1;\n"
            "@!p bra WAIT2;\n" +
            end},
       {"@q mbarrier.init.shared::cta.b64 [done], 1;\n",
        "@q mbarrier.init.shared::cta.b64 [done], 1;\n"
        "@q mbarrier.init.shared::cta.b64 [read], 256;\n"},
       {".shared .align 8 .b64 done;", ".shared .align 8 .b64 done, read;"}});
  const auto text_of = [&](const std::vector<Change>& changes) {
    return findings_text(run_tensor(changed(right, changes), 256 * 16, made.in,
                                    {.checks = Checks::all}, pair_launch));
  };
  EXPECT_EQ(text_of({}), "");
  const std::string wrong = text_of({{"arrive.release.cluster", "arrive.release.cta"}});
  EXPECT_NE(wrong.find("[asynchronous-race]"), std::string::npos) << wrong;
  // Half of the arrivals: the odd CTA need not have read.
  const std::string early = text_of({{"[read], 256", "[read], 128"}});
  EXPECT_NE(early.find("["), std::string::npos) << early;
}

TEST(EmulatorTensorPairKernels, NeedAPair) {
  PairGemm pair{.whole = {.m = 256, .n = 16}};
  std::mt19937 random(1);
  fill(pair.whole, random);
  const Plan made = plan(pair);
  const std::string text = findings_text(run_tensor(
      made.text, 256 * 16, made.in, {.checks = Checks::all}, {.grid = {1}, .block = {128}}));
  EXPECT_NE(text.find("[tensor-memory]"), std::string::npos) << text;
  EXPECT_NE(text.find("expected one with an even number of CTAs"), std::string::npos) << text;
}

}  // namespace
}  // namespace tartan::test::tensor
