// SPDX-License-Identifier: Apache-2.0
// Uses of what nobody wrote: each mistake beside kernels that are nearly the same and right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

const Launch one_warp{.grid = {1}, .block = {32}}, two_warps{.grid = {1}, .block = {64}};

const std::string declarations =
    ".shared .align 128 .b8 tile[2048];\n.shared .align 8 .b64 bar;\n"
    ".global .align 16 .u32 data[64];\n";

KernelRun watched(const std::string& body, const Launch& launch = one_warp,
                  const std::string& declared = declarations) {
  DeviceOptions options;
  options.checks = Checks::all;
  const KernelRun run = run_body(body, launch, 1024, options, declared);
  EXPECT_EQ(run.complaint, "") << body;
  return run;
}

// "ld.shared.u32 on tile: use at line" of each finding, by the line's text.
std::vector<std::string> used_by(const std::string& body, const Launch& launch = one_warp) {
  const std::string text = kernel_text(body, declarations);
  std::vector<std::string> out;
  for (const Finding& each : watched(body, launch).findings) {
    EXPECT_EQ(each.id, "uninitialized-read") << body << each.message;
    std::size_t at = 0;
    for (int line = 1; line < each.line; ++line) at = text.find('\n', at) + 1;
    out.push_back(text.substr(at, text.find_first_of(" ;", at) - at));
  }
  return out;
}
using Uses = std::vector<std::string>;

const std::string keep = "st.global.u32 [rd1], r6;\n";

TEST(UninitializedReads, AreLookedForWithAllChecksAlone) {
  for (const Checks checks : {Checks::none, Checks::memory}) {
    DeviceOptions options;
    options.checks = checks;
    const KernelRun run = run_body("mov.u32 r6, r5;\n" + keep, one_warp, 1024, options);
    EXPECT_EQ(run.complaint, "");
    EXPECT_TRUE(run.findings.empty());
  }
}

TEST(UninitializedReads, Registers) {
  EXPECT_EQ(used_by("mov.u32 r6, r5;\n" + keep), Uses{"st.global.u32"});
  EXPECT_EQ(used_by("add.u32 r6, r5, 1;\n" + keep), Uses{"st.global.u32"});
  EXPECT_EQ(used_by("setp.eq.u32 p, r5, 0;\n@p bra END;\nEND:\n"), Uses{"@p"});
  EXPECT_EQ(used_by("mov.u32 r3, tile;\nld.shared.u32 r6, [r5];\n"), Uses{"ld.shared.u32"});
  EXPECT_EQ(used_by("bar.sync r5;\n"), Uses{"bar.sync"});
  EXPECT_EQ(used_by("add.u64 rd2, rd1, rd3;\nst.global.u32 [rd2], r0;\n"), Uses{"st.global.u32"});
  // Written on one path alone.
  EXPECT_EQ(used_by("setp.lt.u32 p, r0, 16;\n@p mov.u32 r6, 1;\n" + keep), Uses{"st.global.u32"});
  EXPECT_EQ(used_by("setp.lt.u32 p, r0, 16;\n@p bra OVER;\nmov.u32 r6, 1;\nOVER:\n" + keep),
            Uses{"st.global.u32"});
}

TEST(UninitializedReads, GuardsOfWarpgroups) {
  for (const std::string what : {"fence", "commit_group", "wait_group"})
    EXPECT_EQ(used_by("setp.ne.u32 p, r5, 0;\n@p wgmma." + what + ".sync.aligned" +
                      (what == "wait_group" ? " 0;\n" : ";\n")),
              Uses{"@p"})
        << what;
}

TEST(UninitializedReads, RegistersThatAreWritten) {
  const Uses none;
  EXPECT_EQ(used_by("mov.u32 r6, 5;\n" + keep), none);
  EXPECT_EQ(used_by("setp.lt.u32 p, r0, 16;\n@p mov.u32 r6, 1;\n@!p mov.u32 r6, 2;\n" + keep),
            none);
  EXPECT_EQ(used_by("setp.lt.u32 p, r0, 16;\nmov.u32 r6, 2;\n@p mov.u32 r6, 1;\n" + keep), none);
  EXPECT_EQ(used_by("setp.lt.u32 p, r0, 16;\n@p mov.u32 r6, 1;\n@p " + keep), none);
  // Computed, and kept by nobody.
  EXPECT_EQ(used_by("add.u32 r6, r5, 1;\nmul.lo.u32 r6, r6, r6;\n"), none);
  EXPECT_EQ(used_by("add.u32 r6, r5, 1;\nmov.u32 r6, 0;\n" + keep), none);
  // The first round writes, the second reads.
  EXPECT_EQ(used_by("mov.u32 r2, 0;\nLOOP:\nsetp.eq.u32 p, r2, 0;\n@p mov.u32 r6, 7;\n"
                    "add.u32 r6, r6, 1;\nadd.u32 r2, r2, 1;\nsetp.lt.u32 p, r2, 4;\n"
                    "@p bra LOOP;\n" +
                    keep),
            none);
}

TEST(UninitializedReads, BitsThatLogicDecides) {
  const Uses none, stored{"st.global.u32"};
  const auto store_of = [&](const std::string& code) { return used_by(code + keep); };
  EXPECT_EQ(store_of("and.b32 r6, r5, 0;\n"), none);
  EXPECT_EQ(store_of("and.b32 r6, r5, 1;\n"), stored);
  EXPECT_EQ(store_of("or.b32 r6, r5, -1;\n"), none);
  EXPECT_EQ(store_of("or.b32 r6, r5, 0xfffffffe;\n"), stored);
  EXPECT_EQ(store_of("xor.b32 r6, r5, r5;\n"), none);
  EXPECT_EQ(store_of("xor.b32 r6, r5, r0;\n"), stored);
  EXPECT_EQ(store_of("sub.u32 r6, r5, r5;\n"), none);
  EXPECT_EQ(store_of("not.b32 r6, r5;\nand.b32 r6, r6, 0;\n"), none);
  EXPECT_EQ(store_of("lop3.b32 r6, r5, r0, 0, 0x80;\n"), none);     // a & b & c
  EXPECT_EQ(store_of("lop3.b32 r6, r5, r0, r0, 0xf0;\n"), stored);  // a
  EXPECT_EQ(store_of("lop3.b32 r6, r5, r0, r0, 0xcc;\n"), none);    // b
  EXPECT_EQ(store_of("mov.u32 r6, 3;\nbfi.b32 r6, r5, r6, 8, 8;\nand.b32 r6, r6, 255;\n"), none);
  EXPECT_EQ(store_of("mov.u32 r6, 3;\nbfi.b32 r6, r5, r6, 8, 8;\nand.b32 r6, r6, 511;\n"), stored);
  EXPECT_EQ(store_of("mov.u32 r6, 3;\nbfi.b32 r6, r5, r6, 8, 8;\nbfe.u32 r6, r6, 0, 8;\n"), none);
  EXPECT_EQ(store_of("mov.u32 r6, 3;\nbfi.b32 r6, r5, r6, 8, 8;\nbfe.u32 r6, r6, 4, 5;\n"), stored);
  EXPECT_EQ(store_of("shl.b32 r6, r5, 32;\n"), none);
  EXPECT_EQ(store_of("shl.b32 r6, r5, 31;\n"), stored);
  EXPECT_EQ(store_of("shl.b32 r6, r5, 16;\nand.b32 r6, r6, 0xffff;\n"), none);
  EXPECT_EQ(store_of("shr.u32 r6, r5, 24;\nshr.u32 r6, r6, 8;\n"), none);
  EXPECT_EQ(store_of("shr.s32 r6, r5, 31;\nshr.u32 r6, r6, 31;\n"), stored);
  EXPECT_EQ(store_of("shf.l.wrap.b32 r6, r5, r0, 0;\n"), none);
  EXPECT_EQ(store_of("shf.r.wrap.b32 r6, r5, r0, 8;\n"), stored);
  EXPECT_EQ(store_of("prmt.b32 r6, r5, r0, 0x7654;\n"), none);
  EXPECT_EQ(store_of("prmt.b32 r6, r5, r0, 0x7650;\n"), stored);
  EXPECT_EQ(store_of("brev.b32 r6, r5;\nand.b32 r6, r6, 0;\n"), none);
}

TEST(UninitializedReads, PartsOfRegisters) {
  const Uses none, stored{"st.global.u32"};
  EXPECT_EQ(used_by("mov.b64 rd2, {r0, r5};\ncvt.u32.u64 r6, rd2;\n" + keep), none);
  EXPECT_EQ(used_by("mov.b64 rd2, {r5, r0};\ncvt.u32.u64 r6, rd2;\n" + keep), stored);
  EXPECT_EQ(used_by("mov.b64 rd2, {r5, r0};\nmov.b64 {r7, r6}, rd2;\n" + keep), none);
  EXPECT_EQ(used_by("mov.b64 rd2, {r5, r0};\nmov.b64 {r6, r7}, rd2;\n" + keep), stored);
  EXPECT_EQ(used_by(".reg .b16 h<2>;\ncvt.u32.u16 r6, h0;\n" + keep), stored);
  EXPECT_EQ(used_by(".reg .b16 h<2>;\ncvt.u32.u16 r6, h0;\nshr.u32 r6, r6, 16;\n" + keep), none);
  EXPECT_EQ(used_by("add.f16x2 r6, r5, r0;\n" + keep), stored);
  // The halves of a pair are numbers of their own.
  const std::string pair =
      ".reg .b16 h<2>;\ncvt.u16.u32 h1, r0;\nmov.b32 r2, {h1, h0};\n"
      "add.f16x2 r6, r2, r0;\n";
  EXPECT_EQ(used_by(pair + "and.b32 r6, r6, 0xffff;\n" + keep), none);
  EXPECT_EQ(used_by(pair + "shr.u32 r6, r6, 16;\n" + keep), stored);
  // The chosen one counts.
  EXPECT_EQ(used_by("setp.eq.u32 p, r0, 99;\nselp.b32 r6, r5, r0, p;\n" + keep), none);
  EXPECT_EQ(used_by("setp.eq.u32 p, r0, 3;\nselp.b32 r6, r5, r0, p;\n" + keep), stored);
  EXPECT_EQ(used_by("setp.eq.u32 p, r5, 3;\nselp.b32 r6, r0, r0, p;\n" + keep), none);
  EXPECT_EQ(used_by("setp.eq.u32 p, r5, 3;\nselp.b32 r6, 1, r0, p;\n" + keep), stored);
}

TEST(UninitializedReads, OtherLanes) {
  const Uses none, stored{"st.global.u32"};
  // Lanes from 16 on have written theirs.
  const std::string half = "setp.ge.u32 p, r0, 16;\n@p mov.u32 r5, 4;\n";
  EXPECT_EQ(used_by(half + "shfl.sync.idx.b32 r6, r5, 20, 31, -1;\n" + keep), none);
  EXPECT_EQ(used_by(half + "shfl.sync.idx.b32 r6, r5, 3, 31, -1;\n" + keep), stored);
  EXPECT_EQ(used_by(half + "shfl.sync.down.b32 r6, r5, 16, 31, -1;\n@!p " + keep), none);
  EXPECT_EQ(used_by(half + "shfl.sync.up.b32 r6, r5, 16, 0, -1;\n@p " + keep), Uses{"@p"});
  EXPECT_EQ(used_by("mov.u32 r6, 0;\n" + half + "redux.sync.add.u32 r6, r5, -1;\n" + keep), stored);
  EXPECT_EQ(used_by(half + "@p redux.sync.add.u32 r6, r5, 0xffff0000;\n@p " + keep), none);
  EXPECT_EQ(used_by("setp.eq.u32 q, r5, 0;\nvote.sync.ballot.b32 r6, q, -1;\n" + keep), stored);
  EXPECT_EQ(used_by("setp.eq.u32 q, r0, 0;\nvote.sync.ballot.b32 r6, q, -1;\n" + keep), none);
}

// r4: the thread's word of the tile.
const std::string word = "mov.u32 r3, tile;\nshl.b32 r4, r0, 2;\nadd.u32 r4, r4, r3;\n";

// Lanes that the member mask does not name: what is read there is undefined, and matters where it
// is used.
TEST(UninitializedReads, LanesOutsideOfAShuffle) {
  const auto ids = [](const std::string& body) {
    std::string out;
    for (const Finding& each : watched("mov.u32 r5, r0;\n" + body).findings)
      out += (out.empty() ? "" : ", ") + each.id;
    return out;
  };
  const std::string low = "setp.ge.u32 p, r0, 16;\n@p bra END;\n", end = "END:\n";
  const std::string wrong = "divergent-collective";
  EXPECT_EQ(ids(low + "shfl.sync.idx.b32 r6, r5, 20, 31, 0xffff;\n" + keep + end), wrong);
  EXPECT_EQ(ids(low + "shfl.sync.down.b32 r6, r5, 8, 31, 0xffff;\n" + keep + end), wrong);
  EXPECT_EQ(
      ids(low + "shfl.sync.bfly.b32 r6, r5, 16, 31, 0xffff;\nadd.u32 r6, r6, 1;\n" + keep + end),
      wrong);
  EXPECT_EQ(ids("setp.eq.u32 p, r0, 0;\n@!p bra END;\nshfl.sync.up.b32 r6|q, r5, 1, 0, 1;\n"
                "shfl.sync.idx.b32 r7, r5, 1, 31, 1;\nsetp.eq.u32 q, r7, 0;\n@q bra END;\n" +
                end),
            wrong);
  EXPECT_EQ(ids(low + "shfl.sync.idx.b32 r6, r5, 10, 31, 0xffff;\n" + keep + end), "");
  EXPECT_EQ(ids(low + "shfl.sync.down.b32 r6, r5, 8, 15, 0xffff;\n" + keep + end), "");
  EXPECT_EQ(ids(low + "shfl.sync.bfly.b32 r6, r5, 8, 31, 0xffff;\n" + keep + end), "");
  EXPECT_EQ(ids("shfl.sync.bfly.b32 r6, r5, 16, 31, -1;\n" + keep), "");
  // Read and dropped, as reductions over part of a warp do.
  EXPECT_EQ(ids(low +
                "shfl.sync.down.b32 r6, r5, 8, 31, 0xffff;\nsetp.ge.u32 q, r0, 8;\n"
                "selp.u32 r6, r5, r6, q;\n" +
                keep + end),
            "");
  // Two halves of a warp in one instruction, each with its own mask.
  const std::string halves =
      "mov.u32 r8, 0xffff;\nsetp.ge.u32 p, r0, 16;\n@p mov.u32 r8, 0xffff0000;\n";
  EXPECT_EQ(ids(halves + "shfl.sync.bfly.b32 r6, r5, 8, 31, r8;\n" + keep), "");
  EXPECT_EQ(ids(halves + "shfl.sync.bfly.b32 r6, r5, 16, 31, r8;\n" + keep), wrong);
}

TEST(UninitializedReads, SharedMemory) {
  const Uses none, stored{"st.global.u32"};
  const std::string load = "ld.shared.u32 r6, [r4];\n", write = "st.shared.u32 [r4], r0;\n";
  EXPECT_EQ(used_by(word + load + keep), stored);
  EXPECT_EQ(used_by(word + write + load + keep), none);
  EXPECT_EQ(used_by(word + write + "bar.warp.sync -1;\nld.shared.u32 r6, [r4+4];\n" + keep),
            stored);
  EXPECT_EQ(used_by(word + write +
                    "bar.warp.sync -1;\nsetp.lt.u32 p, r0, 31;\n"
                    "@p ld.shared.u32 r6, [r4+4];\n@p " +
                    keep),
            none);
  EXPECT_EQ(used_by(word + "st.shared.u8 [r4], r0;\nld.shared.u8 r6, [r4];\n" + keep), none);
  EXPECT_EQ(used_by(word + "st.shared.u8 [r4], r0;\n" + load + keep), stored);
  EXPECT_EQ(used_by(word + "st.shared.u8 [r4], r0;\n" + load + "and.b32 r6, r6, 255;\n" + keep),
            none);
  // Undefined values move: the use is what is told.
  EXPECT_EQ(used_by(word + "st.shared.u32 [r4], r5;\n" + load + keep), stored);
  EXPECT_EQ(used_by(word + "st.shared.u32 [r4], r5;\n" + load), none);
  EXPECT_EQ(used_by(word + "st.shared.u32 [r4], r5;\n" + write + load + keep), none);
  EXPECT_EQ(used_by(word + "ld.shared.s8 r6, [r4];\nand.b32 r6, r6, 0x100;\n" + keep), stored);
  EXPECT_EQ(used_by(word + "ld.shared.u8 r6, [r4];\nand.b32 r6, r6, 0x100;\n" + keep), none);
  EXPECT_EQ(used_by(word + "atom.shared.add.u32 r6, [r4], 1;\n"), Uses{"atom.shared.add.u32"});
  EXPECT_EQ(used_by(word + write + "atom.shared.add.u32 r6, [r4], 1;\n" + keep), none);
  EXPECT_EQ(used_by(word + "atom.shared.exch.b32 r6, [r4], 1;\n"), none);
  EXPECT_EQ(used_by(word + "atom.shared.exch.b32 r6, [r4], 1;\n" + keep), stored);
}

TEST(UninitializedReads, LocalMemoryAndCalls) {
  const Uses none, stored{"st.global.u32"};
  const std::string local = ".local .align 4 .b8 mine[16];\n";
  EXPECT_EQ(used_by(local + "ld.local.u32 r6, [mine];\n" + keep), stored);
  EXPECT_EQ(used_by(local + "st.local.u32 [mine], r0;\nld.local.u32 r6, [mine];\n" + keep), none);
  EXPECT_EQ(used_by(local + "st.local.u32 [mine], r0;\nld.local.u32 r6, [mine+4];\n" + keep),
            stored);
  EXPECT_EQ(used_by(local +
                    "setp.lt.u32 p, r0, 8;\n@p st.local.u32 [mine+4], r0;\n"
                    "@p ld.local.u32 r6, [mine+4];\n@p " +
                    keep),
            none);

  const std::string function =
      ".func (.param .b32 to) twice(.param .b32 from)\n{\n.reg .b32 x;\nld.param.b32 x, [from];\n"
      "add.u32 x, x, x;\nst.param.b32 [to], x;\nret;\n}\n";
  const auto calls = [&](const std::string& value) {
    const std::string body = "{\n.param .b32 from;\n.param .b32 to;\nst.param.b32 [from], " +
                             value + ";\ncall (to), twice, (from);\nld.param.b32 r6, [to];\n}\n" +
                             keep;
    return watched(body, one_warp, function).findings.size();
  };
  EXPECT_EQ(calls("r0"), 0u);
  EXPECT_EQ(calls("r5"), 1u);
}

TEST(UninitializedReads, Fragments) {
  const Uses none, stored{"st.global.b32"};
  const std::string fill = word +
                           "st.shared.u32 [r4], r0;\nst.shared.u32 [r4+128], r0;\n"
                           "st.shared.u32 [r4+256], r0;\nst.shared.u32 [r4+384], r0;\n"
                           "bar.warp.sync -1;\nshl.b32 r8, r0, 4;\nadd.u32 r8, r8, r3;\n";
  const std::string rows = word + "shl.b32 r8, r0, 4;\nadd.u32 r8, r8, r3;\n";
  const std::string load = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r9, r10}, [r8];\n",
                    out = "st.global.b32 [rd1], r9;\n";
  EXPECT_EQ(used_by(fill + load + out), none);
  EXPECT_EQ(used_by(rows + load + out), stored);
  EXPECT_EQ(used_by(rows + load), none);
  // One matrix of two.
  const std::string first = rows +
                            "setp.lt.u32 p, r0, 8;\n@p st.shared.v4.u32 [r8], "
                            "{r0, r0, r0, r0};\nbar.warp.sync -1;\n";
  EXPECT_EQ(used_by(first + load + out), none);
  EXPECT_EQ(used_by(first + load + "st.global.b32 [rd1], r10;\n"), stored);
  EXPECT_EQ(
      used_by(rows + "stmatrix.sync.aligned.m8n8.x2.shared.b16 [r8], {r0, r0};\n" + load + out),
      none);
  EXPECT_EQ(
      used_by(rows + "stmatrix.sync.aligned.m8n8.x2.shared.b16 [r8], {r5, r0};\n" + load + out),
      stored);
  EXPECT_EQ(
      used_by(rows + "stmatrix.sync.aligned.m8n8.x2.shared.b16 [r8], {r0, r5};\n" + load + out),
      none);
  EXPECT_EQ(used_by("movmatrix.sync.aligned.m8n8.trans.b16 r9, r0;\n" + out), none);
  EXPECT_EQ(used_by("movmatrix.sync.aligned.m8n8.trans.b16 r9, r5;\n" + out), stored);
}

// PTX ISA, "ldmatrix": the other lanes' addresses have to be valid on sm_75 alone.
TEST(UninitializedReads, AddressesOfRowsThatNobodyLoads) {
  const auto ids = [&](const std::string& address, int matrices, const std::string& target) {
    std::string text = kernel_text(
        word +
            "shl.b32 r8, r0, 4;\nadd.u32 r8, r8, r3;\nst.shared.v4.u32 [r8], {r0, r0, r0, r0};\n"
            "bar.warp.sync -1;\n" +
            fmt::format("setp.lt.u32 p, r0, {};\n", 8 * matrices) + address +
            fmt::format("ldmatrix.sync.aligned.m8n8.x{}.shared.b16 {{{}}}, [r7];\n", matrices,
                        matrices == 1 ? "r9" : "r9, r10") +
            "st.global.b32 [rd1], r9;\n",
        declarations);
    text.replace(text.find("sm_90"), 5, target);
    const KernelRun run = run_text(text, one_warp, 1024, {.checks = Checks::all});
    EXPECT_EQ(run.complaint, "") << text;
    std::string out;
    for (const Finding& each : run.findings)
      if (out.find(each.id) == std::string::npos) out += (out.empty() ? "" : " ") + each.id;
    return out;
  };
  const std::string none = "@p mov.u32 r7, r8;\n", garbage = "selp.u32 r7, r8, 0x7ffffff0, p;\n",
                    whole = "mov.u32 r7, r8;\n", missing = "@!p mov.u32 r7, r8;\n";
  for (const int matrices : {1, 2}) {
    for (const std::string target : {"sm_80", "sm_90"}) {
      EXPECT_EQ(ids(none, matrices, target), "") << target;
      EXPECT_EQ(ids(garbage, matrices, target), "") << target;
      EXPECT_EQ(ids(whole, matrices, target), "") << target;
      EXPECT_NE(ids(missing, matrices, target), "") << target;
    }
    EXPECT_NE(ids(none, matrices, "sm_75").find("uninitialized-read"), std::string::npos);
    EXPECT_EQ(ids(garbage, matrices, "sm_75"), "memory-fault");
    EXPECT_EQ(ids(whole, matrices, "sm_75"), "");
  }
}

// Rows of A are rows of D, columns of B its columns.
TEST(UninitializedReads, Products) {
  const Uses none, stored{"st.global.f32"};
  const std::string zero = "mov.f32 f1, 0f00000000;\n",
                    mma = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f2, f3, f4, f5}, ";
  const auto store_of = [&](const std::string& what, const std::string& code) {
    return used_by(zero + code + "st.global.f32 [rd1], " + what + ";\n");
  };
  EXPECT_EQ(store_of("f2", mma + "{r0, r0}, {r0}, {f1, f1, f1, f1};\n"), none);
  EXPECT_EQ(store_of("f2", mma + "{r5, r0}, {r0}, {f1, f1, f1, f1};\n"), stored);
  EXPECT_EQ(store_of("f4", mma + "{r5, r0}, {r0}, {f1, f1, f1, f1};\n"), none);
  EXPECT_EQ(store_of("f4", mma + "{r0, r0}, {r5}, {f1, f1, f1, f1};\n"), stored);
  EXPECT_EQ(store_of("f2", mma + "{r0, r0}, {r0}, {f1, f7, f1, f1};\n"), none);
  EXPECT_EQ(store_of("f3", mma + "{r0, r0}, {r0}, {f1, f7, f1, f1};\n"), stored);
  // Column 4 of B: lanes 16 to 19, of which column 4 of D is in lanes with 2 in their group.
  const std::string column =
      "and.b32 r2, r0, 28;\nsetp.ne.u32 p, r2, 16;\n@p mov.u32 r5, 0;\n"
      "and.b32 r2, r0, 3;\nsetp.eq.u32 q, r2, 2;\n";
  EXPECT_EQ(used_by(zero + column + mma +
                    "{r0, r0}, {r5}, {f1, f1, f1, f1};\n"
                    "@!q st.global.f32 [rd1], f2;\nst.global.f32 [rd1], f3;\n"),
            none);
  EXPECT_EQ(used_by(zero + column + mma +
                    "{r0, r0}, {r5}, {f1, f1, f1, f1};\n"
                    "@q st.global.f32 [rd1], f2;\n"),
            Uses{"@q"});
}

TEST(UninitializedReads, AsynchronousCopies) {
  const Uses none, stored{"st.global.u32"};
  const std::string wait = "cp.async.wait_all;\n", load = "ld.shared.u32 r6, [r4];\n";
  const std::string address = word +
                              "mov.u64 rd2, data;\nmul.wide.u32 rd3, r0, 4;\n"
                              "add.s64 rd2, rd2, rd3;\n";
  EXPECT_EQ(used_by(address + "cp.async.ca.shared.global [r4], [rd2], 4;\n" + wait + load + keep),
            none);
  EXPECT_EQ(
      used_by(address + "setp.lt.u32 p, r0, 16;\n@p cp.async.ca.shared.global [r4], [rd2], 4;\n" +
              wait + load + keep),
      stored);
  // What is not copied is zero.
  EXPECT_EQ(
      used_by(address + "cp.async.ca.shared.global [r4], [rd2], 4, 0;\n" + wait + load + keep),
      none);
  EXPECT_EQ(used_by(address + "cp.async.ca.shared.global [r4], [rd2], 4, r5;\n" + wait + load),
            Uses{"cp.async.ca.shared.global"});
}

// A buffer that the host has not written.
TEST(UninitializedReads, Buffers) {
  const auto run = [](const std::string& body, std::size_t written) {
    DeviceOptions options;
    options.checks = Checks::all;
    auto engine = *emulator::make_engine(options);
    auto module = engine->load(kernel_text(body, declarations), "test.ptx");
    auto kernel = (*module)->kernel("k");
    const std::uint64_t buffer = *engine->allocate(256);
    if (written) {
      EXPECT_TRUE(static_cast<bool>(engine->fill(buffer, written, 1)));
    }
    EXPECT_TRUE(static_cast<bool>((*kernel)->launch(one_warp, Arguments().add(buffer), nullptr)));
    (void)engine->synchronize();
    return engine->findings();
  };
  const std::string copy = "ld.global.u32 r6, [rd1];\nst.global.u32 [rd1+128], r6;\n";
  EXPECT_EQ(run(copy, 256).size(), 0u);
  EXPECT_EQ(run(copy, 128).size(), 0u);
  const auto findings = run(copy, 64);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "uninitialized-read");
  EXPECT_EQ(findings[0].lane, 16);
  EXPECT_NE(findings[0].message.find("global memory at out+64"), std::string::npos)
      << findings[0].message;
  EXPECT_EQ(run("st.global.u32 [rd1], r0;\n" + copy, 0).size(), 0u);
  EXPECT_EQ(run("st.async.release.gpu.global.b32 [rd1], r0;\n" + copy, 0).size(), 0u);
  EXPECT_EQ(run("red.async.release.gpu.global.add.u32 [rd1], 1;\n", 0).size(), 1u);
  const std::string map = "mov.u32 r3, tile;\nmad.lo.u32 r4, r0, 4, r3;\nmov.u64 rd2, tile;\n",
                    clear = "st.shared.u32 [r4], 0;\nbar.warp.sync -1;\n",
                    publish =
                        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"
                        ".sync.aligned [rd0], [rd2], 0x80;\nbar.warp.sync -1;\n";
  for (const Finding& each : run(map + clear + publish + copy, 0)) ADD_FAILURE() << each.message;
  EXPECT_EQ(run(map + publish, 0).size(), 1u);
  EXPECT_EQ(run("red.global.add.u32 [rd1], 1;\n", 0).size(), 1u);
  EXPECT_EQ(run("red.global.add.u32 [rd1], 1;\n", 128).size(), 0u);
}

TEST(UninitializedReads, Messages) {
  const std::string body = word + "ld.shared.u32 r5, [r4+64];\nadd.u32 r6, r5, 1;\n" + keep;
  const KernelRun run = watched(body);
  ASSERT_EQ(run.findings.size(), 1u);
  EXPECT_EQ(run.findings[0].message,
            fmt::format("a value stored to global memory is undefined: tile+64 (shared memory at "
                        "0x40) was never written, ld.shared.u32 on line {} reads it; used by "
                        "st.global.u32 in warp 0, lane 0 (31 more such uses)",
                        line_of(body, "ld.shared", declarations)));
  EXPECT_EQ(run.findings[0].line, line_of(body, "st.global", declarations));
  EXPECT_EQ(watched("bar.sync r5;\n").findings[0].message,
            "an operand is undefined: register r5 was never written; used by bar.sync in warp 0, "
            "lane 0 (31 more such uses)");
  // Two origins, two uses of each; what was told once counts as written.
  const std::string twice = "add.u32 r6, r5, 1;\n" + keep + keep + "add.u32 r6, r7, 1;\n" + keep;
  EXPECT_EQ(used_by(twice), (Uses{"st.global.u32", "st.global.u32"}));
}

}  // namespace
}  // namespace tartan::test
