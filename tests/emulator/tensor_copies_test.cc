// SPDX-License-Identifier: Apache-2.0
// tcgen05.cp: every shape, with and without unpacking, and its order before products.
#include <gtest/gtest.h>

#include "tests/emulator/tensor_gemm.h"

namespace tartan::test::tensor {
namespace {

struct Shape {
  std::string words;
  int rows, bytes;
};
const Shape shapes[] = {{"128x256b", 128, 32},
                        {"4x256b", 4, 32},
                        {"128x128b", 128, 16},
                        {"64x128b.warpx2::02_13", 64, 16},
                        {"64x128b.warpx2::01_23", 64, 16},
                        {"32x128b.warpx4", 32, 16}};

// The lanes that a row goes to.
std::vector<int> lanes_of(const Shape& shape, int row) {
  if (shape.words.starts_with("4x")) return {32 * row};
  if (shape.words.ends_with("02_13")) return {row, row + 64};
  if (shape.words.ends_with("01_23"))
    return {row % 32 + 64 * (row / 32), row % 32 + 64 * (row / 32) + 32};
  if (shape.words.ends_with("warpx4")) return {row, row + 32, row + 64, row + 96};
  return {row};
}

// Rows in groups of eight, 16 bytes at a time, without a swizzle or with one of 32 bytes.
int place(const Shape& shape, int row, int byte, int width) {
  if (width) return row / 8 * 256 + row % 8 * 32 + ((byte / 16) ^ (row % 8 / 4)) * 16 + byte % 16;
  return row / 8 * (8 * shape.bytes) + byte / 16 * 128 + row % 8 * 16 + byte % 16;
}

std::string copying(const Shape& shape, const std::string& format, int width, int bytes,
                    const std::string& between = {}) {
  const std::uint64_t descriptor = (width ? std::uint64_t{6} << 61 : 0) | std::uint64_t{1} << 46 |
                                   static_cast<std::uint64_t>((width ? 256 : 8 * shape.bytes) / 16)
                                       << 32 |
                                   std::uint64_t{128 / 16} << 16;
  std::string body = fill_image(bytes / 4) + "mov.u32 v0, 77;\n";
  for (int i = 1; i < 8; ++i) body += fmt::format("mov.u32 v{}, v0;\n", i);
  body += "tcgen05.st.sync.aligned.32x32b.x8.b32 [own+4], " + numbered("v", 8) +
          ";\ntcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n"
          "fence.proxy.async.shared::cta;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n"
          "@!q bra ISSUED;\nshr.u32 r4, r4, 4;\ncvt.u64.u32 rd4, r4;\n" +
          fmt::format("add.s64 da, rd4, 0x{:x};\n", descriptor) +
          fmt::format("tcgen05.cp.cta_group::1.{}{} [ta+4], da;\n", shape.words, format) + between +
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n"
          "ISSUED:\n" +
          wait("done", "WAIT") +
          "tcgen05.fence::after_thread_sync;\ntcgen05.ld.sync.aligned.32x32b.x8.b32 " +
          numbered("w", 8) +
          ", [own+4];\ntcgen05.wait::ld.sync.aligned;\nmul.wide.u32 rd1, r0, 32;\nadd.s64 rd1, "
          "rd0, rd1;\n";
  for (int i = 0; i < 8; ++i) body += fmt::format("st.global.b32 [rd1+{}], w{};\n", 4 * i, i);
  return tensor_text(body, 512, fmt::format(".shared .align 1024 .b8 image[{}];\n", bytes));
}

TEST(EmulatorTensorCopies, CopyEveryShape) {
  std::mt19937 random(5);
  for (const Shape& shape : shapes)
    for (const std::string format : {"", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"})
      for (const int width : {0, 32}) {
        if (width && shape.bytes != 32) continue;
        const int bytes = std::max(shape.rows, 8) * shape.bytes;
        std::vector<std::uint8_t> image(static_cast<std::size_t>(bytes));
        for (std::uint8_t& each : image) each = static_cast<std::uint8_t>(random());
        Words in(static_cast<std::size_t>(bytes / 4));
        std::memcpy(in.data(), image.data(), image.size());
        const KernelRun run = run_tensor(copying(shape, format, width, bytes), 128 * 8, in);
        ASSERT_EQ(findings_text(run), "") << shape.words << format;
        std::vector<std::vector<std::uint8_t>> lanes(128, std::vector<std::uint8_t>(32));
        for (auto& each : lanes)
          for (std::size_t i = 0; i < 32; i += 4) each[i] = 77;
        const int bits = format.empty() ? 8 : format.ends_with("p32") ? 6 : 4;
        for (int row = 0; row < shape.rows; ++row)
          for (const int lane : lanes_of(shape, row))
            for (int byte = 0; byte < shape.bytes; ++byte) {
              std::uint8_t value = 0;
              for (int bit = 0; bit < bits; ++bit) {
                const int at = byte % 16 * bits + bit;
                const int from = place(shape, row, byte / 16 * 16 + at / 8, width);
                value = static_cast<std::uint8_t>(
                    value | (image[static_cast<std::size_t>(from)] >> at % 8 & 1)
                                << (bit + (bits == 4 ? 2 : 0)));
              }
              lanes[static_cast<std::size_t>(lane)][static_cast<std::size_t>(byte)] = value;
            }
        for (std::size_t lane = 0; lane < 128; ++lane)
          for (std::size_t byte = 0; byte < 32; ++byte)
            ASSERT_EQ(run.out[lane * 8 + byte / 4] >> 8 * (byte % 4) & 0xFF, lanes[lane][byte])
                << shape.words << format << " width " << width << ": lane " << lane << ", byte "
                << byte;
      }
}

TEST(EmulatorTensorCopies, FindMistakes) {
  const Shape& shape = shapes[5];
  const Words in(128);
  const auto text_of = [&](const std::string& ptx) {
    return findings_text(run_tensor(ptx, 128 * 8, in));
  };
  const std::string good = copying(shape, "", 0, 512);
  EXPECT_EQ(text_of(good), "");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string ptx = good;
    const std::size_t at = ptx.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text_of(ptx.replace(at, from.size(), to));
  };
  EXPECT_NE(with("[ta+4], da", "[ta+65540], da").find("begins in lane 1: expected 0"),
            std::string::npos);
  EXPECT_NE(with("fence.proxy.async.shared::cta;\n", "").find("[proxy-fence]"), std::string::npos);
  EXPECT_NE(with("add.s64 da, rd4, 0x4", "add.s64 da, rd4, 0x8").find("bits 46 to 48"),
            std::string::npos);
  // The source is overwritten before the copy is over.
  EXPECT_NE(with("ISSUED:\n", "st.shared.b32 [image], r7;\nISSUED:\n").find("[asynchronous-race]"),
            std::string::npos);
  // Nothing orders a second copy to the same cells.
  EXPECT_NE(with("tcgen05.commit",
                 "tcgen05.cp.cta_group::1.32x128b.warpx4 [ta+4], da;\n"
                 "tcgen05.commit")
                .find("[asynchronous-race]"),
            std::string::npos);
}

// Scales by the usual copy of 32 rows, then a block-scaled product, without a wait in between.
TEST(EmulatorTensorCopies, BringScalesBeforeProducts) {
  std::mt19937 random(11);
  Gemm g{.kind = "mxf8f6f4", .a = "e4m3", .b = "e5m2", .n = 64, .scales = 1};
  g.vector = ".block32";
  g.layout_a = g.layout_b = {128, false};
  fill(g, random);
  Plan made = plan(g);
  ASSERT_EQ(difference(g), "");
  // The scales of A again, through shared memory: row i of 32 has those of rows i, i + 32, ...
  const std::size_t at = 4 * made.in.size();
  for (int lane = 0; lane < 32; ++lane)
    for (int column = 0; column < 4; ++column)
      made.in.push_back(g.a_scales[static_cast<std::size_t>(lane + 32 * column)]);
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t found = made.text.find(from);
    ASSERT_NE(found, std::string::npos) << from;
    made.text.replace(found, from.size(), to);
  };
  replace("image[", "scales[512];\n.shared .align 1024 .b8 image[");
  replace("COPIED:\n", fmt::format("COPIED:\nadd.s64 rd2, rd9, {};\nmul.wide.u32 rd3, r0, 4;\n"
                                   "add.s64 rd2, rd2, rd3;\nld.global.b32 r7, [rd2];\nmov.u32 r6, "
                                   "scales;\nmad.lo.u32 r6, r0, 4, r6;\nst.shared.b32 [r6], r7;\n",
                                   at));
  replace("mov.b32 r8,",
          "mov.u32 r6, scales;\nshr.u32 r6, r6, 4;\ncvt.u64.u32 rd5, r6;\nadd.s64 rd5, rd5, "
          "0x400800000000;\ntcgen05.cp.cta_group::1.32x128b.warpx4 [ta+400], rd5;\nmov.b32 r8,");
  replace("[ta+384]", "[ta+400]");
  const KernelRun run = run_tensor(made.text, static_cast<std::size_t>(128 * g.n), made.in);
  ASSERT_EQ(findings_text(run), "");
  EXPECT_EQ(run.out, model(g));
}

}  // namespace
}  // namespace tartan::test::tensor
