// SPDX-License-Identifier: Apache-2.0
// Calls, branches through tables, and the order of declarations: the diagnostics for one error at a
// time, and correct text that passes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "tartan/verify/verify.h"

namespace tartan {
namespace {

// The errors in a module, one "id: message" per line.
std::string errors(const std::string& body) {
  const std::string text = fmt::format(".version 8.0\n.target sm_90\n.address_size 64\n{}\n", body);
  std::string out;
  for (const Diag& diag : verify::check(std::make_shared<const Source>("calls", text)))
    if (diag.level == Level::Error)
      out += fmt::format("{}{}: {}", out.empty() ? "" : "\n", diag.id, diag.message);
  return out;
}

const std::string functions =
    ".func (.reg .b32 %out) regs (.reg .b32 %in) { mov.b32 %out, %in; ret; }\n"
    ".func none () { ret; }\n"
    ".func params (.param .align 8 .b8 box[16], .param .f32 x) { ret; }\n"
    ".extern .func (.param .b32 r) printf (.param .b64 format, .param .b64 values);\n";

std::string in_kernel(const std::string& statements) {
  return errors(functions +
                ".entry kernel (.param .b64 own) {\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n.reg .f32 "
                "%f<4>;\n.param .b32 q;\n.param .align 8 .b8 box[16];\n.param .align 4 .b8 "
                "loose[16];\n" +
                statements + "\nend:\nret;\n}\n");
}

TEST(CheckCalls, AcceptsMatchingCalls) {
  EXPECT_EQ(in_kernel("call none; call none, (); call (_), regs, (%r1); call (%r0), regs, (7);"
                      "call (q), regs, (q); call (%f0), regs, (%f1); call params, (box, %f1);"
                      "call params, (box, 1.5); call (%r0), printf, (%d0, 0);"),
            "");
  EXPECT_EQ(in_kernel("p: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
                      "call (%r0), %d0, (%r1), p;\n"
                      "t: .calltargets none; call %d1, t;\n"
                      "l: .branchtargets end, end; brx.idx %r0, l;\n"
                      "m<2>: ret;")
                .find("syntax"),
            0u);
  EXPECT_EQ(in_kernel("x0: x1: l: .branchtargets x<2>; brx.idx %r0, l;"), "");
  EXPECT_EQ(errors(".func f () { ret; }\n.global .u64 table[2] = {f, f};\n"
                   ".entry k () { .reg .b64 a; ld.global.b64 a, [table]; call a, table; ret; }"),
            "");
  EXPECT_EQ(errors(".extern .func f (.param .b32 n, .param .align 8 .b8 rest[]);\n"
                   ".entry k () { .param .align 8 .b8 a[24]; call f, (1, a); call f, (1); ret; }"),
            "");
}

TEST(CheckCalls, RejectsWrongArgumentCount) {
  EXPECT_EQ(in_kernel("call none, (%r0);"),
            "call-signature: the call of none has the wrong number of arguments: expected 0, found "
            "1");
  EXPECT_EQ(in_kernel("call regs, (%r0);"),
            "call-signature: the call of regs has the wrong number of results: expected 1, found "
            "0");
  EXPECT_EQ(in_kernel("p: .callprototype _ (.reg .b32 _); call %d0, p;"),
            "call-signature: the call of %d0 has the wrong number of arguments: expected 1, found "
            "0");
}

TEST(CheckCalls, RejectsWrongArgumentTypes) {
  EXPECT_EQ(in_kernel("call (%r0), regs, (%d1);"),
            "call-signature: parameter %in of regs: expected .b32, found %d1, .b64");
  EXPECT_EQ(in_kernel("call (%d0), regs, (%r1);"),
            "call-signature: result %out of regs: expected .b32, found %d0, .b64");
  EXPECT_EQ(in_kernel("call params, (loose, %f0);"),
            "call-signature: parameter box of params: expected .align 8 .b8[16], found loose, "
            ".align 4 .b8[16]");
  EXPECT_EQ(in_kernel("call params, (box, 5);"),
            "call-signature: parameter x of params: expected .f32, found the constant 5");
  EXPECT_EQ(in_kernel("call (%r0), printf, (own, 0);"),
            "call-signature: parameter format of printf: expected .b64, found own, a parameter of "
            "kernel itself; copy it to a .param variable");
  EXPECT_EQ(in_kernel("call (7), regs, (%r1);"),
            "call-signature: result %out of regs: expected .b32, found the constant 7");
  EXPECT_EQ(errors(".extern .func f (.param .u16 x);\n"
                   ".entry k () { .reg .u16 a; call f, (a); ret; }"),
            "call-signature: parameter x of f: expected .u16, found a call that passes .u16, which "
            "is unsupported; use .b32");
}

TEST(CheckCalls, RejectsCallsOfNothing) {
  EXPECT_EQ(in_kernel("call kernel, (%d0);"),
            "call-callee: kernel is a kernel: expected a function (.func)");
  EXPECT_EQ(in_kernel("call %d0;"),
            "call-callee: the indirect call through %d0 has no signature: expected a label of "
            ".callprototype or .calltargets after it");
  EXPECT_EQ(in_kernel("call %f0, p; p: .callprototype _ ();"),
            "register-type: call: expected a function or the register of its address as operand "
            "function, found %f0 of type .f32");
  EXPECT_EQ(in_kernel(".reg .b16 h; p: .callprototype _ (); call h, p;"),
            "call-callee: h cannot hold the address of a function: expected a register of type "
            ".b64, found .b16");
  EXPECT_EQ(in_kernel("l: .branchtargets end; call %d0, l;"),
            "call-callee: l has no signature: expected a label of .callprototype or .calltargets "
            "in front of the call, found one of .branchtargets");
  EXPECT_EQ(
      in_kernel("l: .calltargets box;"),
      "call-callee: box is not a function: .calltargets expects functions declared before it");
  EXPECT_EQ(errors(".entry k () { call later; ret; }\n.func later () { ret; }"),
            "undeclared-register: later is used before its declaration on line 5");
}

TEST(CheckCalls, RejectsBranchesThroughOtherTables) {
  EXPECT_EQ(in_kernel("brx.idx %r0, end;"),
            "branch-table: brx.idx without targets: expected a label of .branchtargets in front of "
            "it, found end");
  EXPECT_EQ(in_kernel("brx.idx %r0, l; l: .branchtargets end;"),
            "branch-table: brx.idx without targets: expected a label of .branchtargets in front of "
            "it, found l");
  EXPECT_EQ(in_kernel("l: .branchtargets nowhere; brx.idx %r0, l;"),
            "undeclared-label: nowhere is not a label: .branchtargets expects labels of kernel");
  EXPECT_EQ(in_kernel("l: .branchtargets end; bra l;"),
            "branch-table: bra to l: expected the label of an instruction, found the label of "
            ".branchtargets; only brx.idx accepts .branchtargets");
}

TEST(CheckCalls, RejectsInvalidStatements) {
  EXPECT_EQ(in_kernel(";"), "syntax: expected an instruction, a label or a declaration, found ';'");
  EXPECT_EQ(in_kernel(".bogus 1, 2, 3;"), "unknown-directive: unexpected directive .bogus");
  EXPECT_EQ(errors(".sharde .b32 x;"),
            "unknown-directive: unexpected directive .sharde; the nearest is .shared");
  EXPECT_EQ(in_kernel(".branchtargets end;"),
            "syntax: .branchtargets has no name: expected a label in front of it, such as table: "
            ".branchtargets");
}

}  // namespace
}  // namespace tartan
