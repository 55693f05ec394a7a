// SPDX-License-Identifier: Apache-2.0
// The operands of matrix instructions: register types against NVIDIA's assembler
// (tests/data/isa/operand_types.txt), and constants, sinks, braces, addresses and ranges one by
// one.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tartan/verify/verify.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

using test::split;

const std::vector<std::string> types = {"b16", "u16",   "s16", "f16", "b32", "u32", "s32",
                                        "f32", "f16x2", "b64", "u64", "s64", "f64"};

std::string module_text(const std::string& target, const std::string& version,
                        const std::string& line) {
  std::string text = fmt::format(
      ".version {}\n.target {}\n.address_size 64\n.shared .align 128 .b8 tile[4096];\n.global "
      ".align 128 .b8 data[4096];\n"
      ".visible .entry k(.param .u64 p)\n{{\n",
      version, target);
  for (const std::string& type : types) text += fmt::format(".reg .{} %{}_<128>;\n", type, type);
  text += fmt::format(".reg .pred %pred_<4>;\n{}\nret;\n}}\n", line);
  return text;
}

Diags check(const std::string& target, const std::string& version, const std::string& line) {
  return verify::check(std::make_shared<const Source>("line", module_text(target, version, line)));
}

// One operand of a signature, with registers of `type` if given.
std::string operand(const std::string& what, const std::string& type) {
  const std::size_t x = what.find("x.");
  if (x != std::string::npos && std::isdigit(static_cast<unsigned char>(what[0]))) {
    std::string out = "{";
    for (int i = 0; i < std::stoi(what); ++i)
      out += fmt::format("{}%{}_{}", i ? ", " : "", type.empty() ? what.substr(x + 2) : type, i);
    return out + "}";
  }
  if (what[0] == '[') return "[%b64_0]";
  if (what[0] == '{') return "{0, 0}";
  return fmt::format("%{}_0", type.empty() ? what.substr(1) : type);
}

std::string instruction(const std::string& mnemonic, const std::string& signature,
                        const std::string& slot, const std::string& type) {
  std::string out = mnemonic;
  for (const std::string& each : split(signature, "; ")) {
    const std::size_t equals = each.find('=');
    const std::string name = each.substr(0, equals), what = each.substr(equals + 1);
    const std::string value = what == "imm" ? (name.find("scale") != std::string::npos ? "1" : "0")
                                            : operand(what, name == slot ? type : "");
    out += (out == mnemonic ? " " : ", ") + value;
  }
  return out + ";";
}

TEST(CheckOperands, RegisterTypes) {
  std::ifstream in(TEST_DATA "/isa/operand_types.txt");
  int checked = 0, accepted = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto fields = split(line, "|");
    ASSERT_EQ(fields.size(), 6u) << line;
    const auto good = split(fields[5], " ");
    for (const std::string& type : types) {
      if (fields[4] == "scale-d") continue;  // predicates
      const std::string text = instruction(fields[0], fields[3], fields[4], type);
      const Diags diags = check(fields[2], fields[1], text);
      const bool legal = std::find(good.begin(), good.end(), type) != good.end();
      EXPECT_EQ(diags.ok(), legal) << text << "\n" << diags.text();
      ++checked, accepted += legal;
    }
  }
  EXPECT_GT(checked, 3000);
  EXPECT_GT(accepted, 500);
}

// {f32 x 4}, {b32 x 4} and so on, as text.
const std::string f4 = "{%f32_0,%f32_1,%f32_2,%f32_3}", r4 = "{%b32_0,%b32_1,%b32_2,%b32_3}",
                  r2 = "{%b32_4,%b32_5}";
const std::string mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ";

void expect(const std::string& target, const std::string& version, const std::string& line,
            bool legal) {
  const Diags diags = check(target, version, line);
  EXPECT_EQ(diags.ok(), legal) << line << "\n" << diags.text();
}

TEST(CheckOperands, ConstantsAndSinks) {
  expect("sm_80", "8.0", mma + f4 + ", {0,%b32_1,%b32_2,%b32_3}, " + r2 + ", " + f4 + ";", true);
  expect("sm_80", "8.0", mma + f4 + ", {0,0,0,0}, " + r2 + ", " + f4 + ";", false);
  expect("sm_80", "8.0", mma + f4 + ", " + r4 + ", " + r2 + ", {0f00000000,%f32_1,%f32_2,%f32_3};",
         true);
  expect("sm_80", "8.0", mma + f4 + ", " + r4 + ", " + r2 + ", {0,%f32_1,%f32_2,%f32_3};", false);
  expect("sm_80", "8.0", mma + "{_,%f32_1,%f32_2,%f32_3}, " + r4 + ", " + r2 + ", " + f4 + ";",
         true);
  expect("sm_80", "8.0", mma + "{_,_,_,_}, " + r4 + ", " + r2 + ", " + f4 + ";", false);
  expect("sm_80", "8.0", mma + f4 + ", {_,%b32_1,%b32_2,%b32_3}, " + r2 + ", " + f4 + ";", false);
  expect("sm_80", "8.0", mma + "{0,%f32_1,%f32_2,%f32_3}, " + r4 + ", " + r2 + ", " + f4 + ";",
         false);
  expect("sm_80", "8.0", mma + "{%b32_0,%f32_1,%b32_2,%f32_3}, " + r4 + ", " + r2 + ", " + f4 + ";",
         true);
  const std::string s8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 ";
  expect("sm_80", "8.0", s8 + r4 + ", " + r4 + ", " + r2 + ", {0,0,0,0};", true);
  expect("sm_80", "8.0", s8 + r4 + ", {%tid.x,%b32_1,%b32_2,%b32_3}, " + r2 + ", " + r4 + ";",
         false);  // the assembler takes it, the manual does not
}

// Registers of several types in one vector, in every position.
TEST(CheckOperands, Mixtures) {
  const auto vector = [](const std::string& text) {
    std::string out;
    for (const std::string& type : split(text, " "))
      out += fmt::format("{}%{}_{}", out.empty() ? "{" : ",", type, out.size());
    return out + "}";
  };
  const std::string s8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 ";
  for (const auto& [types, legal] :
       std::initializer_list<std::pair<const char*, bool>>{{"u32 s32 u32 s32", true},
                                                           {"u32 b32 s32 b32", true},
                                                           {"b32 f16x2 b32 b32", true},
                                                           {"b32 b32 b32 f32", true},
                                                           {"f16x2 u32 u32 u32", false},
                                                           {"f32 f16x2 f16x2 f16x2", false},
                                                           {"f32 u32 u32 u32", false},
                                                           {"b32 b32 b32 b64", false}}) {
    expect("sm_80", "8.0", mma + f4 + ", " + vector(types) + ", " + r2 + ", " + f4 + ";", legal);
    expect("sm_80", "8.0", mma + f4 + ", " + r4 + ", " + r2 + ", " + vector(types) + ";", legal);
    expect("sm_80", "8.0", s8 + r4 + ", " + vector(types) + ", " + r2 + ", " + r4 + ";", legal);
    expect("sm_80", "8.0", s8 + r4 + ", " + r4 + ", " + r2 + ", " + vector(types) + ";", legal);
    expect("sm_80", "8.0",
           "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " + vector(types) + ", [%b64_0];", legal);
  }
}

TEST(CheckOperands, Braces) {
  expect("sm_80", "8.0", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%b32_0}, [%b64_0];", true);
  expect("sm_80", "8.0", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 %b32_0, [%b64_0];", false);
  expect("sm_80", "8.0", "movmatrix.sync.aligned.m8n8.trans.b16 %b32_0, %b32_1;", true);
  expect("sm_80", "8.0", "movmatrix.sync.aligned.m8n8.trans.b16 {%b32_0}, %b32_1;", false);
  const std::string sparse = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + f4 + ", " +
                             r2 + ", " + r2 + ", " + f4 + ", ";
  expect("sm_80", "8.0", sparse + "%b32_8, 0;", true);
  expect("sm_80", "8.0", sparse + "{%b32_8}, 3;", true);
  expect("sm_80", "8.0", sparse + "%b32_8, 4;", false);
  expect("sm_80", "8.0", sparse + "%b32_8, %b32_9;", false);
  expect("sm_80", "8.0", sparse + "8, 0;", false);
}

TEST(CheckOperands, Addresses) {
  const std::string load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%b32_0}, ";
  for (const auto& [address, legal] :
       std::initializer_list<std::pair<const char*, bool>>{{"[%b64_0]", true},
                                                           {"[%u32_0+16]", true},
                                                           {"[%s64_0+-16]", true},
                                                           {"[tile]", true},
                                                           {"[tile+16]", true},
                                                           {"[%f32_0]", false},
                                                           {"[%f64_0]", false},
                                                           {"[data]", false},
                                                           {"[p]", false},
                                                           {"[128]", false},
                                                           {"[k]", false},
                                                           {"[%tid.x]", false},
                                                           {"%b64_0", false},
                                                           {"tile", false},
                                                           {"[%pred_0]", false},
                                                           {"[%b16_0]", false}})
    expect("sm_80", "8.0", load + address + ";", legal);
  const std::string global = "wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%b32_0,%b32_1}, ";
  expect("sm_80", "8.0", global + "[data], 16;", true);
  expect("sm_80", "8.0", global + "[data], %u32_0;", true);
  expect("sm_80", "8.0", global + "[data], %u64_0;", false);
  expect("sm_80", "8.0", global + "[tile], 16;", false);
}

// .global .u32 a<3>: a0, a1 and a2, but not a; NVIDIA's assembler accepts no initial value for
// them.
TEST(CheckOperands, RowsOfVariables) {
  const auto ids = [](const std::string& variable, const std::string& name) {
    std::string out;
    for (const Diag& diag : verify::check(std::make_shared<const Source>(
             "rows", ".version 8.6 .target sm_90 .address_size 64 .global .u32 " + variable +
                         "; .visible .entry k() { .reg .b32 r; ld.global.u32 r, [" + name +
                         "]; st.global.u32 [" + name + "+0], r; ret; }")))
      out += std::string(diag.id) + " ";
    return out;
  };
  for (const char* name : {"a0", "a2"}) EXPECT_EQ(ids("a<3>", name), "");
  EXPECT_EQ(ids("a<3>, b", "b"), "");
  for (const char* name : {"a", "a3", "a02", "b0"})
    EXPECT_EQ(ids("a<3>", name), "undeclared-register undeclared-register ") << name;
  EXPECT_NE(ids("a<3> = 5", "a0").find("syntax"), std::string::npos);
}

TEST(CheckOperands, BlockScales) {
  const std::string scaled =
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 " + f4 +
      ", " + r4 + ", " + r2 + ", " + f4;
  const auto with = [&](const char* a, const char* b) {
    return fmt::format("{}, %b32_8, {}, %b32_9, {};", scaled, a, b);
  };
  for (const auto& [a, b, legal] :
       std::initializer_list<std::tuple<const char*, const char*, bool>>{
           {"{0,0}", "{0,0}", true},
           {"{2,1}", "{2,3}", true},
           {"{1,0}", "{0,0}", false},
           {"{0,2}", "{0,0}", false},
           {"{0,0}", "{0,4}", false},
           {"{4,0}", "{0,0}", false},
           {"{%u16_0,%u16_1}", "{%b16_0,0}", true},
           {"{%s16_0,%s16_1}", "{0,%u16_0}", true},
           {"{%b32_0,%b32_1}", "{0,0}", false},
           {"{%f16_0,%f16_1}", "{0,0}", false},
           {"{0}", "{0,0}", false},
           {"0", "{0,0}", false},
           {"{-1,0}", "{0,0}", false}})
    expect("sm_120a", "8.7", with(a, b), legal);
}

// Accepted by the assembler but not by the manual: rejected on purpose. (Such forms are
// "undocumented-form".)
TEST(CheckOperands, StricterThanTheAssembler) {
  const std::string s8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 ";
  const std::string sparse = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 " + f4 + ", " +
                             r4 + ", " + r4 + ", " + f4 + ", ";
  const std::pair<const char*, std::string> lines[] = {
      {"predicates as fragments",
       s8 + r4 + ", {%pred_0,%pred_1,%pred_2,%pred_3}, " + r2 + ", " + r4 + ";"},
      {"special registers as fragments",
       s8 + r4 + ", {%tid.x,%b32_1,%b32_2,%b32_3}, " + r2 + ", " + r4 + ";"},
      {"special registers as results",
       mma + "{%laneid,%f32_1,%f32_2,%f32_3}, " + r4 + ", " + r2 + ", " + f4 + ";"},
      {"selectors 2 and 3 of a pair of lanes", sparse + "%b32_8, 2;"},
      {"two registers of metadata", sparse + "{%b32_8,%b32_9}, 0;"},
      {"a constant as metadata", sparse + "0f3F800000, 0;"},
      {"an address of 16 bits", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " + r4 + ", [%b16_0];"},
      {"a constant as matrix", "movmatrix.sync.aligned.m8n8.trans.b16 %b32_0, 0f3F800000;"},
  };
  const bool witness = std::system("ptxas --version > /dev/null 2>&1") == 0;
  for (const auto& [why, line] : lines) {
    EXPECT_FALSE(check("sm_80", "8.0", line).ok()) << why << ": " << line;
    if (!witness) continue;
    const std::string path =
        ::testing::TempDir() + fmt::format("tartan_operands_{}.ptx", ::getpid());
    std::ofstream(path) << module_text("sm_80", "8.0", line);
    EXPECT_EQ(std::system(
                  fmt::format("ptxas -arch sm_80 {} -o /dev/null > /dev/null 2>&1", path).c_str()),
              0)
        << why << ": " << line;
    std::remove(path.c_str());
  }
}

}  // namespace
}  // namespace tartan
