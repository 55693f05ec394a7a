// SPDX-License-Identifier: Apache-2.0
// What tcgen05.commit tells those who wait for its mbarrier: that the tensor core's work is done,
// and with it what that work came behind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emulator/tensor_memory.h"

namespace tartan::test {
namespace {

constexpr std::string_view declarations =
    ".shared .align 1024 .b8 image[4096];\n.shared .align 8 .b64 full, empty;\n"
    ".shared .align 4 .b32 word;\n";

const std::string init = R"(
setp.eq.u32 q, r0, 0;
@!q bra READY;
mbarrier.init.shared::cta.b64 [full], 1;
mbarrier.init.shared::cta.b64 [empty], 1;
mbarrier.init.shared::cta.b64 [done], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
mov.u32 r4, image;
shr.u32 r5, r4, 4;
cvt.u64.u32 da, r5;
or.b64 da, da, 0x0000400800080000;
)";

std::string commit(const std::string& mbarrier) {
  return fmt::format(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{}];\n", mbarrier);
}
const std::string load =
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4096;\n"
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [image], [rd9], 4096, "
    "[full];\n";
const std::string read = "tcgen05.cp.cta_group::1.128x256b [ta], da;\n";

// Thread 64 fills a stage twice, thread 32 gives it to the tensor core; `frees` is how.
std::string ring(const std::string& frees) {
  return tensor_text(
      init + "setp.eq.u32 q, r0, 64;\n@!q bra LOADED;\n" + wait("empty", "FIRST", 1) + load +
          wait("empty", "SECOND", 0) + load + "LOADED:\nsetp.eq.u32 q, r0, 32;\n@!q bra ISSUED;\n" +
          wait("full", "ONE", 0) + read + frees + wait("full", "TWO", 1) + read + commit("done") +
          "ISSUED:\n" + wait("done", "DONE", 0) + "tcgen05.fence::after_thread_sync;\n",
      512, std::string(declarations));
}

TEST(CommitOrder, AStageIsFilledAgainBehindTheProductsThatReadIt) {
  const std::vector<std::uint32_t> in(1024, 1);
  EXPECT_EQ(findings_text(run_tensor(ring(commit("empty")), 1, in)), "");
  // The thread arrives, and the tensor core may still read.
  const KernelRun wrong = run_tensor(ring("mbarrier.arrive.shared::cta.b64 _, [empty];\n"), 1, in);
  EXPECT_NE(findings_text(wrong).find("[asynchronous-race]"), std::string::npos)
      << findings_text(wrong);
}

// Thread 32 writes a word before or behind its last work for the tensor core, thread 0 reads it.
std::string word(const std::string& before, const std::string& behind) {
  return tensor_text(init + "setp.eq.u32 q, r0, 32;\n@!q bra ISSUED;\n" + load +
                         wait("full", "ONE", 0) + before + read + behind + commit("done") +
                         "ISSUED:\n" + wait("done", "DONE", 0) +
                         "tcgen05.fence::after_thread_sync;\nsetp.eq.u32 q, r0, 0;\n@q "
                         "ld.shared.b32 r6, [word];\n@q st.global.b32 [rd0], r6;\n",
                     512, std::string(declarations));
}

TEST(CommitOrder, WhatItsThreadDoesAfterTheLastWorkIsNotTold) {
  const std::vector<std::uint32_t> in(1024, 1);
  const std::string store = "st.shared.b32 [word], r0;\n";
  EXPECT_EQ(findings_text(run_tensor(word(store, ""), 1, in)), "");
  const KernelRun wrong = run_tensor(word("", store), 1, in);
  EXPECT_NE(findings_text(wrong).find("[memory-race]"), std::string::npos) << findings_text(wrong);
}

}  // namespace
}  // namespace tartan::test
