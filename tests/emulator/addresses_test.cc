// SPDX-License-Identifier: Apache-2.0
// Addresses in the wrong state space: what faults on a GPU faults here, and the finding says what
// the address is. And variables that are declared .extern and defined nowhere.
#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using test::KernelRun;
using test::run_body;

const std::string variables =
    ".shared .align 1024 .b8 tile[1024];\n.const .align 4 .u32 first = 41;\n"
    ".const .align 4 .u32 second = 42;\n.global .align 16 .u32 counter[4];\n";
constexpr Launch one_thread{.grid = {1}, .block = {1}}, one_warp{.grid = {1}, .block = {32}};

// What the first finding says; rd9: a generic copy of out's address.
std::string fault(const std::string& body, const std::string& declarations = variables,
                  Launch launch = one_thread, std::string_view id = "memory-fault") {
  const KernelRun run = run_body(body, launch, 1024, {}, declarations);
  if (!run.complaint.empty()) return run.complaint;
  if (run.findings.empty()) return "none";
  EXPECT_EQ(run.findings[0].id, id) << body;
  return run.findings[0].message;
}

void expect_words(const std::string& body, const std::string& words,
                  const std::string& declarations = variables, Launch launch = one_thread) {
  const std::string said = fault(body, declarations, launch);
  EXPECT_NE(said.find(words), std::string::npos) << body << "\n" << said << "\n" << words;
}

TEST(Addresses, AnOffsetInSharedMemoryIsNamed) {
  const std::string words =
      "it is the offset of tile+64 in shared memory: use .shared or "
      "cvta.shared";
  const std::string address = "mov.u64 rd2, tile;\n";
  for (const std::string access :
       {"ld.u32 r2, [rd2+64];", "st.u32 [rd2+64], 1;", "ld.global.u32 r2, [rd2+64];",
        "st.global.u32 [rd2+64], 1;", "atom.add.u32 r2, [rd2+64], 1;",
        "atom.global.add.u32 r2, [rd2+64], 1;", "red.global.add.u32 [rd2+64], 1;",
        "ld.global.v4.u32 {r2, r3, r4, r5}, [rd2+64];"})
    expect_words(address + access, words);
  expect_words("mov.u32 r2, tile;\nadd.u32 r2, r2, 64;\ncvt.u64.u32 rd2, r2;\nld.u32 r3, [rd2];",
               words);
  expect_words(address + "ld.u32 r2, [rd2+64];", "access of 4 bytes at 0x40 is out of bounds");
  expect_words("mov.u32 r2, dyn;\ncvt.u64.u32 rd2, r2;\nld.u32 r3, [rd2+16];",
               "it is the offset of dyn+16 in shared memory", ".extern .shared .b8 dyn[];\n",
               {.grid = {1}, .block = {1}, .dynamic_shared = 64});
}

TEST(Addresses, AnOffsetInSharedMemoryOfAClusterIsNamed) {
  expect_words("mov.u64 rd2, tile;\nld.u32 r2, [rd2+64];", "it is the offset of tile+64", variables,
               {.grid = {2}, .block = {1}, .cluster = {2, 1, 1}});
}

TEST(Addresses, OtherOffsetsAreNamed) {
  expect_words("mov.u64 rd2, out;\nst.global.u32 [rd2], 1;",
               "it is the offset of out in the kernel's parameters: ld.param reads it");
  expect_words("mov.u64 rd2, second;\nld.global.u32 r2, [rd2];",
               "it is the offset of second in constant memory: use .const or cvta.const",
               ".const .align 4 .u32 first = 41;\n.const .align 4 .u32 second = 42;\n");
  expect_words(".local .align 16 .b8 own[64];\nmov.u64 rd2, own;\nst.u32 [rd2+4], 1;",
               "it is the offset of own+4 in local memory: use .local or cvta.local");
  expect_words("mov.u64 rd2, tile;\nmov.u64 rd3, out;\nst.u32 [rd2+4], 1;",
               "it is the offset of tile+4 in shared memory: use .shared or cvta.shared; or it is "
               "the offset of out+4 in the kernel's parameters: ld.param reads it");
}

TEST(Addresses, NullPointersAreNamed) {
  expect_words("mov.u64 rd2, 0;\nld.global.u32 r2, [rd2];", "it is a null pointer");
  expect_words("mov.u64 rd2, 0;\nst.u32 [rd2+32], 1;", "it is 0x20 bytes behind a null pointer");
  expect_words("mov.u64 rd2, 0;\nld.global.u32 r2, [rd2+-32];",
               "it is 0x20 bytes in front of a null pointer");
}

TEST(Addresses, ANullParameterIsNamed) {
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(static_cast<bool>(engine));
  auto module = (*engine)->load(
      test::kernel_text("mov.u64 rd2, tile;\nld.global.u32 r2, [rd0];", variables), "test.ptx");
  ASSERT_TRUE(static_cast<bool>(module));
  auto kernel = (*module)->kernel("k");
  ASSERT_TRUE(static_cast<bool>(kernel));
  (void)(*kernel)->launch(one_thread, Arguments().add(std::uint64_t{0}), nullptr);
  (void)(*engine)->synchronize();
  ASSERT_EQ((*engine)->findings().size(), 1u);
  EXPECT_NE((*engine)->findings()[0].message.find("or parameter out is a null pointer"),
            std::string::npos)
      << (*engine)->findings()[0].message;
}

TEST(Addresses, AGenericAddressOfAnotherSpaceIsNamed) {
  expect_words("cvta.shared.u64 rd2, tile;\nst.global.u32 [rd2+16], 1;\nmov.u64 rd3, tile;",
               "it is the generic address of tile+16 in shared memory: use a generic access, or "
               ".shared with cvta.to.shared");
  expect_words(".local .align 16 .b8 own[64];\ncvta.local.u64 rd2, own;\nst.local.u32 [rd2], 1;",
               "it is the generic address of own in local memory: use a generic access, or .local "
               "with cvta.to.local");
  expect_words("cvta.const.u64 rd2, second;\nld.const.u32 r2, [rd2];",
               "it is the generic address of second in constant memory");
}

// Each of them: error 715 on an H200, where a pointer's lower half is beyond all shared memory,
// too.
TEST(Addresses, AGlobalPointerIsNoPlaceInSharedMemory) {
  const std::string words = "in buffer out: a global address; use .global";
  for (const std::string access :
       {"st.shared.u32 [rd0], 1;", "ld.shared.u32 r2, [rd0];", "atom.shared.add.u32 r2, [rd0], 1;",
        "mbarrier.init.shared.b64 [rd0], 1;", "st.shared::cluster.u32 [rd0], 1;",
        "cp.async.ca.shared.global [rd0], [rd0], 16;",
        "cvta.to.shared.u64 rd2, rd0;\nst.shared.u32 [rd2], 1;"})
    expect_words(access, words);
  expect_words("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r2, r3, r4, r5}, [rd0];", words,
               variables, one_warp);
  expect_words(
      "mbarrier.init.shared.b64 [tile], 1;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [rd0], [rd0], "
      "16, [tile];",
      words);
  expect_words("mov.u64 rd2, counter;\nst.shared.u32 [rd2+4], 1;",
               "in buffer counter+4: a global address");
}

TEST(Addresses, AGlobalPointerIsNoPlaceInOtherSpaces) {
  const std::string words = "it is in buffer out: a global address; use .global";
  expect_words(".local .align 16 .b8 own[64];\nst.local.u32 [own], 1;\nst.local.u32 [rd0], 1;",
               words);
  expect_words("ld.const.u32 r2, [rd0];", words);
  expect_words("ld.param.u32 r2, [rd0];", words);
}

// As on an H200: of an address of shared memory the lower half counts, and generic ones have the
// offset there.
TEST(Addresses, TheUpperHalfOfAnAddressOfSharedMemoryDoesNotCount) {
  const KernelRun run = run_body(
      "mov.u64 rd2, tile;\nadd.u64 rd2, rd2, 0x1234500000010;\nst.shared.u32 [rd2], 77;\n"
      "ld.shared.u32 r2, [tile+16];\nst.global.u32 [rd0], r2;\n"
      "cvta.shared.u64 rd3, tile;\nst.shared.u32 [rd3+32], 78;\nld.shared.u32 r3, [tile+32];\n"
      "st.global.u32 [rd0+4], r3;\nmov.u64 rd4, tile;\ncvt.u32.u64 r4, rd4;\n"
      "ld.shared.u32 r4, [r4+16];\nst.global.u32 [rd0+8], r4;\n"
      "cvta.to.shared.u64 rd5, rd3;\ncvt.u32.u64 r5, rd5;\nld.shared.u32 r5, [r5+32];\n"
      "st.global.u32 [rd0+12], r5;\nld.u32 r6, [rd3+16];\nst.global.u32 [rd0+16], r6;",
      one_thread, 16, {}, variables);
  EXPECT_EQ(run.complaint, "");
  EXPECT_TRUE(run.findings.empty());
  EXPECT_EQ(std::vector(run.out.begin(), run.out.begin() + 5),
            (std::vector<std::uint32_t>{77, 78, 77, 78, 77}));
}

// mov gives the offset in constant memory, cvta.const and generic() what all accesses take: as on
// an H200.
TEST(Addresses, OfConstants) {
  const KernelRun run = run_body(
      "mov.u64 rd2, second;\nld.const.u32 r2, [rd2];\nst.global.u32 [rd0], r2;\n"
      "cvta.const.u64 rd3, second;\nld.u32 r3, [rd3];\nst.global.u32 [rd0+4], r3;\n"
      "cvta.const.u64 rd4, rd2;\nld.global.u32 r4, [rd4];\nst.global.u32 [rd0+8], r4;\n"
      "cvta.to.const.u64 rd5, rd3;\nld.const.u32 r5, [rd5];\nst.global.u32 [rd0+12], r5;\n"
      "isspacep.const p, rd3;\nselp.u32 r6, 1, 0, p;\nst.global.u32 [rd0+16], r6;\n"
      "ld.global.u64 rd6, [table];\nld.const.u32 r7, [rd6];\nst.global.u32 [rd0+20], r7;\n"
      "ld.global.u64 rd7, [table+8];\nld.u32 r8, [rd7];\nst.global.u32 [rd0+24], r8;\n"
      "ld.const.u32 r9, [second];\nst.global.u32 [rd0+28], r9;\n"
      "setp.eq.u64 p, rd2, rd6;\nselp.u32 r6, 1, 0, p;\nst.global.u32 [rd0+32], r6;\n",
      one_thread, 16, {},
      variables + ".global .align 8 .u64 table[2] = {second, generic(second)};\n");
  EXPECT_EQ(run.complaint, "");
  EXPECT_TRUE(run.findings.empty());
  EXPECT_EQ(std::vector(run.out.begin(), run.out.begin() + 9),
            (std::vector<std::uint32_t>{42, 42, 42, 42, 1, 42, 42, 42, 1}));
}

// PTX ISA, "ldmatrix": on sm_75 all lanes have a valid address, also those that name no row.
TEST(Addresses, OfRowsThatNobodyLoads) {
  const auto id = [&](int matrices, const std::string& address, const std::string& target,
                      const std::string& hardware) {
    std::string text = test::kernel_text(
        "mov.u32 r2, tile;\nmad.lo.u32 r2, r0, 16, r2;\nst.shared.v4.u32 [r2], {r0, r0, r0, r0};\n"
        "bar.sync 0;\nsetp.ge.u32 p, r0, " +
            std::to_string(8 * matrices) + ";\n@p mov.u32 r2, " + address +
            ";\nldmatrix.sync.aligned.m8n8.x" + std::to_string(matrices) + ".shared.b16 " +
            (matrices == 1 ? "{r3}" : "{r3, r4}") + ", [r2];\nst.global.u32 [rd1], r3;",
        variables);
    text.replace(text.find("sm_90"), 5, target);
    const KernelRun run = test::run_text(text, one_warp, 32, {.hardware = hardware});
    EXPECT_EQ(run.complaint, "");
    return run.findings.empty() ? "none" : run.findings[0].id;
  };
  for (const int matrices : {1, 2})
    for (const std::string address : {"0x7ffffff0", "3", "0xffffffff", "1024"}) {
      const std::string wanted =
          address == "3" || address == "0xffffffff" ? "misaligned-access" : "memory-fault";
      EXPECT_EQ(id(matrices, address, "sm_75", ""), wanted) << address;
      EXPECT_EQ(id(matrices, address, "sm_80", "sm_75"), wanted) << address;
      EXPECT_EQ(id(matrices, address, "sm_80", ""), "none") << address;
      EXPECT_EQ(id(matrices, address, "sm_75", "sm_90"), "none") << address;
    }
}

// The assembler ignores .extern of a variable with a size: it is defined here, and zero.
TEST(ExternVariables, AreZeroWithoutADefinition) {
  const KernelRun run = run_body(
      "ld.global.u32 r2, [table];\nst.global.u32 [rd0], r2;\n"
      "ld.const.u32 r3, [few+4];\nst.global.u32 [rd0+4], r3;\n"
      "mov.u64 rd2, table;\nst.global.u32 [table], 5;\nld.global.u32 r4, [rd2];\n"
      "st.global.u32 [rd0+8], r4;\nld.global.u32 r5, [known];\nst.global.u32 [rd0+12], r5;\n",
      one_thread, 16, {},
      ".extern .global .u32 table;\n.extern .const .u32 few[2];\n.extern .global .u32 known;\n"
      ".extern .global .u32 known;\n.visible .global .u32 known = 9;\n");
  EXPECT_EQ(run.complaint, "");
  EXPECT_TRUE(run.findings.empty());
  EXPECT_EQ(std::vector(run.out.begin(), run.out.begin() + 4),
            (std::vector<std::uint32_t>{0, 0, 5, 9}));
}

TEST(ExternVariables, AnArrayWithoutASizeIsUnresolved) {
  EXPECT_NE(fault("ld.global.u32 r2, [table];", ".extern .global .u32 table[];\n")
                .find("table is an .extern array without a size"),
            std::string::npos);
}

// With a size it is static: an H200 gives it room without dynamic shared memory.
TEST(ExternVariables, OnlySharedArraysWithoutASizeAreDynamic) {
  const std::string body =
      "st.shared.u32 [mine], 6;\nld.shared.u32 r2, [mine];\nst.global.u32 [rd0], r2;\n";
  for (const std::string size : {"", "[4]"}) {
    const KernelRun run =
        run_body(body, one_thread, 16, {}, ".extern .shared .u32 mine" + size + ";\n");
    EXPECT_TRUE(run.findings.empty());
    EXPECT_EQ(run.out[0], 6u);
  }
  EXPECT_NE(fault(body, ".extern .shared .u32 mine[];\n")
                .find("the CTA has 0 bytes of shared memory, none of it dynamic, as mine is: the "
                      "launch has to state its bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan
