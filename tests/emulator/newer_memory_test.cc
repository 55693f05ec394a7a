// SPDX-License-Identifier: Apache-2.0
// What PTX 9.1 to 9.5 do to memory and mbarriers, beside loops that do the same byte by byte.
#include <bit>

#include "tests/emulator/kernel.h"

namespace tartan {
namespace {

using test::KernelRun;
using test::run_text;

std::string text_of(const std::string& body, const std::string& declarations = {}) {
  std::string text = test::kernel_text(body, declarations);
  const std::string was = ".version 8.6\n.target sm_90\n";
  EXPECT_TRUE(text.starts_with(was));
  return text.replace(0, was.size(), ".version 9.5\n.target sm_107a\n");
}

KernelRun run(const std::string& body, const std::string& declarations = {},
              const Launch& launch = {.grid = {1}, .block = {32}},
              const DeviceOptions& options = {}) {
  return run_text(text_of(body, declarations), launch, 1024, options);
}

DeviceOptions all_checks() {
  DeviceOptions options;
  options.checks = Checks::all;
  return options;
}

// Bytes 1, 2, 3, ... in global memory.
std::string bytes_table(const std::string& name, int count) {
  std::string out = ".global .align 16 .b8 " + name + "[" + std::to_string(count) + "] = {";
  for (int i = 0; i < count; ++i) out += (i ? "," : "") + std::to_string(i + 1);
  return out + "};\n";
}

std::uint8_t byte_of(const KernelRun& run, std::size_t i) {
  return static_cast<std::uint8_t>(run.out[i / 4] >> i % 4 * 8);
}

// One thread copies; then all wait and bring `words` words of `to` out.
std::string copied(const std::string& copy, int bytes, const std::string& before = {}) {
  return "mov.u32 r1, bar;\nsetp.eq.u32 p, r0, 0;\n"
         "@p mbarrier.init.shared::cta.b64 [r1], 1;\n@p fence.proxy.async;\nbar.sync 0;\n" +
         before +
         "bar.sync 0;\nmov.u64 rd2, from;\nmov.u32 r2, to;\n@!p bra waiting;\n"
         "fence.proxy.async;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [r1], " +
         std::to_string(bytes) + ";\n" + copy + "\n" + test::wait("r1", "waiting") +
         "shl.b32 r3, r0, 2;\nadd.u32 r3, r3, r2;\nld.shared.b32 r4, [r3];\n"
         "setp.lt.u32 q, r0, " +
         std::to_string(bytes / 4) + ";\n@q st.global.b32 [rd1], r4;";
}

const std::string shared = ".shared .align 16 .b8 to[128];\n.shared .align 8 .b64 bar;\n";

TEST(NewerCopies, OrderedCopiesBringTheBytes) {
  for (const char* words : {".weak", ".relaxed.cta", ".relaxed.gpu", ".relaxed.sys"}) {
    const std::string suffix = words[1] == 'r' ? ".b128" : "";
    const KernelRun got =
        run(copied("cp.async.bulk" + std::string(words) +
                       ".shared::cta.global.mbarrier::complete_tx::bytes" + suffix +
                       " [r2], [rd2], 64, [r1];",
                   64),
            shared + bytes_table("from", 64), {.grid = {1}, .block = {32}}, all_checks());
    ASSERT_TRUE(got.launched) << words << got.complaint;
    EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(byte_of(got, i), i + 1) << words;
  }
}

// What may be missing is left out; the mbarrier hears of all bytes.
TEST(NewerCopies, BytesOutOfBoundsAreIgnored) {
  const std::string body = copied(
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [r2], [rd2], 64, "
      "3, 9, [r1];",
      64,
      "mov.u32 r2, to;\nshl.b32 r3, r0, 2;\nadd.u32 r3, r3, r2;\nst.shared.b32 [r3], "
      "0xEEEEEEEE;\n");
  const KernelRun got = run(body, shared + bytes_table("from", 55));  // 64 do not exist
  ASSERT_TRUE(got.launched) << got.complaint;
  EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
  for (std::size_t i = 3; i < 55; ++i) EXPECT_EQ(byte_of(got, i), i + 1);
  // Without the words it is a fault.
  std::string plain = body;
  plain.replace(plain.find(".ignore_oob"), 11, "");
  plain.replace(plain.find("64, 3, 9,"), 9, "64,");
  const KernelRun fault = run(plain, shared + bytes_table("from", 32));
  ASSERT_EQ(fault.findings.size(), 1u);
  EXPECT_EQ(fault.findings[0].id, "memory-fault");
}

TEST(NewerCopies, IgnoredBytesAreUndefinedIfNobodyWroteThem) {
  const std::string body = copied(
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [r2], [rd2], 64, "
      "0, 4, [r1];",
      64);
  const KernelRun got =
      run(body, shared + bytes_table("from", 64), {.grid = {1}, .block = {32}}, all_checks());
  ASSERT_EQ(got.findings.size(), 1u);
  EXPECT_EQ(got.findings[0].id, "uninitialized-read");
}

TEST(NewerCopies, MoreThanFifteenIgnoredBytesAreAFinding) {
  const KernelRun got =
      run(copied("mov.u32 r5, 16;\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes."
                 "ignore_oob [r2], [rd2], 64, r5, 0, [r1];",
                 64),
          shared + bytes_table("from", 64));
  ASSERT_EQ(got.findings.size(), 1u);
  EXPECT_EQ(got.findings[0].id, "misaligned-access");
}

// Each CTA of the mask gets the bytes at the same place, and its mbarrier hears of them.
TEST(NewerCopies, WideMasksReachEachBlock) {
  for (const char* word : {"multicast::cluster::16b", "multicast::cluster::32b"}) {
    const std::string mask = word[20] == '1' ? ".reg .b16 mask;\nmov.b16 mask, 0xD;\n"
                                             : ".reg .b32 mask;\nmov.b32 mask, 0xD;\n";
    const std::string body =
        mask +
        "mov.u32 r1, bar;\nmov.u32 r2, to;\nmov.u64 rd2, from;\nmov.u32 r5, %cluster_ctarank;\n"
        "setp.eq.u32 p, r0, 0;\n@p mbarrier.init.shared::cta.b64 [r1], 1;\n"
        "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [r1], 64;\n"
        "fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
        "setp.eq.and.u32 q, r5, 0, p;\n"
        "@q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes." +
        std::string(word) + " [r2], [rd2], 64, [r1], mask;\nsetp.eq.u32 q, r5, 1;\n@q bra skip;\n" +
        test::wait("r1", "waiting") +
        "skip:\nshl.b32 r3, r0, 2;\nadd.u32 r3, r3, r2;\nld.shared.b32 r4, [r3];\n"
        "setp.ge.u32 p, r0, 16;\n@p mov.u32 r4, 0;\n"
        "mad.lo.u32 r6, r5, 32, r0;\nmul.wide.u32 rd3, r6, 4;\nadd.u64 rd3, rd0, rd3;\n"
        "st.global.b32 [rd3], r4;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;";
    const KernelRun got = run(body, shared + bytes_table("from", 64),
                              {.grid = {4}, .block = {32}, .cluster = {4, 1, 1}});
    ASSERT_TRUE(got.launched) << got.complaint;
    EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
    for (const std::size_t rank : {0u, 2u, 3u})
      for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(byte_of(got, 128 * rank + i), i + 1) << word;
    EXPECT_EQ(got.out[32], 0u);
  }
}

TEST(NewerStores, SixteenBytesCompleteAsMany) {
  for (const char* words : {"", ".weak"}) {
    const std::string body =
        ".reg .b128 v;\n.reg .b64 lo, hi;\n"
        "mov.u32 r1, bar;\nmov.u32 r2, to;\nmov.u32 r5, %cluster_ctarank;\nsetp.eq.u32 p, r0, 0;\n"
        "@p mbarrier.init.shared::cta.b64 [r1], 1;\n"
        "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [r1], 128;\n"
        "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
        "setp.lt.u32 q, r0, 8;\nxor.b32 r6, r5, 1;\nshl.b32 r3, r0, 4;\nadd.u32 r3, r3, r2;\n"
        "mapa.shared::cluster.u32 r7, r3, r6;\nmapa.shared::cluster.u32 r8, r1, r6;\n"
        "mad.lo.u32 r9, r5, 1000, r0;\ncvt.u64.u32 lo, r9;\nadd.u64 hi, lo, 0x700000000;\n"
        "mov.b128 v, {lo, hi};\n@q st.async" +
        std::string(words) + ".shared::cluster.mbarrier::complete_tx::bytes.b128 [r7], v, [r8];\n" +
        test::wait("r1", "waiting") +
        "shl.b32 r3, r0, 2;\nadd.u32 r3, r3, r2;\nld.shared.b32 r4, [r3];\n"
        "mad.lo.u32 r6, r5, 32, r0;\nmul.wide.u32 rd3, r6, 4;\nadd.u64 rd3, rd0, rd3;\n"
        "st.global.b32 [rd3], r4;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;";
    const KernelRun got =
        run(body, shared, {.grid = {2}, .block = {32}, .cluster = {2, 1, 1}}, all_checks());
    ASSERT_TRUE(got.launched) << got.complaint;
    EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      for (std::uint32_t i = 0; i < 32; ++i) {
        const std::uint32_t low = (1 - rank) * 1000 + i / 4, part = i % 4;
        EXPECT_EQ(got.out[32 * rank + i], part == 1 ? 0 : part == 3 ? 7 : low) << i;
      }
  }
}

// ---- Atomics.

TEST(NewerAtomics, SumsOfSubnormalsAreKept) {
  const std::string cell =
      ".global .align 16 .b32 cells[4] = {1, 1, 1, 1};\n"
      ".shared .align 4 .b32 own;\n";
  const auto sum = [&](const std::string& instruction) {
    return run(
        "mov.u64 rd2, cells;\ncvta.global.u64 rd3, rd2;\nmov.f32 f0, 0f00000003;\n"
        "mov.f32 f1, f0;\nsetp.eq.u32 p, r0, 0;\n@p " +
            instruction + ";\nbar.sync 0;\nld.global.b32 r1, [rd2];\nst.global.b32 [rd1], r1;",
        cell);
  };
  // 1 + 3 units in the last place, or 0 where subnormal numbers are flushed.
  for (const char* text :
       {"red.global.add.noftz.f32 [rd2], f0", "atom.global.add.noftz.f32 f2, [rd2], f0",
        "atom.add.noftz.f32 f2, [rd3], f0", "red.global.add.noftz.v2.f32 [rd2], {f0, f1}"}) {
    const KernelRun got = sum(text);
    ASSERT_TRUE(got.launched) << text << got.complaint;
    EXPECT_EQ(got.out[0], 4u) << text;
  }
  EXPECT_EQ(sum("red.global.add.f32 [rd2], f0").out[0], 0u);
}

// ---- mbarriers.

TEST(NewerMbarriers, KnowTheirLayout) {
  const KernelRun got = run(
      "mov.u32 r1, bar;\nmov.u32 r2, other;\nsetp.eq.u32 p, r0, 0;\n"
      "@p mbarrier.init.layout::v1.shared::cta.b64 [r1], 511;\n"
      "@p mbarrier.init.layout::v0.shared::cta.b64 [r2], 0xFFFFF;\nbar.sync 0;\nmov.u32 r4, 0;\n"
      "mbarrier.check_layout.layout::v1.shared::cta.b64 q, [r1];\n@q or.b32 r4, r4, 1;\n"
      "mbarrier.check_layout.layout::v0.shared::cta.b64 q, [r1];\n@q or.b32 r4, r4, 2;\n"
      "mbarrier.check_layout.layout::v1.shared::cta.b64 q, [r2];\n@q or.b32 r4, r4, 4;\n"
      "mbarrier.check_layout.layout::v0.shared::cta.b64 q, [r2];\n@q or.b32 r4, r4, 8;\n"
      "mbarrier.arrive.shared::cta.b64 rd2, [r2];\n"
      "mbarrier.pending_count.layout::v0.b64 r5, rd2;\nshl.b32 r5, r5, 4;\nor.b32 r4, r4, r5;\n"
      "st.global.b32 [rd1], r4;",
      shared + ".shared .align 8 .b64 other;\n");
  ASSERT_TRUE(got.launched) << got.complaint;
  EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(got.out[lane], (0xFFFFF - lane) << 4 | 9) << lane;
}

TEST(NewerMbarriers, OfLayoutV1CountTo511) {
  const KernelRun got =
      run("mov.u32 r1, bar;\nmov.u32 r2, 512;\nsetp.eq.u32 p, r0, 0;\n"
          "@p mbarrier.init.layout::v1.shared::cta.b64 [r1], r2;",
          shared);
  ASSERT_EQ(got.findings.size(), 1u);
  EXPECT_EQ(got.findings[0].id, "trap");
}

// Both types of phase end with the last arrival; nothing was reported.
TEST(NewerMbarriers, WaitsSayThatNothingWasReported) {
  const std::string inits[] = {"layout::v0", "layout::v1"};
  const std::string waits[] = {
      "mbarrier.try_wait.parity.phase_type::primary.acquire.cta.shared::cta.b64 p|q, c, [r1], 0",
      "mbarrier.test_wait.parity.phase_type::primary.acquire.cta.shared::cta.b64 p|_, c, [r1], 0",
      "mbarrier.try_wait.parity.phase_type::primary.shared::cta.b64 p|q, [r1], 0, r5",
      "mbarrier.test_wait.phase_type::primary.relaxed.cluster.shared::cta.b64 p, [r1], rd2",
      "mbarrier.try_wait.parity.phase_type::conditional.shared::cta.b64 p, [r1], 0",
      "mbarrier.test_wait.parity.phase_type::conditional.acquire.cluster.b64 p, [rd3], 0"};
  for (const std::string& layout : inits)
    for (const std::string& wait : waits) {
      const KernelRun got = run(
          ".reg .b8 c;\nmov.u32 r1, bar;\ncvt.u64.u32 rd3, r1;\ncvta.shared.u64 rd3, rd3;\n"
          "mov.u32 r5, 1000;\nmov.u32 r6, 7;\ncvt.u8.u32 c, r6;\nsetp.eq.u32 q, 0, 1;\n"
          "setp.eq.u32 p, r0, 0;\n@p mbarrier.init." +
              layout +
              ".shared::cta.b64 [r1], 32;\nbar.sync 0;\nmbarrier.arrive.shared::cta.b64 rd2, "
              "[r1];\n"
              "mov.u32 r4, 0;\nagain:\nadd.u32 r4, r4, 1;\n" +
              wait +
              ";\n@!p bra again;\nmov.u32 r4, 1;\n@q add.u32 r4, r4, 2;\ncvt.u32.u8 r6, c;\n" +
              (wait.find(", c,") != wait.npos ? "shl.b32 r6, r6, 8;\nor.b32 r4, r4, r6;\n" : "") +
              "st.global.b32 [rd1], r4;",
          shared);
      ASSERT_TRUE(got.launched) << wait << got.complaint;
      EXPECT_TRUE(got.findings.empty()) << wait << got.findings[0].message;
      for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(got.out[lane], 1u) << wait;
    }
}

// An arrival at the mbarriers of blocks 0 and 2, by one thread.
TEST(NewerMbarriers, MulticastArrivesInEachBlockOfTheMask) {
  const KernelRun got = run(
      "mov.u32 r1, bar;\nmov.u32 r5, %cluster_ctarank;\nsetp.eq.u32 p, r0, 0;\nmov.u32 r6, 5;\n"
      "@p mbarrier.init.shared::cta.b64 [r1], 9;\nfence.mbarrier_init.release.cluster;\n"
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\nsetp.eq.and.u32 p, r5, 1, p;\n"
      "mapa.shared::cluster.u32 r7, r1, 0;\n"
      "@p mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [r7], 3, "
      "r6;\n"
      "@p mbarrier.expect_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [r7], 16, "
      "r6;\n"
      "@p mbarrier.complete_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [r7], "
      "16, 0x5;\n"
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\nsetp.eq.u32 p, r0, 0;\n"
      "@p mbarrier.arrive.shared::cta.b64 rd2, [r1];\n"
      "@p mbarrier.pending_count.b64 r4, rd2;\nmul.wide.u32 rd3, r5, 4;\nadd.u64 rd3, rd0, rd3;\n"
      "@p st.global.b32 [rd3], r4;",
      shared, {.grid = {4}, .block = {32}, .cluster = {4, 1, 1}});
  ASSERT_TRUE(got.launched) << got.complaint;
  EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
  const std::uint32_t wanted[] = {6, 9, 6, 9};
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(got.out[rank], wanted[rank]) << rank;
}

// ---- Loads, fences, hints.

TEST(NewerLoads, OfVolatileLocalMemoryAndOfReadOnlyMemory) {
  const KernelRun got =
      run(".local .align 4 .b32 own;\nmov.u64 rd2, from;\nadd.u64 rd3, rd2, rd1;\nsub.u64 rd3, "
          "rd3, rd0;\n"
          "prefetch.global.L1::32B.valid_addr [rd3];\nld.global.proxy::readonly.u32 r1, [rd3];\n"
          "st.volatile.local.u32 [own], r1;\nld.volatile.local.u32 r2, [own];\n"
          "st.global.b32 [rd1], r2;",
          bytes_table("from", 128), {.grid = {1}, .block = {32}}, all_checks());
  ASSERT_TRUE(got.launched) << got.complaint;
  EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(byte_of(got, i), i + 1);
}

// The manual's example: released by one thread through an alias, acquired by another.
TEST(NewerFences, OfAliasesOrderMemory) {
  const auto handed = [](const std::string& release, const std::string& acquire) {
    return run(
        "mov.u32 r1, %ctaid.x;\nsetp.eq.u32 p, r1, 0;\nmov.u64 rd2, flag;\n@!p bra second;\n"
        "st.global.u32 [rd0], 42;\n" +
            release +
            "st.relaxed.sys.global.u32 [rd2], 1;\nbra over;\nsecond:\n"
            "ld.relaxed.sys.global.u32 r2, [rd2];\nsetp.eq.u32 p, r2, 0;\n@p bra second;\n" +
            acquire + "ld.global.u32 r3, [rd0];\nst.global.u32 [rd0+4], r3;\nover:",
        ".global .u32 flag;\n", {.grid = {2}, .block = {1}}, all_checks());
  };
  const KernelRun got =
      handed("fence.proxy.alias.release.sys;\n", "fence.proxy.alias.acquire.sys;\n");
  ASSERT_TRUE(got.launched) << got.complaint;
  EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
  EXPECT_EQ(got.out[1], 42u);
  EXPECT_FALSE(handed("", "").findings.empty());
}

// ---- ldmatrix.

// Row r of matrix m has 16 numbers of four bits, the first in the low half of its first byte; lane
// 4 r + c / 4 gets number c as byte c mod 4 of register m.
TEST(NewerMatrices, FourBitsBecomeEight) {
  for (const int matrices : {1, 2, 4}) {
    std::string registers, stores;
    for (int m = 0; m < matrices; ++m) {
      registers += (m ? ", r" : "r") + std::to_string(8 + m);
      stores +=
          "st.global.b32 [rd1+" + std::to_string(128 * m) + "], r" + std::to_string(8 + m) + ";\n";
    }
    // Rows of 8 bytes, from the last one back.
    const KernelRun got = run(
        "mov.u32 r1, rows;\nmul.lo.u32 r2, r0, 8;\nsub.u32 r2, 248, r2;\nadd.u32 r2, r2, r1;\n"
        "mul.lo.u32 r3, r0, 0x9E3779B1;\nmul.lo.u32 r4, r3, 0x85EBCA6B;\nst.shared.v2.b32 [r2], "
        "{r3, r4};\nbar.sync 0;\n"
        "ldmatrix.sync.aligned.m8n16.x" +
            std::to_string(matrices) + ".shared::cta.s8.s4 {" + registers + "}, [r2];\n" + stores,
        ".shared .align 8 .b8 rows[256];\n", {.grid = {1}, .block = {32}}, all_checks());
    ASSERT_TRUE(got.launched) << got.complaint;
    EXPECT_TRUE(got.findings.empty()) << got.findings[0].message;
    for (std::uint32_t m = 0; m < static_cast<std::uint32_t>(matrices); ++m)
      for (std::uint32_t row = 0; row < 8; ++row)
        for (std::uint32_t column = 0; column < 16; ++column) {
          const std::uint32_t low = (8 * m + row) * 0x9E3779B1u, high = low * 0x85EBCA6Bu;
          const std::uint32_t nibble = (column < 8 ? low : high) >> column % 8 * 4 & 15;
          const std::uint32_t lane = 4 * row + column / 4;
          EXPECT_EQ(byte_of(got, 4 * (32 * m + lane) + column % 4),
                    nibble < 8 ? nibble : nibble | 0xF0)
              << m << " " << row << " " << column;
        }
  }
}

}  // namespace
}  // namespace tartan
