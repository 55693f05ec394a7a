// SPDX-License-Identifier: Apache-2.0
// Diagnostics for declarations and directives, one error at a time.
// tests/data/isa/sweep/directives.txt has many more, with the assembler's verdicts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tartan/verify/verify.h"

namespace tartan {
namespace {

// The errors in a module, one "id: message" per line.
std::string module_errors(const std::string& text) {
  std::string out;
  for (const Diag& diag : verify::check(std::make_shared<const Source>("directives", text)))
    if (diag.level == Level::Error)
      out += fmt::format("{}{}: {}", out.empty() ? "" : "\n", diag.id, diag.message);
  return out;
}

std::string errors(const std::string& body) {
  return module_errors(".version 8.0\n.target sm_90\n.address_size 64\n" + body + "\n");
}

TEST(CheckDirectives, RejectsWrongDeclarations) {
  EXPECT_EQ(errors(".global .align 3 .b32 x;"),
            "declaration: illegal alignment: expected a power of two, found 3");
  EXPECT_EQ(errors(".global .v4 .b64 x;"),
            "declaration: the vector x is too long: expected at most 128 bits and 4 elements, "
            "found .v4 .b64");
  EXPECT_EQ(errors(".global .pred x;"),
            "declaration: x is a predicate: expected one .reg, found .global");
  EXPECT_EQ(errors(".global .bf16 x;"),
            "declaration: x has an instruction type: expected .b16, found .bf16");
  EXPECT_EQ(errors(".global .b32 x[];"),
            "declaration: x has no length: expected x[1] or more, found x[]");
  EXPECT_EQ(errors(".local .b32 x;"),
            "declaration: x cannot be declared at module scope: expected .global, .const or "
            ".shared, found .local");
  EXPECT_EQ(errors(".common .shared .b32 x;"),
            "declaration: x is .common: expected .global, found .shared");
  EXPECT_EQ(errors(".entry k (.reg .b32 x) { ret; }"),
            "declaration: x cannot be declared as a parameter of a kernel: expected .param, found "
            ".reg");
  EXPECT_EQ(errors(".entry k () { .visible .shared .b32 x; ret; }"),
            "declaration: .visible inside a function: expected a declaration in front of it");
  EXPECT_EQ(errors(".const .b8 x[65537];"),
            "declaration: x exceeds constant memory: expected at most 65536 bytes, found 65537");
}

TEST(CheckDirectives, RejectsWrongInitialValues) {
  EXPECT_EQ(errors(".global .f32 x = 5;"),
            "initializer: illegal initializer of x: expected a number such as 5.0, found 5");
  EXPECT_EQ(errors(".global .b32 x[2] = {1, 2, 3};"),
            "initializer: illegal initializer of x: expected 2 elements at most, found 3");
  EXPECT_EQ(errors(".shared .b32 x = 1;"),
            "initializer: illegal initializer of x: expected .global or .const, found .shared");
  EXPECT_EQ(errors(".global .u64 x = y; .global .u64 y = x;"),
            "initializer: illegal initializer of x: expected a variable or function that is "
            "declared before x, found y");
  EXPECT_EQ(errors(".global .b32 y; .global .b64 x = y;"),
            "initializer: illegal initializer of x: expected .u64 for an address, found .b64");
  EXPECT_EQ(errors(".global .u64 y; .global .u8 x = 0xF0(y);"),
            "initializer: illegal initializer of x: expected the mask of one byte such as 0xFF00, "
            "found 0xF0");
}

TEST(CheckDirectives, RejectsConflictingDeclarations) {
  EXPECT_EQ(errors(".func f (.param .b32 x);\n.func f (.param .b64 x) { ret; }"),
            "redeclaration: f is declared with differences in parameter 0: .param .b32 and .param "
            ".b64; the first declaration is on line 4");
  EXPECT_EQ(errors(".extern .func f () { ret; }"),
            "redeclaration: f is .extern but has a body: expected one of the two; the first "
            "declaration is on line 4");
  EXPECT_EQ(errors(".func f ();"),
            "redeclaration: f has no body: expected one in this module, or .extern in front of "
            ".func");
  EXPECT_EQ(errors(".extern .global .b32 x;\n.visible .global .b64 x;"),
            "redeclaration: x is declared as .b32 and .b64; the first declaration is on line 4");
  EXPECT_EQ(errors(".global .b32 x<3>; .global .b32 x1;"),
            "redefined-name: x1 is already declared on line 4");
}

TEST(CheckDirectives, RejectsWrongDirectivesOfFunctions) {
  EXPECT_EQ(errors(".entry k () .maxntid 0 { ret; }"),
            "function-directive: .maxntid is out of range: expected 1 to 4294967295, found 0");
  EXPECT_EQ(errors(".entry k () .maxntid 32, 1, 1, 1 { ret; }"),
            "function-directive: wrong number of values for .maxntid: expected 1 to 3, found 4");
  EXPECT_EQ(errors(".entry k () .maxntid 32 .reqntid 32 { ret; }"),
            "function-directive: conflicting directives of k: .maxntid and .reqntid; expected one "
            "of them");
  EXPECT_EQ(errors(".func f () .maxntid 32 { ret; }"),
            "function-directive: .maxntid applies to kernels (.entry), f is a function");
  EXPECT_EQ(
      errors(".entry k () .maxntidd 32 { ret; }"),
      "unknown-directive: unexpected directive .maxntidd of a kernel; the nearest is .maxntid");
  EXPECT_EQ(errors(".pragma \"nounrol\";"),
            "function-directive: unknown pragma \"nounrol\" of a module; the nearest is nounroll");
}

TEST(CheckDirectives, RejectsWrongAliases) {
  EXPECT_EQ(errors(".func f () { ret; } .alias g, f;"),
            "alias: g is undeclared: expected a function declared before .alias, as in .func g;");
  EXPECT_EQ(errors(".func f () { ret; } .func g (.param .b32 x); .alias g, f;"),
            "alias: g and f differ in the number of parameters: 1 and 0");
  EXPECT_EQ(errors(".weak .func f () { ret; } .func g (); .alias g, f;"),
            "alias: f is .weak: expected a function with a body that is .visible or local to this "
            "module");
  EXPECT_EQ(errors(".func f () { ret; } .func g (); .alias g, f;"), "");
}

TEST(CheckDirectives, RejectsWrongHeaders) {
  EXPECT_EQ(module_errors(".target sm_90\n.version 8.0\n").substr(0, 20), "syntax: .version in ");
  EXPECT_EQ(module_errors(".version 8.0\n.target sm_90, foo\n"),
            "unknown-target: unknown target or option foo");
  EXPECT_EQ(module_errors(".version 8.0\n.target sm_90\n.address_size 32\n"),
            "target-support: target sm_90 has 64-bit addresses only: expected .address_size 64, "
            "found 32");
  EXPECT_EQ(errors(".file 1 \"a\"\n.file 1 \"b\""),
            "redefined-name: file number 1 is already used");
}

TEST(CheckDirectives, RejectsWrongUseOfParameters) {
  EXPECT_EQ(errors(".entry k () { .param .b32 q; .reg .b32 a; ld.param.b32 a, [q]; ret; }"),
            "unwritten-parameter: q is read but never written: expected a call before it that has "
            "q as a result");
  EXPECT_EQ(errors(".func (.param .b32 r) f () { .reg .b32 a; ld.param.b32 a, [r]; ret; }"),
            "operand-kind: r is a result of f: it cannot be read; write it with st.param");
  EXPECT_EQ(errors(".func f (.param .b32 x) { .reg .b32 a; st.param.b32 [x], a; ret; }"),
            "operand-kind: x is a parameter of f: it cannot be written; expected a result or a "
            ".param variable of the body");
  EXPECT_EQ(errors(".func (.param .b32 r) f () { st.param.b32 [r], 1; ret; }\n"
                   ".entry k () { .param .b32 q; .reg .b32 a; call (q), f; ld.param.b32 a, [q]; "
                   "ret; }"),
            "");
}

// What ptxas 13.0 says of setmaxnreg: "ignored; unable to determine register count at entry"
// (C7508), or nothing. Where threads are stated alone, wgmma and its accumulators decide.
TEST(CheckDirectives, WhereTheAssemblerIgnoresSetmaxnreg) {
  const auto warns = [](const std::string& directives, const std::string& body,
                        const std::string& functions = "") {
    const std::string text = ".version 8.0\n.target sm_90a\n.address_size 64\n" + functions +
                             ".visible .entry k()\n" + directives +
                             "\n{\n.reg .b64 d;\n.reg .f32 f<4>;\n"
                             "setmaxnreg.inc.sync.aligned.u32 232;\n" +
                             body + "ret;\n}\n";
    const Diags diags = verify::check(std::make_shared<const Source>("directives", text));
    return std::ranges::any_of(diags,
                               [](const Diag& each) { return each.id == "register-bounds"; });
  };
  const std::string product =
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, d, d, 1, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (const std::string& body : {std::string(), product}) {
    EXPECT_TRUE(warns("", body));
    EXPECT_TRUE(warns(".minnctapersm 1", body));
    for (const std::string threads : {".maxntid 128", ".reqntid 160", ".maxntid 96, 2"})
      EXPECT_TRUE(warns(threads, body)) << threads;
    for (const std::string bound :
         {".maxnreg 64", ".maxntid 384\n.minnctapersm 1", ".reqntid 128\n.minnctapersm 1"})
      EXPECT_FALSE(warns(bound, body)) << bound;
  }
  for (const std::string threads : {".maxntid 384", ".reqntid 384", ".maxntid 128, 2, 1"}) {
    EXPECT_TRUE(warns(threads, "")) << threads;
    EXPECT_TRUE(warns(threads, "wgmma.fence.sync.aligned;\n")) << threads;
    EXPECT_FALSE(warns(threads, product)) << threads;
  }
  // The product is in what the kernel calls.
  const std::string callee =
      ".func f()\n{\n.reg .b64 d;\n.reg .f32 f<4>;\n" + product + "ret;\n}\n";
  EXPECT_FALSE(warns(".maxntid 384", "call f;\n", callee));
  EXPECT_TRUE(warns(".maxntid 384", "", callee));
}

}  // namespace
}  // namespace tartan
