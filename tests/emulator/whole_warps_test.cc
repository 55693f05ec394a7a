// SPDX-License-Identifier: Apache-2.0
// Matrix instructions of warps in which lanes are missing: undefined, so a finding.
#include <gtest/gtest.h>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const Launch one_warp{.grid = {1}, .block = {32}}, two_warps{.grid = {1}, .block = {64}},
    half_a_warp{.grid = {1}, .block = {16}};

// The ids of the findings.
std::string found(const std::string& body, const Launch& launch) {
  const KernelRun run = run_body(body, launch, 1024, {.checks = Checks::memory},
                                 ".shared .align 128 .b8 tile[1024];\n");
  EXPECT_EQ(run.complaint.find("error"), std::string::npos) << run.complaint;
  std::string out;
  for (const Finding& each : run.findings) out += (out.empty() ? "" : ", ") + each.id;
  return out;
}

const std::string registers = "mov.u32 r3, 0;\nmov.u32 r4, 0;\nmov.u32 r5, 0;\nmov.u32 r6, 0;\n";
const std::string multiply =
    "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {r3, r4}, {r5, r6}, {r5}, {r3, r4};\n";
const std::string load =
    "mov.u32 r7, tile;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {r3}, [r7];\n";
const std::string move = "movmatrix.sync.aligned.m8n8.trans.b16 r3, r4;\n";
const std::string high_exit = "setp.ge.u32 p, r0, 16;\n@p exit;\n";

TEST(WholeWarps, LanesThatHaveExited) {
  EXPECT_EQ(found(registers + high_exit + multiply, one_warp), "divergent-collective");
  EXPECT_EQ(found(registers + high_exit + load, one_warp), "divergent-collective");
  EXPECT_EQ(found(registers + high_exit + move, one_warp), "divergent-collective");
  EXPECT_EQ(found(registers + "setp.eq.u32 p, r0, 31;\n@p ret;\n" + multiply, one_warp),
            "divergent-collective");
}

TEST(WholeWarps, LanesThatNeverWere) {
  EXPECT_EQ(found(registers + multiply, half_a_warp), "divergent-collective");
  EXPECT_EQ(found(registers + load, half_a_warp), "divergent-collective");
  EXPECT_EQ(found(registers + move, {.grid = {1}, .block = {48}}), "divergent-collective");
  EXPECT_EQ(found(registers + multiply, {.grid = {1}, .block = {16, 3}}), "divergent-collective");
}

TEST(WholeWarps, NearMisses) {
  EXPECT_EQ(found(registers + multiply + load + move, one_warp), "");
  EXPECT_EQ(found(registers + multiply + high_exit, one_warp), "");
  // Another warp's lanes, or all of it.
  EXPECT_EQ(found(registers +
                      "setp.ge.u32 p, r0, 48;\nsetp.ge.u32 q, r0, 32;\n@p exit;\n@q bra "
                      "END;\n" +
                      multiply + "END:\n",
                  two_warps),
            "");
  EXPECT_EQ(found(registers + "setp.ge.u32 p, r0, 32;\n@p exit;\n" + multiply, two_warps), "");
  // Lanes that part and come back.
  EXPECT_EQ(
      found(registers + "setp.ge.u32 p, r0, 16;\n@p bra HIGH;\nmov.u32 r5, 1;\nHIGH:\n" + multiply,
            one_warp),
      "");
  EXPECT_EQ(found(registers + multiply, {.grid = {1}, .block = {16, 2}}), "");
  // A barrier and a shuffle may do without them.
  EXPECT_EQ(
      found(registers + high_exit + "bar.sync 0;\nshfl.sync.bfly.b32 r3, r4, 1, 31, 0xffff;\n",
            one_warp),
      "");
}

TEST(WholeWarps, TheMessageNamesTheLanes) {
  const KernelRun run = run_body(registers + high_exit + multiply, one_warp, 1024);
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].message,
            "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16: lanes 0xffff0000 of the warp do not "
            "exist or have exited; it requires all lanes");
}

}  // namespace
}  // namespace tartan::test
