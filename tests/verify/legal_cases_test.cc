// SPDX-License-Identifier: Apache-2.0
// Text that NVIDIA's assembler takes though few write it: targets before sm_50, prototypes without
// a semicolon, elements of arrays, vector registers and sums as operands. Each verdict is ptxas's
// (CUDA 13.0), the neighbours that it refuses included; where it dies, we refuse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"
#include "tests/paths.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

Diags check(const std::string& text) {
  return verify::check(std::make_shared<const Source>("k.ptx", text));
}

// The findings of a level, one "id: message" a line.
std::string findings(const std::string& text, Level level = Level::Error) {
  std::string out;
  for (const Diag& diag : check(text))
    if (diag.level == level)
      out += fmt::format("{}{}: {}", out.empty() ? "" : "\n", diag.id, diag.message);
  return out;
}

std::string headed(const std::string& target, const std::string& version = "9.0") {
  return fmt::format(".version {}\n.target {}\n{}", version, target,
                     *Version::parse(version) < Version{2, 3} ? "" : ".address_size 64\n");
}

// ---- Targets.

TEST(LegalTargets, OlderOnesAreJudgedAsTheOldest) {
  const std::string kernel = ".visible .entry k() { ret; }\n";
  for (const char* sm : {"10", "11", "12", "13", "20", "21", "30", "32", "35", "37"})
    for (const char* prefix : {"sm_", "compute_"}) {
      const std::string name = std::string(prefix) + sm, text = headed(name) + kernel;
      EXPECT_EQ(findings(text), "") << name;
      EXPECT_EQ(findings(text, Level::Note),
                fmt::format("old-target: target {} is older than this release of Tartan supports: "
                            "the module is judged as sm_50",
                            name));
    }
  EXPECT_EQ(findings(headed("sm_20", "1.5") + kernel),
            "target-version: target sm_20 requires PTX 2.0, the module states 1.5");
  EXPECT_EQ(findings(headed("sm_13", "1.4") + ".entry k { exit; }"), "");
  EXPECT_EQ(findings(headed("sm_37, texmode_unified", "4.1") + kernel), "");
}

TEST(LegalTargets, VirtualOnesAreThoseThatTheyName) {
  for (const char* name : {"compute_50", "compute_80", "compute_90a", "compute_100f"})
    EXPECT_EQ(findings(headed(name) + ".visible .entry k() { ret; }"), "") << name;
  const std::string doubles =
      ".entry k() { .reg .b64 a; .reg .f64 d; red.global.add.f64 [a], d; ret; }";
  EXPECT_EQ(findings(headed("compute_60") + doubles), "");
  EXPECT_EQ(findings(headed("sm_50, compute_60") + doubles), "") << "the last one counts";
  EXPECT_NE(findings(headed("compute_60, sm_50") + doubles), "");
}

TEST(LegalTargets, UnknownOnesAreNamedOnce) {
  const auto said = [](const std::string& target) {
    return findings(headed(target) + ".visible .entry k() { ret; }");
  };
  EXPECT_EQ(said("sm_49"), "unknown-target: unknown target sm_49; the nearest is sm_50");
  EXPECT_EQ(said("compute_36"),
            "unknown-target: unknown target compute_36: this release of Tartan supports sm_50 to "
            "sm_121f");
  EXPECT_EQ(said("sm_94a"),
            "unknown-target: unknown target sm_94a: no GPU that this release of Tartan supports "
            "has this number");
  EXPECT_EQ(said("compute_80a"),
            "unknown-target: unknown target compute_80a; the nearest is sm_80");
  for (const char* junk : {"sm_8.0", "rch sm_70"})
    EXPECT_EQ(said(junk).find('\n'), std::string::npos) << said(junk);
}

TEST(LegalTargets, DoublesAreMappedBeforeSm13) {
  const auto said = [](const std::string& target) {
    return findings(headed(target) + ".visible .entry k() { ret; }");
  };
  EXPECT_EQ(said("sm_12, map_f64_to_f32"), "");
  EXPECT_NE(said("sm_13, map_f64_to_f32"), "");
  EXPECT_NE(said("sm_80, map_f64_to_f32, sm_12"), "");
}

// ---- Prototypes.

TEST(LegalPrototypes, EndWithoutASemicolonInFrontOfAnItem) {
  const std::string prototype = ".func twice(.param .u32 x)\n",
                    rest =
                        ".func twice(.param .u32 x) { ret; }\n"
                        ".visible .entry k() { .reg .u32 r; call twice, (r); ret; }\n";
  for (const char* next :
       {"", ".visible .func other() { ret; }", ".weak .func other() { ret; }",
        ".extern .func other();", ".entry other() { ret; }", ".global .u32 g;", ".const .u32 g;",
        ".shared .u32 g;", ".extern .shared .u32 g[];", ".common .global .u32 g;",
        ".file 1 \"x.c\"", ".section .debug_str { .b8 0 }", ".pragma \"nounroll\";", "// text"})
    EXPECT_EQ(findings(headed("sm_80") + prototype + next + "\n" + rest), "") << next;
  EXPECT_EQ(findings(headed("sm_80") + rest + ".extern .func last()"), "");
  for (const char* next : {".maxntid 3", "foo", "}", ".version 8.0", ".loc 1 1 1"})
    EXPECT_NE(findings(headed("sm_80") + prototype + next + "\n" + rest), "") << next;
  EXPECT_NE(findings(headed("sm_80") + ".entry e(.param .u32 x)\n.entry e(.param .u32 x) { ret; }"),
            "");
}

// ---- Operands.

const char* const declarations =
    ".global .u32 g[8]; .const .u32 c[8]; .global .u32 scalar; .extern .shared .u32 dynamic[];\n"
    ".visible .entry k(.param .u64 out, .param .u32 given[4])\n{\n"
    ".shared .u32 t[64]; .shared .b64 tq[8]; .shared .u32 m[4][8]; .reg .b32 r<9>; .reg .u32 u;\n"
    ".reg .s32 si; .reg .u16 uh; .reg .s16 sh; .reg .b64 d, e; .reg .f32 f; .reg .f64 fd;\n"
    ".reg .pred p; .reg .b8 b8; .reg .v2 .u32 v, w; .reg .v2 .s32 s2; .reg .v4 .f32 f4, g4;\n"
    ".reg .v2 .b16 h2; .reg .v4 .b16 h4; .reg .v2 .b64 l; .reg .v4 .b32 q; .reg .v2 .f32 f2;\n"
    ".reg .v2 .f64 d2; .reg .v4 .b8 b4; .reg .b128 wide;\n";

// Whether the assembler takes each statement: lines that begin with ! are refused.
void expect_verdicts(const std::string& statements, const std::string& target = "sm_90") {
  std::istringstream lines(statements);
  for (std::string line; std::getline(lines, line);) {
    const bool refused = line.starts_with("!");
    const std::string statement = refused ? line.substr(1) : line;
    const std::string text = headed(target) + declarations + statement + ";\nret;\n}\n",
                      found = findings(text);
    EXPECT_EQ(refused, !found.empty()) << statement << "\n" << found;
    if (refused) continue;
    Diags diags;
    const auto tree = ptx::parse(std::make_shared<const Source>("k.ptx", text), diags);
    const std::string printed = ptx::print(tree);
    EXPECT_EQ(findings(printed), "") << printed;
    EXPECT_EQ(ptx::print(ptx::parse(std::make_shared<const Source>("k.ptx", printed), diags)),
              printed);
  }
}

TEST(LegalOperands, ElementsOfArrays) {
  expect_verdicts(R"(ld.shared.u32 r1, t[4]
ld.shared.u32 r1, t[2+1]
ld.shared.u32 r1, t[-1]
ld.shared.u32 r1, t [r2]
ld.shared.u32 r1, t[uh]
ld.shared.u32 r1, t[b8]
ld.shared.u32 r1, t[d]
ld.shared.u32 r1, t[r2+4]
ld.shared.u32 r1, t[r2+-1]
ld.shared.u32 r1, t[WARP_SZ]
ld.shared.u32 r1, m[r2]
ld.shared.v4.u32 {r1, r2, r3, r4}, t[4]
ld.shared.u32 r1, dynamic[r2]
ld.global.nc.u32 r1, g[1]
ld.const.u32 r1, c[r2]
ld.param.u32 r1, given[r2]
ldu.global.u32 r1, g[1]
ld.u32 r1, t[r2]
st.shared.u32 t[r1], r1
st.global.u32 g[1], 5
mov.u32 r1, t[r2]
mov.u64 d, g[-1]
mov.u16 uh, t[1]
cvta.global.u64 d, g[r1]
!ld.shared.u32 r1, t[1.0]
!ld.shared.u32 r1, t[f]
!ld.shared.u32 r1, t[p]
!ld.shared.u32 r1, t[v.x]
!ld.shared.u32 r1, t[v]
!ld.shared.u32 r1, t[4+r2]
!ld.shared.u32 r1, t[%tid.x]
!ld.shared.u32 r1, t[r2-1]
!ld.shared.u32 r1, t[4]+4
!ld.shared.u32 r1, t+4[4]
!ld.shared.u32 r1, [t[4]]
!ld.shared.u32 r1, m[1][2]
!ld.shared.u32 r1, r2[1]
!ld.global.u32 r1, scalar[0]
!ld.param.u64 d, out[0]
!ld.shared.u32 r1, g[1]
!st.const.u32 c[1], r2
!st.shared.u32 [t], t[1]
!atom.shared.add.u32 r1, t[1], 1
!red.global.add.u32 g[1], 1
!prefetch.global.L1 g[1]
!mbarrier.init.shared.b64 tq[1], 1
!add.u32 r1, t[1], 4
!cvta.to.global.u64 d, g[1]
!isspacep.global p, g[1]
!bra g[1])");
}

TEST(LegalOperands, AddressesInGlobalMemoryHave64Bits) {
  const auto legal = [](const std::string& operands) {
    return findings(
               headed("sm_90") +
               ".global .b32 g[4];\n.shared .b32 s[4];\n.entry k() { .reg .b32 r; .reg .b64 d; "
               "mov" +
               operands + "; }")
        .empty();
  };
  for (const char* each : {".b64 d, g", ".u64 d, g[1]", ".b32 r, s", ".u32 r, s[1]"})
    EXPECT_TRUE(legal(each)) << each;
  for (const char* each : {".b32 r, g", ".b32 r, g[1]", ".s32 r, g[1]"})
    EXPECT_FALSE(legal(each)) << each;
}

TEST(LegalOperands, SumsOfRegistersAndConstants) {
  expect_verdicts(R"(mov.u32 u, r2+4
mov.u64 d, e+4
mov.u16 uh, sh+4
mov.u32 r1, r2+-4
mov.u32 r1, r2+4*2
mov.u32 v.x, r1+4
add.u32 r1, r2+4, r3+8
add.cc.u32 r1, r2+4, 2
mad.lo.u32 r1, r2+4, 2, r3+1
shl.b32 r1, r2, r3+2
prmt.b32 r1, r2+4, r3, 1
cvt.u64.u32 d, r2+4
cvt.u32.u8 r1, r2+4
setp.eq.and.u32 p, r2+4, 3, p
slct.s32.s32 r1, r2, 3, r4+1
st.global.u8 [d], r1+4
st.shared.u64 [t], e+4
atom.global.cas.b32 r1, [d], r2+4, r3+1
bar.sync r1+4, r2+32
shfl.sync.idx.b32 r1, r2+4, r3+1, r4+1, -1
mov.b64 {r1, r2}, d+4
mov.b64 v, d+4
add.u32 r1, %laneid+4, 3
add.u32 r1, t+4, 3
st.global.u32 [d], t+4
!mov.f32 f, f+4.0
!mov.u32 r1, r2-4
!mov.u32 r1, r2+r3
!mov.u32 r1, 4+r2
!mov.u32 r1, v.x+4
!mov.u32 r1+4, r2
!mov.u32 r1, %tid.x+4
!mov.v2.u32 {r1, r2}, {r3+4, r4}
!mov.b64 d, {r3+4, r4}
!st.global.v2.u32 [d], {r1+4, r2}
!@p+1 mov.u32 r1, r2
!ld.global.u32 r1+4, [d]
!mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f, f, f, f}, {r1+1, r2}, {r3}, {f, f, f, f}
!testp.finite.f32 p, f+4
!atom.global.add.f32 f, [d], f+4
!add.f32 f, f+4, f)");
}

TEST(LegalOperands, VectorRegisters) {
  expect_verdicts(R"(mov.v2.u32 v, w
mov.v2.f32 v, w
mov.v2.b32 v, f2
mov.v2.u32 v, {r1, 1}
mov.v2.u32 v, {w.y, w.x}
mov.v2.u32 {r1, _}, v
mov.v2.u32 {v.x, v.y}, w
mov.v4.f32 f4, {f, f, f, 1.0}
mov.v4.b32 q, f4
mov.v4.u32 q, %tid
mov.v2.b16 h2, h2
mov.v4.u16 h4, h4
mov.v2.b64 l, {d, e}
mov.v2.f64 d2, d2
mov.b64 d, v
mov.b64 v, fd
mov.b64 v, 5
mov.b64 h4, d
mov.b32 r1, h2
mov.b32 h2, f
mov.b32 b4, r1
mov.b128 wide, f4
mov.b128 l, wide
mov.b64 {r1, r2}, %clock64
st.shared.v2.f32 [t], v
ldmatrix.sync.aligned.m8n8.x4.shared.b16 q, [t]
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f, f, f, f}, q, {r1, r2}, f4
tex.2d.v4.f32.s32 f4, [d, s2]
sust.b.2d.v2.b32.trap [d, s2], v
!mov.v2.u32 v, f2
!mov.v4.u32 q, f4
!mov.v2.u32 v, d
!mov.v2.b8 v, w
!mov.v4.b64 {d, d, d, d}, {d, d, d, d}
!mov.b64 v, w
!mov.u64 d, v
!mov.b32 r1, v
!mov.b64 d, b4
!mov.b64 v, {r1, r2}
!mov.v2.u32 v, q
!add.u32 v, w, v
!st.shared.v2.u32 [t], f2
!st.shared.u64 [t], v
!mov.v4.u32 q, {v, w}
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 f4, {r1, r2}, {r3}, g4
!mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 f4, {r1, r2}, {r3}, f4
!mov.v4.f32 f4, %tid)");
}

TEST(LegalOperands, TensorMemory) {
  expect_verdicts(R"(tcgen05.st.sync.aligned.32x32b.x2.b32 [r1], {r2, 7}
tcgen05.st.sync.aligned.32x32b.x2.b32 [r1], {r2, 0f3F800000}
tcgen05.st.sync.aligned.16x32bx2.x2.b32 [r1], 4, {r2, WARP_SZ}
!tcgen05.st.sync.aligned.32x32b.x2.b32 [r1], {r2, _}
!tcgen05.st.sync.aligned.32x32b.x2.b32 [r1], {7, 7}
!tcgen05.st.sync.aligned.32x32b.x2.b32 [r1], v
!tcgen05.ld.sync.aligned.32x32b.x2.b32 v, [r1])",
                  "sm_100a");
  expect_verdicts(R"(tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {r1, r2}, u, [r3]
tcgen05.ld.red.sync.aligned.32x32b.x2.max.s32 {f, f}, f, [r3]
tcgen05.ld.red.sync.aligned.32x32b.x2.max.s32 {u, u}, {si}, [r3]
!tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {r1, r2}, uh, [r3]
!tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {r1, r2}, d, [r3])",
                  "sm_103a");
}

// ---- Several results.

TEST(LegalCalls, SeveralResultsPassRegistersOfAnyWidth) {
  const auto said = [](const std::string& results, const std::string& call) {
    return findings(headed("sm_50", "6.5") + ".func (" + results + ") f(.reg .u16 x) { ret; }\n" +
                    ".visible .entry k() { .reg .u32 x, y; .reg .u16 s; .reg .pred p; " + call +
                    " ret; }\n");
  };
  EXPECT_EQ(said(".reg .u32 a, .reg .pred b", "call (x, p), f, (s);"), "");
  EXPECT_EQ(said(".reg .u32 a, .reg .u16 b", "call (x, s), f, (s);"), "");
  EXPECT_NE(said(".reg .pred b", "call (p), f, (s);"), "");
  EXPECT_NE(said(".param .u32 a, .param .u32 b", ""), "");
}

// ---- Directives and bytes.

TEST(LegalText, SpillingToSharedMemoryIsOfPtx87) {
  const auto said = [](const std::string& target, const std::string& version) {
    return findings(headed(target, version) +
                    ".visible .entry k() { .pragma \"enable_smem_spilling\"; ret; }");
  };
  EXPECT_EQ(said("sm_75", "8.7"), "");
  EXPECT_NE(said("sm_75", "8.6"), "");
  EXPECT_NE(said("sm_70", "8.7"), "");
}

TEST(LegalText, ControlZIsABlankAndAVerticalTabIsNot) {
  const std::string kernel = headed("sm_80") + ".visible .entry k() { ret; }\n";
  for (const char* end : {"\x1a", "\x1a\n", "\x1a\x1a", "\x1a // text\n", "\f"})
    EXPECT_EQ(findings(kernel + end), "");
  EXPECT_EQ(findings("\x1a" + kernel), "");
  EXPECT_NE(findings(kernel + "\x1a text"), "");
  EXPECT_NE(findings(kernel + "\v"), "");
  EXPECT_EQ(findings(kernel + "// \v\n"), "");
}

// ---- Reported texts.

const std::string cases = std::string(TEST_DATA) + "/cases/";

struct Reported {
  const char* file;
  bool legal = true;
};
constexpr Reported reported[] = {
    {"79-vector-registers/k.ptx"},
    {"79-vector-registers/n1_without_mov.ptx"},
    {"79-vector-registers/n2_mma.ptx", false},  // the assembler dies
    {"80-register-plus-constant/k.ptx"},
    {"80-register-plus-constant/n1.ptx"},
    {"80-register-plus-constant/n2.ptx", false},
    {"81-targets-before-sm50/k.ptx"},
    {"81-targets-before-sm50/n1.ptx"},
    {"81-targets-before-sm50/n2.ptx"},
    {"81-targets-before-sm50/n3.ptx"},
    {"82-prototype-without-semicolon/k.ptx"},
    {"84-array-index/k.ptx"},
    {"84-array-index/right.ptx"},
    {"operands-on-h200/k.ptx"},
};

// ---- What versions before 4.0 had.

TEST(LegalText, EarlyVersionsLeaveOutModifiers) {
  const auto said = [](const char* version, const char* target, const std::string& instruction) {
    return findings(headed(target, version) + ".entry k() { .reg .f32 a; .reg .f64 b; " +
                    instruction + "; }");
  };
  for (const char* each :
       {"div.f32 a, a, a", "rcp.f32 a, a", "sqrt.f32 a, a", "sqrt.f64 b, b", "rsqrt.f64 b, b",
        "sin.f32 a, a", "ex2.f32 a, a", "mad.f64 b, b, b, b"}) {
    EXPECT_EQ(said("1.3", "sm_13", each), "") << each;
    EXPECT_NE(said("1.4", "sm_13", each), "") << each;
    EXPECT_NE(said("9.0", "sm_75", each), "") << each;
  }
  EXPECT_NE(said("1.3", "sm_13", "rcp.f64 b, b"), "");
  EXPECT_EQ(findings(headed("sm_30", "3.1") + ".entry k() { .reg .f32 a; mad.f32 a, a, a, a; }",
                     Level::Warning),
            "");
  EXPECT_EQ(said("3.1", "sm_30", "mad.f32 a, a, a, a"), "");
  EXPECT_EQ(said("3.1", "sm_30", "mad.ftz.sat.f32 a, a, a, a"), "");
  EXPECT_NE(said("1.3", "sm_13", "mad.ftz.f32 a, a, a, a"), "");
  EXPECT_EQ(said("3.2", "sm_30", "mad.f32 a, a, a, a"),
            "version-support: mad.f32 was removed after PTX 3.1, the module states 3.2; write "
            "mad.rn.f32");
}

TEST(LegalText, EarlyVersionsDeclareRegistersOutsideFunctions) {
  const std::string kernel =
      ".reg .u32 g, row<3>;\n.local .b32 slots[4];\n"
      ".entry k() { mov.u32 row2, g; st.local.u32 [slots], row2; }";
  for (const char* version : {"1.4", "2.0", "2.3"})
    EXPECT_EQ(findings(headed("sm_13", version) + kernel), "") << version;
  EXPECT_NE(findings(headed("sm_20", "3.0") + kernel), "");
}

// ---- Registers wider than what they hold.

TEST(LegalOperands, ConversionsTakeWiderRegisters) {
  const auto legal = [](const std::string& instruction) {
    return findings(headed("sm_100a") +
                    ".entry k() { .reg .b64 d; .reg .u64 u; .reg .f64 f; .reg .b32 r; .reg .f32 x; "
                    ".reg .b16 h; " +
                    instruction + "; }")
        .empty();
  };
  for (const char* each : {"cvt.pack.sat.u16.s32 d, d, u", "cvt.pack.sat.u8.s32.b32 u, r, r, d",
                           "cvt.rn.f16x2.f32 d, d, x", "cvt.rs.relu.f16x2.f32 d, x, d, r",
                           "cvt.rn.relu.f16.f32 r, d", "cvt.rz.satfinite.f16.f32 d, x"})
    EXPECT_TRUE(legal(each)) << each;
  for (const char* each :
       {"cvt.pack.sat.u16.s32 f, r, r", "cvt.rn.f16x2.f32 u, x, x", "cvt.rn.f16x2.f32 r, f, x",
        "cvt.rs.f16x2.f32 r, x, x, d", "cvt.rn.bf16x2.f32 d, x, x", "cvt.rn.bf16x2.f32 r, d, x",
        "cvt.rn.bf16.f32 r, x", "cvt.rna.tf32.f32 d, x", "cvt.rn.satfinite.e4m3x2.f32 r, x, x"})
    EXPECT_FALSE(legal(each)) << each;
}

TEST(LegalCases, HaveTheAssemblersVerdict) {
  for (const Reported& each : reported) {
    auto source = read_source(cases + each.file);
    ASSERT_TRUE(source) << each.file;
    EXPECT_EQ(verify::check(std::make_shared<const Source>(std::move(*source))).ok(), each.legal)
        << each.file;
  }
}

// The expected bytes are a GPU's: those of operands-on-h200 were recorded on an H200.
TEST(LegalCases, RunAsOnAGpu) {
  for (const char* manifest : {"79-vector-registers/k.json", "79-vector-registers/n1.json",
                               "80-register-plus-constant/k.json", "81-targets-before-sm50/k.json",
                               "operands-on-h200/k.json"}) {
    const auto ran = test::shell(
        fmt::format("{} run {}{} --device emulator 2>&1", TARTAN_COMMAND, cases, manifest));
    EXPECT_EQ(ran.code, 0) << manifest << "\n" << ran.out;
  }
}

}  // namespace
}  // namespace tartan
