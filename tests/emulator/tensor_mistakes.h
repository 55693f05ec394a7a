// SPDX-License-Identifier: Apache-2.0
// tests/emulator/tensor_mistakes.h - a warp-specialized kernel with one accumulator in tensor
// memory, into which mistakes are put: warps 0 to 3 read the accumulator, one thread of warp 4
// issues the products, warp 5 fills a ring of two stages.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tartan/verify/verify.h"

#include "tests/emulator/tensor_memory.h"

namespace tartan::test::tensor {

inline const std::string commit_word =
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 ";
/// M 128, N 16, f16 to f32; tiles of 16-byte columns without a swizzle.
inline constexpr std::uint32_t small_idesc = 0x8040010;
inline constexpr std::uint64_t small_tile = 0x0000401000080000;

inline std::string wait_for(int& labels, const std::string& what, int parity,
                            const std::string& words = {}) {
  return fmt::format(
      "W{0}:\nmbarrier.try_wait.parity{3}.shared::cta.b64 p, [{1}], {2};\n@!p bra W{0};\n",
      labels++, what, parity, words);
}

/// Barriers: full of stage 0 and 1, empty of stage 0 and 1, the accumulator's full and empty.
inline std::string pipeline_body(int tiles = 2) {
  int labels = 0;
  std::string out =
      "setp.eq.u32 q, r0, 0;\n"
      "@q mbarrier.init.shared::cta.b64 [bars], 32;\n"
      "@q mbarrier.init.shared::cta.b64 [bars+8], 32;\n"
      "@q mbarrier.init.shared::cta.b64 [bars+16], 1;\n"
      "@q mbarrier.init.shared::cta.b64 [bars+24], 1;\n"
      "@q mbarrier.init.shared::cta.b64 [bars+32], 1;\n"
      "@q mbarrier.init.shared::cta.b64 [bars+40], 128;\n"
      "bar.sync 0;\n"
      "setp.eq.u32 p, r1, 4;\n@p bra MMA;\n"
      "setp.eq.u32 p, r1, 5;\n@p bra PRODUCER;\n"
      "mul.wide.u32 rd1, r0, 64;\nadd.s64 rd1, rd0, rd1;\n";
  for (int tile = 0; tile < tiles; ++tile) {
    out += fmt::format("// the epilogue of tile {}\n", tile);
    out += wait_for(labels, "bars+32", tile & 1);
    out +=
        "tcgen05.fence::after_thread_sync;\n"
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 " +
        numbered("w", 16) +
        ", [own];\n"
        "tcgen05.wait::ld.sync.aligned;\n"
        "tcgen05.fence::before_thread_sync;\n"
        "mbarrier.arrive.shared::cta.b64 _, [bars+40];\n";
    for (int i = 0; i < 16; ++i) out += fmt::format("st.global.b32 [rd1+{}], w{};\n", 4 * i, i);
  }
  out +=
      "bra DONE;\nMMA:\nand.b32 r3, r0, 31;\nsetp.ne.u32 p, r3, 0;\n@p bra DONE;\n"
      "mov.u32 r4, image;\nshr.u32 r4, r4, 4;\ncvt.u64.u32 rd4, r4;\n" +
      fmt::format("add.s64 rd4, rd4, 0x{:x};\nmov.b32 r8, 0x{:x};\n", small_tile, small_idesc);
  for (int tile = 0; tile < tiles; ++tile) {
    out += fmt::format("// the products of tile {}\n", tile);
    out += wait_for(labels, "bars+40", ~tile & 1);
    out += "tcgen05.fence::after_thread_sync;\n";
    for (int stage = 0; stage < 2; ++stage) {
      out += wait_for(labels, fmt::format("bars+{}", 8 * stage), tile & 1);
      out += fmt::format(
          "tcgen05.fence::after_thread_sync;\nadd.s64 da, rd4, {};\n"
          "add.s64 db, rd4, {};\nsetp.ne.u32 p, {}, 0;\n"
          "tcgen05.mma.cta_group::1.kind::f16 [ta], da, db, r8, p;\n",
          288 * stage, 288 * stage + 256, stage);
      out += commit_word + fmt::format("[bars+{}];\n", 16 + 8 * stage);
    }
    out += commit_word + "[bars+32];\n";
  }
  out +=
      "bra DONE;\nPRODUCER:\nand.b32 r3, r0, 31;\nshl.b32 r3, r3, 4;\nmov.u32 r4, image;\n"
      "add.u32 r4, r4, r3;\nmov.u32 r5, 0x3c003c00;\n";
  for (int tile = 0; tile < tiles; ++tile)
    for (int stage = 0; stage < 2; ++stage) {
      out += fmt::format("// stage {} of tile {}\n", stage, tile);
      out += wait_for(labels, fmt::format("bars+{}", 16 + 8 * stage), ~tile & 1);
      for (int i = 0; i < 9; ++i)
        out +=
            fmt::format("st.shared.v4.b32 [r4+{}], {{r5, r5, r5, r5}};\n", 4608 * stage + 512 * i);
      out += "fence.proxy.async.shared::cta;\n" +
             fmt::format("mbarrier.arrive.shared::cta.b64 _, [bars+{}];\n", 8 * stage);
    }
  return out + "DONE:\nbar.warp.sync -1;\n";
}

inline const std::string pipeline_shared =
    ".shared .align 1024 .b8 image[9216];\n.shared .align 8 .b64 bars[6];\n";

inline const std::string wait_ld = "tcgen05.wait::ld.sync.aligned;\n",
                         wait_st = "tcgen05.wait::st.sync.aligned;\n",
                         before = "tcgen05.fence::before_thread_sync;\n",
                         after = "tcgen05.fence::after_thread_sync;\n",
                         arrive_empty = "mbarrier.arrive.shared::cta.b64 _, [bars+40];\n";

/// How the mistake is looked for: `tartan run --checks all`, or `tartan check`.
enum class By { run, check };

struct Program {
  std::string body;
  int columns = 32, threads = 192;
  std::string shared = pipeline_shared, target = "sm_100a";
  bool frees = true;
  unsigned cluster = 1;
};

struct Mistake {
  std::string row;  // of the list
  Program wrong, right;
  By by;
  std::string id, says;
};

inline std::string text_of(const Program& program) {
  return tensor_text(program.body, program.columns, program.shared, program.target, program.frees);
}

inline std::string found(const Program& program, By by) {
  const std::string text = text_of(program);
  if (by == By::check)
    return verify::check(std::make_shared<const Source>("test.ptx", text)).text();
  const auto threads = static_cast<unsigned>(program.threads);
  Launch launch{.grid = {program.cluster}, .block = {threads}};
  if (program.cluster > 1) launch.cluster = {program.cluster, 1, 1};
  return findings_text(
      run_tensor(text, 4096, std::vector<std::uint32_t>(4096), {.checks = Checks::all}, launch));
}

inline void dump(const std::string& name, const Program& program) {
  const char* const folder = std::getenv("TARTAN_DUMP");
  if (!folder) return;
  const std::string path = std::string(folder) + "/" + name;
  std::ofstream(path + ".ptx") << text_of(program);
  std::ofstream(path + ".json") << fmt::format(
      R"({{"ptx": "{}.ptx", "kernel": "k", "grid": [{}], "block": [{}],{}
 "params": [{{"buffer": "out", "bytes": 16384, "fill": 0}}, {{"buffer": "in", "bytes": 16384, "fill": 0}}]}})",
      name, program.cluster, program.threads,
      program.cluster > 1 ? fmt::format(" \"cluster\": [{}, 1, 1],", program.cluster) : "");
}

inline void expect_found(const Mistake& each) {
  dump(each.row + ".wrong", each.wrong);
  dump(each.row + ".right", each.right);
  const std::string text = found(each.wrong, each.by);
  EXPECT_NE(text.find("[" + each.id + "]"), std::string::npos) << each.row << ": " << text;
  EXPECT_NE(text.find(each.says), std::string::npos) << each.row << ": " << text;
  EXPECT_EQ(found(each.right, By::run), "") << each.row;
  EXPECT_EQ(found(each.right, By::check), "") << each.row;
}

/// `text` with `from` replaced, the `which`-th one.
inline std::string edited(std::string text, const std::string& from, const std::string& to,
                          int which = 0) {
  std::size_t at = text.find(from);
  for (int i = 0; i < which && at != std::string::npos; ++i) at = text.find(from, at + 1);
  EXPECT_NE(at, std::string::npos) << from;
  if (at == std::string::npos) return text;
  return text.replace(at, from.size(), to);
}

/// `done` for one arrival, and tiles of ones at `image`; da, db and r8 as pipeline_body() has them.
inline std::string tiles(const std::string& then) {
  std::string out =
      "setp.eq.u32 q, r0, 0;\n@q mbarrier.init.shared::cta.b64 [done], 1;\n"
      "shl.b32 r3, r0, 4;\nmov.u32 r4, image;\nadd.u32 r4, r4, r3;\nmov.u32 r5, 0x3c003c00;\n";
  for (int i = 0; i < 3; ++i)
    out += fmt::format("st.shared.v4.b32 [r4+{}], {{r5, r5, r5, r5}};\n", 2048 * i);
  return out + "mov.u32 r4, image;\nshr.u32 r4, r4, 4;\ncvt.u64.u32 rd4, r4;\n" +
         fmt::format(
             "add.s64 da, rd4, 0x{:x};\nadd.s64 db, da, 256;\nmov.b32 r8, 0x{:x};\n"
             "setp.ne.u32 p, 0, 0;\n",
             small_tile, small_idesc) +
         then;
}
inline const std::string publish = "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
inline const std::string issue = "@q tcgen05.mma.cta_group::1.kind::f16 [ta], da, db, r8, 0;\n";
inline const std::string commits = "@q " + commit_word + "[done];\n";
inline const std::string waits = wait("done", "WAIT");
inline const std::string tile_shared = ".shared .align 1024 .b8 image[8192];\n";

inline Program small(const std::string& body, int columns = 64) {
  return {.body = body, .columns = columns, .threads = 128, .shared = tile_shared};
}

}  // namespace tartan::test::tensor
