// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tartan/ptx/parser.h"

namespace tartan::ptx {
namespace {

std::shared_ptr<const Source> source(std::string text) {
  return std::make_shared<const Source>("test.ptx", std::move(text));
}

std::string body(const std::string& statements) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n" + statements +
         "\n}\n";
}

// The diagnostics of a text, one to_string per line.
std::string complaints(const std::string& text) {
  Diags diags;
  parse(source(text), diags);
  diags.sort();
  std::string out;
  for (const Diag& diag : diags) out += to_string(diag) + "\n";
  return out;
}

void expect_fixed_point(const std::shared_ptr<const Source>& text) {
  Diags diags;
  const std::string once = print(parse(text, diags));
  EXPECT_TRUE(diags.empty()) << diags.text();
  Diags again;
  EXPECT_EQ(print(parse(source(once), again)), once);
  EXPECT_TRUE(again.empty()) << again.text();
}

TEST(Ptx, PrintingIsAFixedPoint) {
  int files = 0;
  for (const char* folder : {TEST_DATA "/ptx", TEST_DATA "/programs"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".ptx") continue;
      SCOPED_TRACE(entry.path().string());
      auto read = read_source(entry.path().string());
      ASSERT_TRUE(read);
      expect_fixed_point(std::make_shared<const Source>(std::move(*read)));
      ++files;
    }
  EXPECT_GE(files, 3);
}

TEST(Ptx, OperandsKeepTheirMeaning) {
  Diags diags;
  const Module module =
      parse(source(body("mov.u32 %r1, -5;\nmov.f32 %f1, 0f3F800000;\nmov.f64 %d1, "
                        "0d4000000000000000;\nld.global.v2.f32 {%f1, _}, [%rd1+-16];\n"
                        "setp.eq.s32 %p1|%p2, %r1, 0x10;\n@!%p1 bra $L;\nadd.s32 %r1, %r1, "
                        "0xFFFFFFFFU;\n$L:\nret;")),
            diags);
  ASSERT_TRUE(diags.empty()) << diags.text();
  const auto operands = [&](int i) { return module.operands_of(module.instructions[i]); };
  EXPECT_EQ(static_cast<std::int64_t>(operands(0)[1].value), -5);
  EXPECT_EQ(operands(1)[1].value, 0x3F800000u);
  EXPECT_EQ(operands(1)[1].type, f32);
  EXPECT_EQ(operands(2)[1].value, 0x4000000000000000u);
  EXPECT_EQ(operands(3)[0].count, 2u);
  EXPECT_EQ(static_cast<std::int64_t>(operands(3)[1].value), -16);
  EXPECT_EQ(module.children(operands(4)[0])[1].text, "%p2");
  EXPECT_EQ(operands(4)[2].value, 16u);
  EXPECT_EQ(module.instructions[5].guard, "%p1");
  EXPECT_TRUE(module.instructions[5].guard_negated);
  EXPECT_EQ(operands(6)[2].type, u64);
  EXPECT_EQ(module.source->place(module.instructions[3].offset), Place("test.ptx", 9, 1));
}

// C's operators on 64 bits, as in the assembler.
TEST(Ptx, NegatedRegistersAndUnifiedAddresses) {
  const std::string text =
      "vmad.s32.s32.s32 %r1, -%r2.b1, %r3, -4;\n"
      "ld.global.u32 %r1, [%rd1+8].unified;\n";
  Diags diags;
  const Module module = parse(source(body(text)), diags);
  ASSERT_TRUE(diags.empty()) << diags.text();
  const auto negated = module.operands_of(module.instructions[0])[1];
  EXPECT_EQ(negated.kind, OperandKind::Negative);
  EXPECT_EQ(module.children(negated)[0].text, "%r2.b1");
  EXPECT_EQ(module.operands_of(module.instructions[0])[3].kind, OperandKind::Integer);
  EXPECT_EQ(module.operands_of(module.instructions[1])[1].text, ".unified");
  expect_fixed_point(source(body(text)));
}

TEST(Ptx, ConstantExpressions) {
  for (const auto& [text, value] : std::initializer_list<std::pair<const char*, std::int64_t>>{
           {"64*2", 128},
           {"1+2*3-4/2", 5},
           {"(1+2)*3", 9},
           {"1<<4|2^6&~1", 20},
           {"-7/2", -3},
           {"-8>>1", -4},
           {"0x10U >> 2", 4},
           {"-1>>60 == -1", 1},
           {"-1 < 1", 1},
           {"-1 < 1U", 0},
           {"7 % 4", 3},
           {"3 > 2 > 1", 0},
           {"!0 + !5", 1},
           {"- -3", 3},
           {"1 || 0 && 0", 1},
           {"2 != 2 ? 5 : 0 ? 6 : 7", 7},
           {"(.u64)-1 > 0", 1},
           {"WARP_SZ-1", 31},
           {"2.0*1.5 > 2.5", 1},
           {"1 << 64", 0},
           {"-0x7FFFFFFFFFFFFFFF-1 /* least */ / -1", INT64_MIN + 2}}) {
    Diags diags;
    const Module module =
        parse(source(body(fmt::format(".reg .b32 %r<9>;\nmov.u32 %r1, {};\nld.u32 %r2, [%r1+({})];",
                                      text, text))),
              diags);
    ASSERT_TRUE(diags.empty()) << diags.text();
    const auto constant = module.operands_of(module.instructions[0])[1];
    EXPECT_EQ(static_cast<std::int64_t>(constant.value), value) << text;
    EXPECT_EQ(constant.text, text);
    EXPECT_EQ(static_cast<std::int64_t>(module.operands_of(module.instructions[1])[1].value),
              value);
    const std::string printed = print(module);
    EXPECT_EQ(print(parse(source(printed), diags)), printed);
  }
}

TEST(Ptx, AllErrorsOfAText) {
  EXPECT_EQ(
      complaints(body("add.s32 %r1 %r2;\nmov.u32 %r1, [;\n$L: $L2:\nld.u32 %r1, [%rd1;\nret;")),
      "test.ptx:6:13: error: expected ',' or ';', found '%r2' [syntax]\n"
      "test.ptx:7:15: error: expected an operand, found ';' [syntax]\n"
      "test.ptx:9:18: error: expected an offset, ',' or ']', found ';' [syntax]\n");
}

TEST(Ptx, TruncatedTextsEndInOneMessage) {
  const std::string whole = body(
      ".reg .b32 %r<4>;\nmov.u32 %r1, %tid.x;\n/* comment */ st.shared.v2.u32 [%r1+4], {%r1, "
      "%r2};\nret;");
  for (std::size_t size = whole.find(".visible") + 1; size + 2 < whole.size(); ++size) {
    Diags diags;
    parse(source(whole.substr(0, size)), diags);
    EXPECT_FALSE(diags.ok()) << size << ": " << whole.substr(0, size);
    EXPECT_LE(diags.size(), 3u) << diags.text();
  }
}

TEST(Ptx, HeaderIsRequired) {
  EXPECT_EQ(complaints(".target sm_80\n"),
            "test.ptx:1:1: error: the module has no .version [missing-version]\n");
  EXPECT_EQ(complaints(".version 8.0\n"),
            "test.ptx:1:1: error: the module has no .target [missing-version]\n");
  EXPECT_EQ(complaints(".version eight\n.target sm_80\n"),
            "test.ptx:1:10: error: expected a version such as 8.0, found 'eight' [syntax]\n");
}

// The assembler accepts blanks and comments before a dot, not after it.
TEST(Ptx, BlanksInFrontOfQualifiers) {
  Diags diags;
  const Module module = parse(
      source(body("add .u32 %r1, %tid .x, V .y;\n@%p1 ld/* a */.param\n.u64 %rd1, [po];")), diags);
  ASSERT_TRUE(diags.empty()) << diags.text();
  EXPECT_EQ(print(module, module.instructions[0]), "add.u32 %r1, %tid.x, V.y");
  EXPECT_EQ(print(module, module.instructions[1]), "@%p1 ld.param.u64 %rd1, [po]");
  EXPECT_EQ(module.operands_of(module.instructions[0])[1].text, "%tid.x");
  EXPECT_NE(complaints(body("add. u32 %r1, %r2, %r3;")), "");
}

}  // namespace
}  // namespace tartan::ptx
