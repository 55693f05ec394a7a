// SPDX-License-Identifier: Apache-2.0
// tests/emulator/race_kernels.h - small kernels whose threads meet in memory, run under all checks.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/emulator/kernel.h"

namespace tartan::test::races {

inline const Launch two_warps{.grid = {1}, .block = {64}}, one_warp{.grid = {1}, .block = {32}},
    two_blocks{.grid = {2}, .block = {32}};

inline const std::string shared =
    ".shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n.shared .align 4 .u32 flag;\n"
    ".global .align 4 .u32 counter;\n.global .align 16 .u32 data[64];\n";

inline KernelRun watched(const std::string& body, const Launch& launch,
                         const std::string& declarations = shared) {
  DeviceOptions options;
  options.checks = Checks::all;
  KernelRun run = run_body(body, launch, 1024, options, declarations);
  EXPECT_EQ(run.complaint, "") << body;
  // These kernels are about order: some read what nobody wrote.
  std::erase_if(run.findings, [](const Finding& each) { return each.id == "uninitialized-read"; });
  return run;
}

// The first finding's rule; empty without a finding.
inline std::string found(const std::string& body, const Launch& launch) {
  const KernelRun run = watched(body, launch);
  return run.findings.empty() ? "" : run.findings[0].id;
}

inline std::string message(const std::string& body, const Launch& launch) {
  const KernelRun run = watched(body, launch);
  return run.findings.empty() ? "" : run.findings[0].message;
}

// r4: the thread's word of the tile; r5: that of the thread `distance` further, of `threads`.
inline std::string words(int distance, int threads) {
  return fmt::format(
      "mov.u32 r3, tile;\nshl.b32 r4, r0, 2;\nadd.u32 r4, r4, r3;\nadd.u32 r5, r0, {};\n"
      "and.b32 r5, r5, {};\nshl.b32 r5, r5, 2;\nadd.u32 r5, r5, r3;\n",
      distance, threads - 1);
}
inline const std::string mine = "st.shared.u32 [r4], r0;\n", theirs = "ld.shared.u32 r6, [r5];\n",
                         keep = "st.global.u32 [rd1], r6;\n";

// Code for the first thread of warp 0, and for the first of warp 1.
inline std::string first_of_two(const std::string& one, const std::string& other) {
  return "and.b32 r3, r0, 31;\nsetp.ne.u32 q, r3, 0;\n@q bra END;\nsetp.eq.u32 q, r0, 32;\n"
         "@q bra OTHER;\n" +
         one + "bra END;\nOTHER:\n" + other + "END:\n";
}
// The same for the first threads of two CTAs.
inline std::string of_two_blocks(const std::string& one, const std::string& other) {
  return "mov.u32 r2, %ctaid.x;\nsetp.ne.u32 q, r0, 0;\n@q bra END;\nsetp.eq.u32 q, r2, 1;\n"
         "@q bra OTHER;\n" +
         one + "bra END;\nOTHER:\n" + other + "END:\n";
}

inline std::string poll(const std::string& load, const std::string& flag = "flag") {
  return "POLL:\n" + load + ".u32 r7, [" + flag + "];\nsetp.eq.u32 p, r7, 0;\n@p bra POLL;\n";
}

}  // namespace tartan::test::races
