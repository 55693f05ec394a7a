// SPDX-License-Identifier: Apache-2.0
// Texts of tests/data/cases and tests/data/hostile that the assembler or the driver refuses, or
// warns of, with what `check` says; and their neighbours. ptxas 13.0 gave the verdicts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "tartan/verify/verify.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

std::string findings(const Diags& diags) {
  std::string out;
  for (const Diag& diag : diags)
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", diag.id, diag.place.line);
  return out;
}

std::string check(std::string text) {
  return findings(verify::check(std::make_shared<const Source>("k", std::move(text))));
}

// The rules and lines of a file's findings.
std::string file(const std::string& path) {
  return check(test::read_file(std::string(TEST_DATA) + "/" + path));
}

// A kernel with some registers, and memory for addresses.
std::string kernel(const std::string& body, const std::string& target = "sm_90a",
                   const std::string& version = "8.8", const std::string& head = "") {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n" + head +
         ".global .align 16 .b8 g[64]; .const .align 16 .b8 c[64];\n"
         ".visible .entry k() { .reg .pred p, q; .reg .b8 b; .reg .b16 h<9>; .reg .b32 r<17>; "
         ".reg .b64 d<9>; .reg .f32 f<9>; .reg .f64 e<9>; .shared .align 16 .b8 s[64];\n" +
         body + "\nret; }\n";
}

bool takes(const std::string& body, const std::string& target = "sm_90a",
           const std::string& version = "8.8") {
  return verify::check(std::make_shared<const Source>("k", kernel(body, target, version))).ok();
}

TEST(IllegalCases, DebugSections) {
  const std::string labels = "cases/03-labels-in-section-old-version/";
  EXPECT_EQ(file(labels + "k.ptx"), "version-support:18");
  EXPECT_EQ(file(labels + "right.ptx"), "");
  const std::string differences = "cases/04-label-difference-in-debug-loc/";
  EXPECT_EQ(file(differences + "k.ptx"), "");
  EXPECT_EQ(file(differences + "right.ptx"), "");
  EXPECT_EQ(file(differences + "n1_old.ptx"), "version-support:19");
  EXPECT_EQ(file(differences + "n2_neg.ptx"), "version-support:18");
  EXPECT_EQ(file(differences + "n3_undef.ptx"), "");
}

TEST(IllegalCases, StaticSharedMemory) {
  const std::string folder = "cases/22-too-much-static-shared/";
  EXPECT_EQ(file(folder + "k.ptx"), "static-shared:5");
  EXPECT_EQ(file(folder + "right.ptx"), "");
  EXPECT_EQ(file(folder + "n1.ptx"), "static-shared:6");
  EXPECT_EQ(file(folder + "n2.ptx"), "static-shared:5");
  EXPECT_EQ(file(folder + "n3_local.ptx"), "");
  EXPECT_EQ(file(folder + "n4_const.ptx"), "declaration:4");
}

TEST(IllegalCases, Bytes) {
  const std::string folder = "cases/23-bytes-that-are-not-ascii/";
  EXPECT_EQ(file(folder + "k_trailing_nul.ptx"), "encoding:8");
  EXPECT_EQ(file(folder + "n1_bom.ptx"), "encoding:1");
  EXPECT_EQ(file(folder + "n2_utf8_comment.ptx"), "encoding:1");
  EXPECT_EQ(file(folder + "n3_utf16.ptx"), "encoding:1");
  EXPECT_EQ(file(folder + "n4_crlf.ptx"), "");
  EXPECT_EQ(file(folder + "n5_nul_inside.ptx"), "encoding:6");
  EXPECT_EQ(file(folder + "n6_nbsp.ptx"), "encoding:6");
  EXPECT_EQ(file(folder + "n8_empty.ptx"), "missing-version:1");
  EXPECT_EQ(file(folder + "n9_cubin.ptx"), "encoding:1");
  EXPECT_EQ(file(folder + "n10_nul_then_text.ptx"), "encoding:8");
}

TEST(IllegalCases, MulticastOnPlainTargets) {
  EXPECT_EQ(file("cases/39-multicast-advisory/k.ptx"), "slow-instruction:11");
  const std::string copy =
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], "
      "[d1], 16, [s], h1;";
  EXPECT_EQ(check(kernel(copy, "sm_90a")), "");
  EXPECT_EQ(check(kernel(copy, "sm_100f")), "");
  EXPECT_EQ(check(kernel(copy, "sm_100")), "slow-instruction:6");
  EXPECT_EQ(check(kernel(copy, "sm_120a")), "slow-instruction:6");
}

// A wait by inline assembly has labels of its own, the same in each block: none leads back.
TEST(IllegalCases, LabelsOfBlocks) {
  const std::string wait =
      "{ .reg .pred w; WAIT: mbarrier.try_wait.parity.shared::cta.b64 w, [s], r1; @w bra DONE; "
      "bra WAIT; DONE: }\n";
  const std::string load =
      "tcgen05.ld.sync.aligned.32x32b.x2.b32 {r2, r3}, [r4];\ntcgen05.wait::ld.sync.aligned;\n";
  EXPECT_EQ(check(kernel(wait + load + wait, "sm_100a")), "");
  EXPECT_EQ(check(kernel("BACK:\n" + wait + load + wait + "@p bra BACK;\n", "sm_100a")),
            "slow-instruction:8");
  const std::string number = "add.f32 f1, f2, f2;\n", bits = "mov.b32 f1, r2;\n",
                    store = "st.shared.b16 [s], f1;\n";
  EXPECT_EQ(check(kernel(number + wait + bits + wait + store)), "");
  EXPECT_EQ(check(kernel(bits + wait + number + wait + store)), "narrow-store:10");
}

TEST(IllegalCases, RandomPrograms) {
  EXPECT_EQ(file("hostile/10/cta.ptx"), "unknown-form:4");
  EXPECT_EQ(file("hostile/10/discard.ptx"), "operand-kind:4");
  EXPECT_EQ(file("hostile/10/hash.ptx"), "syntax:4");
  EXPECT_EQ(file("hostile/10/shared.ptx"), "shared-memory:4");
  EXPECT_EQ(file("hostile/10/v8.ptx"), "unknown-form:4");
}

TEST(IllegalForms, TheWordCtaFollowsTheBarrier) {
  for (const char* const good : {"barrier.cta.sync 0;", "bar.cta.red.popc.u32 r1, 0, p;",
                                 "barrier.cta.arrive.aligned 0, 32;"})
    EXPECT_TRUE(takes(good)) << good;
  for (const char* const bad : {"bar.sync.cta 0;", "bar.red.popc.cta.u32 r1, 0, p;",
                                "barrier.red.or.cta.pred p, 0, q;", "barrier.aligned.cta.sync 0;"})
    EXPECT_FALSE(takes(bad)) << bad;
}

TEST(IllegalForms, DiscardedResults) {
  for (const char* const good :
       {"atom.global.add.u32 _, [d1], 1;", "atom.global.add.noftz.f16 _, [d1], h1;",
        "atom.global.add.noftz.v2.f16 _, [d1], {h1, h2};", "atom.global.exch.b64 _, [d1], d2;"})
    EXPECT_TRUE(takes(good)) << good;
  for (const char* const bad :
       {"cvt.f64.f16 _, h1;", "cvt.u32.u16 _, h1;", "atom.global.add.noftz.bf16x2 _, [d1], r1;",
        "atom.add.noftz.bf16 _, [d1], h1;", "atom.global.min.noftz.v2.bf16x2 _, [d1], {r1, r2};"})
    EXPECT_FALSE(takes(bad)) << bad;
}

TEST(IllegalForms, VectorsOfLoads) {
  const std::string eight = "{h1, h2, h3, h4, h5, h6, h7, h8}";
  EXPECT_TRUE(takes("st.shared.v8.b16 [s], " + eight + ";"));
  EXPECT_FALSE(takes("ld.shared.v8.s16 " + eight + ", [s];"));
  EXPECT_FALSE(takes("ld.global.v8.b8 " + eight + ", [d1];", "sm_100a"));
  EXPECT_FALSE(takes("ldu.global.v8.b16 " + eight + ", [d1];"));
  EXPECT_TRUE(takes("ld.global.v8.b32 {r1, r2, r3, r4, r5, r6, r7, r8}, [d1];", "sm_100a"));
  EXPECT_FALSE(takes("ld.global.v8.b32 {r1, r2, r3, r4, r5, r6, r7, r8}, [d1];", "sm_90a"));
}

TEST(IllegalForms, ConditionsOfSet) {
  EXPECT_TRUE(takes("set.ne.and.f16.f16 h1, h2, h3, 1048576;"));
  EXPECT_TRUE(takes("set.ne.and.bf16.f16 h1, h2, h3, !p;"));
  EXPECT_FALSE(takes("set.ne.and.bf16.f16 h1, h2, h3, 1048576;"));
  EXPECT_FALSE(takes("set.ne.and.u32.bf16 r1, h2, h3, 1;"));
  EXPECT_FALSE(takes("set.eq.and.bf16.s32 h1, r2, r3, 1;"));
}

TEST(IllegalForms, VectorsOfOne) {
  const std::string of = "multimem.red.relaxed.gpu.global.add";
  EXPECT_TRUE(takes(of + ".u32 [d1], r1;"));
  EXPECT_FALSE(takes(of + ".u32 [d1], {r1};"));
  EXPECT_FALSE(takes(of + ".f32 [d1], {f1};"));
  EXPECT_TRUE(takes("multimem.st.relaxed.gpu.global.f32 [d1], {f1};"));
  EXPECT_FALSE(takes("multimem.st.relaxed.gpu.global.b32 [d1], {r1};"));
  EXPECT_TRUE(takes("multimem.ld_reduce.relaxed.gpu.global.add.f64 {e1}, [d1];"));
  EXPECT_FALSE(takes("multimem.ld_reduce.relaxed.gpu.global.add.s32 {r1}, [d1];"));
}

TEST(IllegalForms, OffsetsOfImages) {
  EXPECT_TRUE(takes("suq.height.b32 r1, [d1];"));
  EXPECT_FALSE(takes("suq.height.b32 r1, [d1+0];"));
  EXPECT_FALSE(takes("txq.width.b32 r1, [d1 + 0];"));
  EXPECT_FALSE(takes("suld.b.1d.b32.trap r1, [d1+0, {r2}];"));
}

TEST(IllegalForms, FunctionsAsNumbers) {
  const auto with = [](const std::string& body) {
    return verify::check(std::make_shared<const Source>(
                             "k", kernel(body, "sm_90a", "8.8", ".func fn() { ret; } ")))
        .ok();
  };
  EXPECT_TRUE(with("add.u64 d1, d2, fn;"));
  EXPECT_FALSE(with("div.u64 d1, d2, fn;"));
  EXPECT_FALSE(with("rem.s64 d1, fn, d2;"));
  EXPECT_FALSE(with("nanosleep.u32 fn;"));
}

TEST(IllegalAddresses, Have64Bits) {
  for (const char* const target : {"sm_75", "sm_80", "sm_90"})
    for (const char* const size : {".address_size 64", ""}) {
      const auto with = [&](const std::string& body) {
        return check(
            fmt::format(".version 8.0\n.target {}\n{}\n.global .u32 g; .const .u32 c; "
                        ".visible .entry k() {{ .reg .b32 a, r; .reg .b64 d; {} ret; }}",
                        target, size, body));
      };
      for (const char* const bad :
           {"ld.global.u32 r, [a];", "ld.u32 r, [a];", "ld.global.nc.u32 r, [a];",
            "st.global.u32 [a], r;", "mov.u32 r, g;", "atom.add.u32 r, [a], 1;",
            "prefetchu.L1 [a];"})
        EXPECT_NE(with(bad), "") << target << size << bad;
      for (const char* const good :
           {"ld.global.u32 r, [d];", "ld.const.u32 r, [a];", "ld.shared.u32 r, [a];",
            "ld.local.u32 r, [a];", "mov.u32 r, c;", "ld.global.u32 r, [g];"})
        EXPECT_EQ(with(good), "") << target << size << good;
    }
  EXPECT_EQ(check(".version 6.4\n.target sm_75\n.address_size 32\n.entry k() { ret; }"),
            "target-support:2");
}

TEST(IllegalExternals, AreResolvedInTheModule) {
  const auto with = [](const std::string& head, const std::string& body = "") {
    return check(".version 8.0 .target sm_80 .address_size 64\n" + head +
                 "\n.visible .entry k() { .reg .b32 r; " + body + " ret; }\n");
  };
  EXPECT_EQ(with(".extern .global .u32 t[];"), "unresolved-symbol:2");
  EXPECT_EQ(with(".extern .const .u32 t[];"), "unresolved-symbol:2");
  EXPECT_EQ(with(".extern .shared .u32 t[];"), "");
  EXPECT_EQ(with(".extern .global .u32 t[4];"), "undefined-extern:2");
  EXPECT_EQ(with(".extern .shared .u32 t;"), "undefined-extern:2");
  EXPECT_EQ(with(".extern .global .u32 t[];\n.visible .global .u32 t[4];"), "undefined-extern:2");
  EXPECT_EQ(with(".visible .global .u32 t;\n.extern .global .u32 t;"), "");
  EXPECT_EQ(with(".extern .func f ();"), "");
  EXPECT_EQ(with(".extern .func f ();", "call f;"), "undefined-extern:3");
  EXPECT_EQ(with(".extern .func f ();", "mov.u32 r, 1; .reg .b32 f; mov.u32 r, f;"), "");
  EXPECT_EQ(with(".extern .func free ();", "call free;"), "");
}

TEST(IllegalSharedMemory, LimitsOfTargets) {
  const auto with = [](const std::string& target, int bytes) {
    return check(
        fmt::format(".version 9.0\n.target {}\n.address_size 64\n.visible .entry k() {{\n"
                    ".shared .b8 s[{}];\nret; }}\n",
                    target, bytes));
  };
  for (const char* const target : {"sm_90a", "sm_100a", "sm_103a", "sm_110a"}) {
    EXPECT_EQ(with(target, 232448), "") << target;
    EXPECT_EQ(with(target, 232449), "shared-memory:4") << target;
  }
  for (const char* const target : {"sm_120a", "sm_121a"}) {
    EXPECT_EQ(with(target, 101376), "") << target;
    EXPECT_EQ(with(target, 101377), "shared-memory:4") << target;
  }
  for (const char* const target : {"sm_80", "sm_90", "sm_100", "sm_100f", "sm_120f"}) {
    EXPECT_EQ(with(target, 49152), "") << target;
    EXPECT_EQ(with(target, 49153), "static-shared:4") << target;
  }
  EXPECT_EQ(with("sm_80", 166913), "shared-memory:4");
}

TEST(IllegalTensorMemory, WhatTargetsLack) {
  const std::string reduce = "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {r1, r2}, r3, [r4];";
  EXPECT_TRUE(takes(reduce, "sm_101a"));
  EXPECT_TRUE(takes(reduce, "sm_101f"));
  EXPECT_TRUE(takes(reduce, "sm_103a"));
  EXPECT_FALSE(takes(reduce, "sm_100a"));
  EXPECT_FALSE(takes(reduce, "sm_100f"));
  const std::string scaled = "tcgen05.mma.cta_group::1.kind::f16 [r1], d1, d2, r2, p, 3;";
  EXPECT_TRUE(takes(scaled, "sm_100a"));
  EXPECT_TRUE(takes(scaled, "sm_103f"));
  EXPECT_FALSE(takes(scaled, "sm_101a"));
  EXPECT_FALSE(takes("tcgen05.mma.cta_group::1.kind::i8 [r1], d1, d2, r2, p, 3;", "sm_100a"));
  EXPECT_TRUE(takes("tcgen05.mma.cta_group::1.kind::i8 [r1], d1, d2, r2, p;", "sm_100a"));
  const std::string sparse =
      "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale [r1], d1, d2, [r2], r3, [r4], [r5], p;";
  EXPECT_TRUE(takes(sparse, "sm_103a"));
  EXPECT_FALSE(takes(sparse, "sm_103f"));
  EXPECT_FALSE(takes(sparse, "sm_100f"));
  EXPECT_TRUE(takes("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [r1];", "sm_100a"));
  EXPECT_FALSE(takes("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [h1];", "sm_100a"));
  for (const auto& [lanes, good] : {std::pair{"{r1, r2, r3, 4}", true},
                                    {"{f1, f1, f2, f2}", true},
                                    {"{1, 2, 3, 4}", false},
                                    {"{r1, r2, r3}", false}})
    EXPECT_EQ(
        takes(fmt::format("tcgen05.mma.cta_group::1.kind::f16 [r1], d1, d2, r2, {}, p;", lanes),
              "sm_100a"),
        good)
        << lanes;
  EXPECT_FALSE(takes("cvt.rn.satfinite.e2m1x2.f16x2 b, r1;", "sm_100a", "9.0"));
  EXPECT_TRUE(takes("cvt.rn.satfinite.e2m1x2.f32 b, f1, f2;", "sm_100a", "9.0"));
}

}  // namespace
}  // namespace tartan
