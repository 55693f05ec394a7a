// SPDX-License-Identifier: Apache-2.0
// Which bytes and lanes of its operands a product uses: padding between narrow elements, lanes that
// it leaves out; and how sure its sums are, which the descriptor says.
#include <gtest/gtest.h>

#include "tests/emulator/tensor_mistakes.h"

namespace tartan::test::tensor {
namespace {

const std::string over = commits + waits + after,
                  read = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own];\n" + wait_ld +
                         "mul.wide.u32 rd1, r0, 4;\nadd.s64 rd1, rd0, rd1;\nst.global.b32 [rd1], "
                         "w0;\n";

std::string f8(std::uint32_t types) {
  return edited(edited(tiles(publish + issue + over + read), "kind::f16", "kind::f8f6f4"),
                fmt::format("0x{:x}", small_idesc), fmt::format("0x{:x}", small_idesc | types));
}

// 16 elements of four bits fill 8 bytes of 16, those of six bits 12.
TEST(EmulatorTensorPlaces, PaddingNeedNotBeWritten) {
  constexpr std::uint32_t e2m1 = 5u << 7 | 5u << 10, e2m3 = 3u << 7 | 3u << 10, e4m3 = 0;
  const auto storing = [&](std::string body, int words) {
    const std::string whole = "st.shared.v4.b32", all = "{r5, r5, r5, r5}";
    for (int i = 0; i < 3; ++i) {
      const std::string from = fmt::format("{} [r4+{}], {};\n", whole, 2048 * i, all);
      std::string to = fmt::format("st.shared.v2.b32 [r4+{}], {{r5, r5}};\n", 2048 * i);
      if (words == 3) to += fmt::format("st.shared.b32 [r4+{}], r5;\n", 2048 * i + 8);
      body = edited(body, from, to);
    }
    return small(body);
  };
  EXPECT_EQ(found(storing(f8(e2m1), 2), By::run), "");
  EXPECT_EQ(found(storing(f8(e2m3), 3), By::run), "");
  const std::string few = found(storing(f8(e2m3), 2), By::run);
  EXPECT_NE(few.find("[uninitialized-read]"), std::string::npos) << few;
  EXPECT_NE(found(storing(f8(e4m3), 3), By::run).find("[uninitialized-read]"), std::string::npos);
}

TEST(EmulatorTensorPlaces, DisabledLanesAreNotWritten) {
  const auto with = [&](const std::string& words, int warp) {
    return small(
        tiles(fmt::format("mov.b32 r10, 0;\nmov.b32 r11, -1;\nmov.u32 v0, 7;\n{}@q "
                          "tcgen05.mma.cta_group::1.kind::f16 "
                          "[ta], da, db, r8, {}, 0;\nsetp.ne.u32 p, r1, {};\n@p bra STORED;\n"
                          "tcgen05.st.sync.aligned.32x32b.x1.b32 [own], {{v0}};\n{}STORED:\n{}",
                          publish, words, warp, wait_st, over)));
  };
  EXPECT_EQ(found(with("{r10, r11, r11, r11}", 1), By::run), "");
  const std::string race = found(with("{r10, r11, r11, r11}", 0), By::run);
  EXPECT_NE(race.find("[asynchronous-race]"), std::string::npos) << race;
  EXPECT_NE(found(with("{r10, r10, r11, r11}", 1), By::run).find("[asynchronous-race]"),
            std::string::npos);
}

TEST(EmulatorTensorPlaces, SumsOfF16AreAssumed) {
  const auto trust = [&](std::uint32_t idesc) {
    const std::string body =
        edited(tiles(publish + issue + over), fmt::format("0x{:x}", small_idesc),
               fmt::format("0x{:x}", idesc));
    return run_tensor(tensor_text(body, 64, tile_shared), 32).report.trust;
  };
  EXPECT_EQ(trust(small_idesc).level, "measured");
  EXPECT_EQ(trust(small_idesc & ~0x10u).level, "assumed");
}

}  // namespace
}  // namespace tartan::test::tensor
