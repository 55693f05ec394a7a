// SPDX-License-Identifier: Apache-2.0
// Which bytes a text may have, and how names of files get into one.
#include <gtest/gtest.h>

#include <memory>

#include "compiler/support/ascii.h"
#include "tartan/ptx/parser.h"

namespace tartan::ptx {
namespace {

using namespace std::string_literals;

const std::string good =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";

// The places and messages of a text, one a line.
std::string complaints(const std::string& text) {
  Diags diags;
  parse(std::make_shared<const Source>("k", text), diags);
  std::string out;
  for (const Diag& diag : diags)
    out += std::to_string(diag.place.line) + ":" + std::to_string(diag.place.column) + " " +
           diag.message + "\n";
  return out;
}

std::string foreign(const std::string& found) {
  return "not ASCII: expected ASCII alone, in comments and strings too, found " + found + "\n";
}

TEST(Encoding, RefusesOtherBytesEverywhereOnceALine) {
  const std::string umlauts = "5:6 " + foreign("bytes 0xC3 0xB6 (U+00F6)");
  EXPECT_EQ(complaints(good + "// gr\xC3\xB6\xC3\x9F"
                              "e, \xE4\xBD\xA0\n"),
            umlauts);
  EXPECT_EQ(complaints(good + "/* g\xC3\xB6\n\xFF\n*/"),
            "5:5 " + foreign("bytes 0xC3 0xB6 (U+00F6)") + "6:1 " + foreign("byte 0xFF"));
  EXPECT_EQ(complaints(good + ".file 1 \"\xE9.cu\"\n"), "5:10 " + foreign("byte 0xE9"));
  EXPECT_EQ(complaints(good + "\xF0\x9F\x98\x80"), "5:1 " + foreign("bytes 0xF0 0x9F 0x98 0x80 "
                                                                    "(U+1F600)"));
}

// What is in a word or between words is one mistake, and not an unknown name, too.
TEST(Encoding, RefusesOtherBytesInCodeOnce) {
  const auto in_body = [](const std::string& statement) {
    return complaints(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n" +
                      statement + "\nret; }\n");
  };
  EXPECT_EQ(in_body("mov.u32\xC2\xA0r, 1;"), "5:8 " + foreign("bytes 0xC2 0xA0 (U+00A0)"));
  EXPECT_EQ(in_body("gr\xC3\xB6\xC3\x9F"
                    "e:"),
            "5:3 " + foreign("bytes 0xC3 0xB6 (U+00F6)"));
  EXPECT_EQ(in_body("add.u32 r, r, \xE2\x88\x92"
                    "1;"),
            "5:15 " + foreign("bytes 0xE2 0x88 0x92 (U+2212)"));
  EXPECT_EQ(complaints("\xEF\xBB\xBF" + good),
            "1:1 " + foreign("bytes 0xEF 0xBB 0xBF (a byte-order mark)"));
}

TEST(Encoding, NamesWhatIsNoText) {
  const auto is = [](const std::string& what) { return "1:1 this is " + what + "\n"; };
  const std::string utf16 = "UTF-16 text: expected PTX text; iconv -f UTF-16 -t ASCII converts it";
  const std::string elf =
      "\x7F"
      "ELF\x02\x01\x01"s +
      std::string(9, '\0');
  const std::string extracted =
      ": expected PTX text; cuobjdump -ptx extracts it, where there is some inside";
  std::string wide;
  for (const char c : good) wide += {c, '\0'};
  EXPECT_EQ(complaints("\xFF\xFE" + wide), is(utf16));
  EXPECT_EQ(complaints(wide), is(utf16));
  EXPECT_EQ(complaints('\0' + wide), is(utf16));
  EXPECT_EQ(complaints(elf), is("an ELF file, an object or a program" + extracted));
  EXPECT_EQ(complaints(elf + "\x02\0\xBE\0"s),  // e_type, e_machine
            is("a cubin, machine code of a GPU: expected PTX text; nvcc -ptx writes it"));
  EXPECT_EQ(complaints("\x50\xED\x55\xBA\x01\0\x10\0"s), is("a fatbin" + extracted));
  EXPECT_EQ(complaints("\x93NUMPY\x01\0"s),
            is("an .npy file of numpy: expected PTX text; tartan run takes it as --arg x=FILE"));
  EXPECT_EQ(complaints("{\"ptx\": \"k.ptx\"}"),
            "1:1 expected PTX, found a manifest; tartan run takes it\n");
  EXPECT_EQ(complaints("{\"a\": 1}"), "1:1 expected PTX, found JSON\n");
}

TEST(Encoding, RefusesZeroBytes) {
  EXPECT_EQ(complaints(good), "");
  EXPECT_EQ(complaints(good + '\0'),
            "5:1 the text contains a zero byte: expected its end, without a terminator\n");
  EXPECT_EQ(complaints(good + "\0 no PTX"s),
            "5:1 the text contains a zero byte, and 7 bytes behind it are not read\n");
  EXPECT_EQ(complaints(".version 8.0\n.target sm_80\n.entry k() { \0 ret; }"s),
            "3:14 the text contains a zero byte, and 7 bytes behind it are not read\n");
  std::string junk = ".version 8.0\n.target sm_80\n.entry k() {\n";
  for (int i = 0; i < 200; ++i) junk += "1;\n";
  EXPECT_NE(complaints(junk + "\0 no PTX"s).find("stopped after 100 errors"), std::string::npos);
  EXPECT_EQ(complaints("junk\n\0.version 8.0"s),
            "2:1 the text contains a zero byte, and 12 bytes behind it are not read\n"
            "1:1 expected a directive, found 'junk'\n");
}

TEST(Encoding, TakesLineMarkersOfAPreprocessorAlone) {
  for (const char* const line : {"# 1 \"a.c\"", "#line 1 \"a.c\" 2", "\t# 01  \"\"\t1 3 \r",
                                 "#line1 \"a b\"", "# line 7 \"a.c\""})
    EXPECT_EQ(complaints(good + line + '\n'), "") << line;
  for (const char* const line :
       {"#", "#define X", "# 1", "#line 1", "#1\"a.c\"", "# 1 \"a.c\" // c", "# 1 \"a.c\" -2",
        "# 0x1 \"a.c\"", "# 1 a.c", "# 1 \"a", "#pragma once", "#LINE 1 \"a\""})
    EXPECT_EQ(complaints(line + "\n"s + good),
              "1:1 a preprocessor's line: expected PTX or a line marker such as # 1 \"k.cu\", "
              "found '" +
                  std::string(line) + "'\n");
  EXPECT_NE(complaints(good + "# 1 \"a.c\""), "");  // without its line break
}

TEST(Ascii, ReplacesAllElse) {
  EXPECT_EQ(ascii("k.cu"), "k.cu");
  EXPECT_EQ(ascii("gr\xC3\xB6\xC3\x9F"
                  "e.cu"),
            "gr\\303\\266\\303\\237e.cu");
  EXPECT_EQ(ascii("a\nb\x7F"), "a\\012b\\177");
}

TEST(Ascii, IsReadBack) {
  for (const char* const name : {"k.cu",
                                 "gr\xC3\xB6\xC3\x9F"
                                 "e.cu",
                                 "C:\\temp\\100.cu", "\\30"})
    EXPECT_EQ(from_ascii(ascii(name)), name);
}

}  // namespace
}  // namespace tartan::ptx
