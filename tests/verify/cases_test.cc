// SPDX-License-Identifier: Apache-2.0
// Mistakes that people reported: how many diagnostics there are, and what they say.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tartan/verify/verify.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

struct Case {
  const char* file;
  std::vector<const char*> words;  // one for each diagnostic, in the order of the lines
};

constexpr const char *no_digit = "not with a digit", *no_dot = "'.' is no part of names",
                     *sm_90a = "sm_90a (and no other target)",
                     *c_control = "labels and bra for loops and conditions";

const Case cases[] = {
    {"01-name-starts-with-digit/k.ptx", {no_digit}},
    {"01-name-starts-with-digit/n1_func.ptx", {no_digit}},
    {"01-name-starts-with-digit/n2_label.ptx", {no_digit}},
    {"01-name-starts-with-digit/n3_reg.ptx", {no_digit}},
    {"01-name-starts-with-digit/n4_param.ptx", {no_digit}},
    {"02-dot-in-debug-symbol/k.ptx", {no_dot}},
    {"02-dot-in-debug-symbol/n1_dotname.ptx", {no_dot}},
    {"02-dot-in-debug-symbol/n2_dotreg.ptx", {no_dot}},
    {"02-dot-in-debug-symbol/n3_angle.ptx", {"'<' is no part of names"}},
    {"02-dot-in-debug-symbol/right.ptx", {}},
    {"05-mbarrier-ival/k.ptx", {"the nearest is mbarrier.inval"}},
    {"05-mbarrier-ival/n1.ptx", {"the nearest is mbarrier.init"}},
    {"05-mbarrier-ival/n2.ptx", {"requires sm_90"}},
    {"05-mbarrier-ival/n3.ptx", {"requires sm_90"}},
    {"05-mbarrier-ival/n4.ptx",
     {"cp.async.commit_group", "cp.async.wait_group", "ldmatrix", "r is undeclared"}},
    {"12-c-like-loop/k.ptx", {"it cannot be written: expected a register", c_control}},
    {"12-c-like-loop/n1_if.ptx", {c_control}},
    {"12-c-like-loop/n2_assign.ptx", {"mov.u32 r"}},
    {"12-c-like-loop/n3_param_as_register.ptx",
     {"load it with ld.param first", "load it with ld.param first"}},
    {"12-c-like-loop/n4_cuda_c.ptx", {"CUDA C; compile it with nvcc -ptx"}},
    {"16-wgmma-for-sm90-ptx78/k.ptx", {sm_90a, sm_90a, sm_90a, "and PTX 8.0"}},
    {"16-wgmma-for-sm90-ptx78/n1.ptx", {sm_90a, sm_90a, sm_90a, sm_90a}},
    {"16-wgmma-for-sm90-ptx78/n2.ptx", {sm_90a, sm_90a, sm_90a, sm_90a}},
    {"16-wgmma-for-sm90-ptx78/n3.ptx", {sm_90a, sm_90a, sm_90a, sm_90a}},
    {"16-wgmma-for-sm90-ptx78/right.ptx", {}},
    {"30-vote-without-sync/k.ptx",
     {"write vote.sync.ballot.b32 with a member mask",
      "write shfl.sync.down.b32 with a member mask"}},
    {"30-vote-without-sync/n1.ptx",
     {"write vote.sync.ballot.b32 with a member mask",
      "write shfl.sync.down.b32 with a member mask"}},
    {"30-vote-without-sync/n2.ptx", {"the form is vote.sync.ballot.b32 d, a, membermask"}},
    {"45-ptx-from-a-path/path_as_text.ptx", {"the path kernels/k.ptx"}},
    {"71-type-u4/k.ptx", {".u32"}},
    {"71-type-u4/n1.ptx", {".b128", "ld.b128", ".u64", ".v2, .v4 and .v8", "requires sm_100"}},
    {"71-type-u4/n2.ptx", {"ld.shared.v4.b32"}},
};

Diags check(const std::string& text) {
  return verify::check(std::make_shared<const Source>("case", text));
}

TEST(Cases, OneMistakeIsOneDiagnosticThatNamesTheCause) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.file);
    const Diags found = check(test::read_file(std::string(TEST_DATA "/cases/") + each.file));
    ASSERT_EQ(found.size(), each.words.size()) << found.text();
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NE(found[i].message.find(each.words[i]), std::string::npos) << found[i].message;
  }
}

// A module with one mistake: only what says `words`.
void expect_one(const std::string& text, const std::string& words) {
  const Diags found = check(text);
  ASSERT_EQ(found.size(), 1U) << text << found.text();
  EXPECT_NE(found[0].message.find(words), std::string::npos) << found[0].message;
}

std::string module(const std::string& body, const std::string& header = "k()") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry " + header + "\n{\n" +
         body + "\nret;\n}\n.visible .entry other()\n{\nret;\n}\n";
}

TEST(Cases, NamesOfAllKinds) {
  expect_one(module("",
                    "gr\xC3\xB6\xC3\x9F"
                    "e()"),
             "not ASCII");
  expect_one(module("", "my\xC2\xA0kernel()"), "not ASCII");
  expect_one(module("",
                    "my-gr\xC3\xB6\xC3\x9F"
                    "e()"),
             "not ASCII");
  expect_one(module("", "ns::k()"), "':' is no part of names");
  expect_one(module("", "my-kernel()"), "'-' is no part of names");
  expect_one(module(".reg .b32 %\xC3\xBC; mov.u32 %\xC3\xBC, 0;"), "not ASCII");
  expect_one(module(".reg .b32 my.\xC3\xBC; mov.u32 my.\xC3\xBC, 0;"), "not ASCII");
  expect_one(module("bra my.label;\nmy.label:"), "'.' is no part of names");
  expect_one(module("") + ".section .debug_info { my.label: .b8 1 .b64 my.label }\n",
             "'.' is no part of names");
  expect_one(module(".shared .b32 my.t[4];\n.reg .b32 r;\nld.shared.u32 r, my.t[1];"),
             "'.' is no part of names");
}

TEST(Cases, BrokenNumbersAreNoNames) {
  const auto constant = [](const std::string& text) {
    return module(".reg .b64 r;\nmov.b64 r, " + text + ";");
  };
  expect_one(constant("18446744073709551616"), "expected a number of at most 64 bits");
  expect_one(constant("0x12345678901234567"), "expected a number of at most 64 bits");
  expect_one(constant("0f3F80000"), "expected 0f and 8 hexadecimal digits");
  expect_one(constant("0D3ff00000000000000"), "expected 0d and 16 hexadecimal digits");
  expect_one(constant("1e400"), "expected a number that f64 can hold");
  expect_one(constant("3d_grid"), "3d_grid is no name");
}

TEST(Cases, ABrokenHeaderIsOneError) {
  expect_one(module(".reg .b32 r;\nld.param.u32 r, [n];", "k(.param .u32 n .param .u32 m)"),
             "expected ',' or ')'");
  expect_one(module("", "k() junk"), "expected a directive of the function, '{' or ';'");
  expect_one(module("", "k(int n)"), "expected a parameter (.param) or ')'");
}

TEST(Cases, AMissingSemicolonIsOneError) {
  expect_one(module(".reg .b32 r\nmov.u32 r, 0;"), "expected ',' or ';'");
  expect_one(module(".reg .b32 r;\nmov.u32 r, 0\nadd.u32 r, r, 1;"), "expected ',' or ';'");
}

TEST(Cases, C) {
  expect_one(module("while (1) { int a = 0; }"), "PTX has no 'while'");
  expect_one(module("do { x; } while (1);"), "PTX has no 'do'");
  expect_one(module("if (a) b = 1; else c = 2;"), "PTX has no 'if'");
  expect_one(module("int i = 0;"), "PTX has no 'int'");
  expect_one(module(".reg .b32 r;\nr += 1;"), "PTX has no assignment");
  for (const char* text : {"#include <x>\nint main() {}\n", "extern \"C\" __global__ void k() {}",
                           "// k\ntemplate <int N> __global__ void k() {}",
                           "// gr\xC3\xB6\xC3\x9F"
                           "e\n__global__ void k() {}"})
    expect_one(text, "CUDA C; compile it with nvcc -ptx");
}

TEST(Cases, UnknownTargetsAndVersionsHaveNoFollowUps) {
  const std::string rest =
      "\n.address_size 64\n.visible .entry k()\n{\nbar.warp.sync -1;\nret;\n}\n";
  expect_one(".version 8.0\n.target rch sm_70" + rest, "unknown target rch sm_70");
  expect_one(".version 8.0\n.target sm_8.0" + rest, "unknown target sm_8.0");
  expect_one(".version 8.0\n.target sm_80; debug" + rest, "expected ',' or the end of the line");
  expect_one(".version 8.0\n.target sm_9O" + rest, "the nearest is sm_90");
  expect_one(".version 7.9\n.target sm_80" + rest, "the nearest is 7.8");
  expect_one(".version 7.9\n.target sm_30" + rest, "the nearest is 7.8");
  expect_one(".version 9.9\n.target sm_80" + rest, "newer than this release");
  expect_one(".version x\n.target sm_80" + rest, "expected a version such as 8.0");
  expect_one("./k.ptx", "found the path ./k.ptx");
  expect_one("/tmp/kernel", "found the path /tmp/kernel");
}

TEST(Cases, TheNewerVersionThatAllowsMoreParametersIsNamed) {
  const std::string text =
      ".target sm_80\n.address_size 64\n.visible .entry k(.param .b8 p[4576])\n{\nret;\n}\n";
  expect_one(".version 7.8\n" + text, "PTX 8.1 with sm_70 or newer allows 32764");
}

}  // namespace
}  // namespace tartan
