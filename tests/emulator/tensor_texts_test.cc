// SPDX-License-Identifier: Apache-2.0
// Mistakes with tcgen05 that the text of a kernel decides: what `tartan check` says of them.
#include <gtest/gtest.h>

#include "tests/emulator/tensor_mistakes.h"

namespace tartan::test::tensor {
namespace {

TEST(EmulatorTensorTexts, Descriptors) {
  const auto idesc = [&](std::uint32_t bits) {
    return small(edited(tiles(publish + issue + commits + waits + after),
                        fmt::format("0x{:x}", small_idesc), fmt::format("0x{:x}", bits)));
  };
  const auto tile = [&](std::uint64_t bits) {
    return small(edited(tiles(publish + issue + commits + waits + after),
                        fmt::format("0x{:x}", small_tile), fmt::format("0x{:x}", bits)));
  };
  const Program right = idesc(small_idesc);
  const auto body = [&](const std::string& text) { return small(text); };
  const std::string ld = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {w0, w1}, [own];\n";
  const std::string alloc =
                        "@!alloc bra HAS;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta."
                        "b32 [slot], 32;\n",
                    more = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], {};\n";
  const Mistake mistakes[] = {
      {"14a", idesc(0x8420010), right, By::check, "instruction-descriptor",
       "N (bits 17 to 22, N / 8) is 264: illegal with .kind::f16, .cta_group::1; the nearest legal "
       "one is 256"},
      {"14b", idesc(0xC040010), right, By::check, "instruction-descriptor", "M (bits 24 to 28"},
      {"15",
       body("tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 " + numbered("w", 4) + ", [own];\n" +
            wait_ld),
       body("tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {w0, w1}, [own];\n" + wait_ld),
       By::check, "register-count", "2"},
      {"26", body("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n"), body(""),
       By::check, "cta-group", "expected .cta_group::1"},
      {"34g", idesc(small_idesc | 4), right, By::check, "instruction-descriptor",
       "sparse bit (bit 2) is 1"},
      {"34i", idesc(small_idesc | 1u << 31), right, By::check, "instruction-descriptor",
       "bits 30 to 31"},
      {"34j", tile(0x0000001000080000), right, By::check, "matrix-descriptor",
       "the version (bits 46 to 48) is 0: expected 1"},
      {"34e", tile(0x2000401000080000), right, By::check, "matrix-descriptor",
       "swizzle mode (bits 61 to 63) is 1"},
      {"34m", body("tcgen05.ld.sync.aligned.16x64b.x1.b32 {w0}, [own+0x80000];\n" + wait_ld),
       body("tcgen05.ld.sync.aligned.16x64b.x1.b32 {w0}, [own+0x100000];\n" + wait_ld), By::check,
       "tensor-memory", "leads 8 lanes further"},
      {"05r", body(ld + "mov.u32 w1, 1;\n" + wait_ld), body(ld + wait_ld + "mov.u32 w1, 1;\n"),
       By::check, "tensor-memory", "insert tcgen05.wait::ld in between"},
  };
  for (const Mistake& each : mistakes) expect_found(each);
  const Program grows{.body = alloc + fmt::format(fmt::runtime(more), 64) + "HAS:\n",
                      .columns = 0,
                      .threads = 128,
                      .shared = ""};
  EXPECT_NE(found(grows, By::check).find("must not grow"), std::string::npos);
  const Program late{.body = alloc +
                             "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" +
                             fmt::format(fmt::runtime(more), 32) + "HAS:\n",
                     .columns = 0,
                     .threads = 128,
                     .shared = ""};
  EXPECT_NE(found(late, By::check).find("the CTA may allocate no more"), std::string::npos);
}

// 32: what a target has not. 33: a note.
TEST(EmulatorTensorTexts, TargetsAndNotes) {
  const auto on = [&](const std::string& target, const std::string& body) {
    Program out = small(body);
    out.target = target;
    return found(out, By::check);
  };
  const std::string red = "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {w0, w1}, w2, [own];\n",
                    i8 = edited(issue, "f16", "i8");
  EXPECT_NE(on("sm_100a", red).find("[target-support]"), std::string::npos);
  EXPECT_EQ(on("sm_103a", red), "");
  EXPECT_NE(on("sm_103a", i8).find("[target-support]"), std::string::npos);
  EXPECT_EQ(on("sm_100a", i8), "");
  EXPECT_NE(on("sm_120a", issue).find("[target-support]"), std::string::npos);
  const std::string once = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own];\n" + wait_ld,
                    loop = "mov.u32 r3, 0;\nNEXT:\n" + once +
                           "add.u32 r3, r3, 1;\nsetp.lt.u32 p, r3, 8;\n@p bra NEXT;\n";
  EXPECT_EQ(on("sm_100a", once), "");
  EXPECT_NE(on("sm_100a", loop).find("load more columns at once"), std::string::npos);
}

}  // namespace
}  // namespace tartan::test::tensor
