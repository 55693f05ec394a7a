// SPDX-License-Identifier: Apache-2.0
// What a report of a race says, and how many there are.
#include "tests/emulator/race_kernels.h"

namespace tartan::test {
namespace {

using namespace races;

TEST(RaceReports, BothAccessesAreNamed) {
  const std::string file = ".file 1 \"sum.cu\"\n" + shared;
  const std::string body = words(32, 64) + ".loc 1 17 0\n" + mine + ".loc 1 18 0\n" + theirs + keep;
  const KernelRun run = watched(body, two_warps, file);
  ASSERT_EQ(run.findings.size(), 1u);
  const Finding& finding = run.findings[0];
  // Warp 0 runs first.
  EXPECT_EQ(
      finding.message,
      fmt::format("race: tile+128 (shared memory at 0x80) is read by ld.shared.u32 on line {} "
                  "(sum.cu:18) by thread 0 (warp 0, lane 0) and written by st.shared.u32 on "
                  "line {} (sum.cu:17) by thread 32 (warp 1, lane 0); nothing orders the two: "
                  "insert bar.sync (__syncthreads()) in between (63 more such pairs of accesses)",
                  line_of(body, "ld.shared", file), line_of(body, "st.shared", file)));
  EXPECT_EQ(finding.line, line_of(body, "st.shared", file));
  EXPECT_EQ(finding.source, "sum.cu:17");
  EXPECT_EQ(finding.lane, 32);
  EXPECT_EQ(finding.address, 128u);
}

// Lanes of a warp meet first, and the last of them meets the next warp.
TEST(RaceReports, TheAdviceOrdersAllPairs) {
  const auto neighbours = [](int threads) { return words(1, threads) + mine + theirs + keep; };
  const std::string two = message(neighbours(64), two_warps);
  EXPECT_NE(two.find("by thread 1 (warp 0, lane 1) and read by"), std::string::npos) << two;
  EXPECT_NE(two.find("nothing orders the two: insert bar.sync in between"), std::string::npos)
      << two;
  const std::string one = message(neighbours(32), one_warp);
  EXPECT_NE(one.find("insert bar.warp.sync in between"), std::string::npos) << one;
}

TEST(RaceReports, VariablesInDynamicSharedMemoryAreNamed) {
  Launch launch = two_warps;
  launch.dynamic_shared = 4096;
  const std::string body = words(32, 64) + mine + theirs + keep;
  const std::string memory = ".extern .shared .align 128 .b8 tile[];\n";
  const auto text = [&](const std::string& comment) {
    const KernelRun run = watched(body, launch, comment + memory);
    return run.findings.empty() ? "" : run.findings[0].message;
  };
  const auto names = [](const std::string& message, std::string_view name) {
    return message.find(fmt::format("race: {} (shared memory at 0x80)", name)) != std::string::npos;
  };
  EXPECT_TRUE(names(text(""), "tile+128")) << text("");
  EXPECT_TRUE(names(text("// tile: sA at 0, sB at 128, sC at 1024\n"), "sB"));
  EXPECT_TRUE(names(text("// tile: sB at 64, sA at 0\n"), "sB+64"));
  EXPECT_TRUE(names(text("// tile: nonsense\n"), "tile+128"));
}

TEST(RaceReports, CodeOfNoLineIsOnTheLineBefore) {
  const std::string file = ".file 1 \"sum.cu\"\n" + shared;
  const KernelRun run = watched(
      words(32, 64) + ".loc 1 17 0\nadd.u32 r4, r4, 0;\n.loc 1 0 0\n" + mine + theirs + keep,
      two_warps, file);
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].source, "sum.cu:17");
}

// The last line is that of the kernel, through calls of calls; the first is the code's own.
TEST(RaceReports, InlinedCodeNamesTheCallInTheKernel) {
  const std::string files = ".file 1 \"sum.cu\"\n.file 2 \"head.cuh\"\n" + shared;
  const std::string begin = words(32, 64) + ".loc 1 17 0\n" + mine + ".loc 1 18 0\n",
                    outer = ".loc 2 5 3, function_name $L0, inlined_at 1 18 0\n",
                    inner = ".loc 2 9 1, function_name $L1, inlined_at 2 5 3\n";
  const KernelRun once = watched(begin + outer + theirs + keep, two_warps, files);
  ASSERT_EQ(once.findings.size(), 1u);
  EXPECT_NE(once.findings[0].message.find("(head.cuh:5, called on sum.cu:18)"), std::string::npos)
      << once.findings[0].message;
  const KernelRun twice = watched(begin + outer + inner + theirs + keep, two_warps, files);
  ASSERT_EQ(twice.findings.size(), 1u);
  EXPECT_NE(twice.findings[0].message.find("(head.cuh:9, called on sum.cu:18)"), std::string::npos)
      << twice.findings[0].message;
}

// A barrier stands between the two lines, so "in between" would not help.
TEST(RaceReports, AccessesOfTwoPassesAreToldApart) {
  const auto loop = [](const std::string& middle, const std::string& end) {
    return words(32, 64) + "mov.u32 r7, 0;\nAGAIN:\n" + mine + middle + theirs + keep + end +
           "add.u32 r7, r7, 1;\nsetp.lt.u32 q, r7, 3;\n@q bra AGAIN;\n";
  };
  const std::string barrier = "bar.sync 0;\n";
  const std::string of_passes = message(loop(barrier, ""), two_warps);
  EXPECT_NE(of_passes.find("a barrier stands between the two lines, but no barrier between one "
                           "pass of their loop and the next: insert bar.sync at the end of its "
                           "body"),
            std::string::npos)
      << of_passes;
  EXPECT_EQ(message(loop(barrier, barrier), two_warps), "");
  const std::string of_one = message(loop("", ""), two_warps);
  EXPECT_NE(of_one.find("insert bar.sync in between"), std::string::npos) << of_one;
}

TEST(RaceReports, GlobalMemoryIsNamedByTheParameter) {
  const std::string text = message(
      "mov.u32 r2, %ctaid.x;\nsetp.eq.u32 q, r0, 3;\n@q st.global.u32 [rd1], r2;\n", two_blocks);
  EXPECT_NE(text.find("global memory at out+12 (0x"), std::string::npos) << text;
  EXPECT_NE(text.find("by thread 3 (warp 0, lane 3, CTA 0,0,0) and written by"), std::string::npos)
      << text;
  EXPECT_NE(text.find("CTA 1,0,0); one of the addresses may be wrong; if both are right, nothing "
                      "orders CTAs of a grid"),
            std::string::npos)
      << text;
}

TEST(RaceReports, OneRunShowsAll) {
  const KernelRun run =
      watched(words(32, 64) + mine + theirs + keep + "bar.sync 0;\n" + theirs + mine + keep +
                  "red.shared.add.u32 [flag], 1;\n"
                  "ld.shared.u32 r7, [flag];\nst.global.u32 [rd1], r7;\n",
              two_warps);
  EXPECT_EQ(run.findings.size(), 3u);
  EXPECT_EQ(run.out[5], 64u);  // and it runs to its end
}

TEST(RaceReports, ShufflesReadLanesThatTakePart) {
  const Launch half{.grid = {1}, .block = {16}};
  const auto shuffle = [](int distance, int clamp, const std::string& mask = "-1") {
    return fmt::format("shfl.sync.down.b32 r6, r0, {}, {}, {};\n", distance, clamp, mask) + keep;
  };
  EXPECT_EQ(found(shuffle(16, 31), one_warp), "");
  EXPECT_EQ(found(shuffle(8, 15), half), "");  // who would read beyond lane 15 reads itself
  EXPECT_EQ(found(shuffle(8, 31), half), "divergent-collective");
  EXPECT_NE(message(shuffle(8, 31), half).find("lane 8 reads lane 16"), std::string::npos);
  EXPECT_EQ(found(shuffle(8, 31, "0xffff"), half), "divergent-collective");  // what it read is kept
}

TEST(RaceReports, NothingIsLookedForUnlessAsked) {
  const KernelRun run = run_body(words(32, 64) + mine + theirs + keep, two_warps, 1024, {}, shared);
  EXPECT_TRUE(run.findings.empty());
}

}  // namespace
}  // namespace tartan::test
