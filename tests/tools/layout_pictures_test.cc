// SPDX-License-Identifier: Apache-2.0
// `tartan layout` at several widths, with colours and without: tests/data/layout.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/tools/layout_command.h"

namespace tartan::layout_test {
namespace {

const std::string golden = std::string(TEST_DATA) + "/layout/";
constexpr const char* mma = "mma.m16n8k16.row.col.f32.f16.f16.f32";
constexpr const char* wide = "wgmma.mma_async.m64n32k16.f32.f16.f16 --operand d";
constexpr const char* tensor = "tcgen05.ld.16x256b.x2.b32";
constexpr const char* tile = "'8x512:(512,1) swizzle<3,3,3>' --type f16";

std::string shown(const std::string& environment, const std::string& words) {
  const Ran ran = test::shell(environment + " " + TARTAN_COMMAND + " " + words + " 2>&1");
  EXPECT_EQ(ran.code, 0) << words << "\n" << ran.out;
  return ran.out;
}

// Columns that a line takes on the terminal: without escapes, a half block as one.
std::size_t columns_of(const std::string& line) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') {
      i = line.find('m', i);
      continue;
    }
    columns += (static_cast<unsigned char>(line[i]) & 0xC0) != 0x80;
  }
  return columns;
}

// A row, or the heading of the columns.
bool is_of_a_matrix(const std::string& line) {
  const Words words = split(line);
  return !words.empty() &&
         (words[0] == "row" || std::regex_match(words[0], std::regex(R"(\d+(-\d+)?)")));
}

TEST(LayoutPictures, FitTheWidth) {
  for (const int width : {40, 80, 200})
    for (const char* colour : {"always", "never"})
      for (const auto& [name, words] : std::map<std::string, std::string>{
               {"mma", mma}, {"wide", wide}, {"tensor", tensor}, {"tile", tile}}) {
        const std::string text = shown("COLUMNS=" + std::to_string(width),
                                       std::string("--color ") + colour + " layout " + words);
        SCOPED_TRACE(name + " " + std::to_string(width) + " " + colour);
        for (const std::string& line : lines_of(text)) {
          const auto most = static_cast<std::size_t>(width);
          EXPECT_TRUE(columns_of(line) <= most || !is_of_a_matrix(line)) << line;
          EXPECT_TRUE(line.find('\033') == std::string::npos || colour == std::string("always"));
        }
        test::expect_file(golden + name + "-" + std::to_string(width) + "-" + colour + ".txt",
                          text);
      }
}

TEST(LayoutPictures, AllOperandsAtOnce) {
  const std::string text =
      shown("COLUMNS=80", std::string("--color always layout ") + mma + " --operand all");
  test::expect_file(golden + "all-80-always.txt", text);
  // Side by side: the three matrices begin in one line.
  bool found = false;
  for (const std::string& line : lines_of(text)) found |= split(line) == Words{"a", "b", "c,", "d"};
  EXPECT_TRUE(found) << text;
}

TEST(LayoutPictures, PicturesNeedColours) {
  const auto refused = [](const std::string& words) {
    const Ran ran = run(words, true);
    return ran.code == 2 ? ran.out : "exit code " + std::to_string(ran.code);
  };
  EXPECT_NE(refused(std::string("layout --picture ") + mma).find("--picture: expected a terminal"),
            std::string::npos);
  EXPECT_NE(refused("--color always layout --picture '64x32:(32,1)'")
                .find("--picture: an option of an instruction"),
            std::string::npos);
}

// Nothing says how wide a pipe is: tables have 16 boxes a row, as a program that reads them
// expects.
TEST(LayoutPictures, PipesHaveTables) {
  const std::string usual = shown("env -u COLUMNS", std::string("layout ") + mma);
  EXPECT_NE(usual.find("row 0        1        2"), std::string::npos);
  EXPECT_EQ(usual.find('\033'), std::string::npos);
  EXPECT_EQ(shown("env -u COLUMNS", std::string("layout ") + mma + " --operand all"), usual);
  for (const char* wrong : {"COLUMNS=0", "COLUMNS=wide", "COLUMNS=-8", "COLUMNS="})
    EXPECT_EQ(shown(wrong, std::string("layout ") + mma), usual) << wrong;
  EXPECT_EQ(shown("NO_COLOR=1 COLUMNS=1000", std::string("layout ") + mma), usual);
}

// A terminal says how wide it is, and has colours, unless NO_COLOR is set.
TEST(LayoutPictures, AskTheTerminal) {
  const auto on_terminal = [](const char* no_colour) {
    winsize size{.ws_row = 24, .ws_col = 40};
    int terminal = -1;
    const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
      unsetenv("COLUMNS");
      setenv("TERM", "xterm-256color", 1);
      no_colour ? setenv("NO_COLOR", no_colour, 1) : unsetenv("NO_COLOR");
      execl(TARTAN_COMMAND, "tartan", "layout", mma, nullptr);
      _exit(127);
    }
    std::string out;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(terminal, buffer, sizeof buffer)) > 0;)
      out.append(buffer, static_cast<std::size_t>(got));
    close(terminal);
    waitpid(child, nullptr, 0);
    return replaced(out, "\r\n", "\n");
  };
  EXPECT_EQ(on_terminal(nullptr), read_file(golden + "mma-40-always.txt"));
  EXPECT_EQ(on_terminal("1"), read_file(golden + "mma-40-never.txt"));
}

// Each half block has the colours of the lanes that the lane map gives for its two rows.
TEST(LayoutPictures, PixelsAreLanes) {
  const json layout = layout_json(std::string(mma) + " --operand a");
  std::map<std::pair<int, int>, int> lanes;
  for (const json& cell : layout["operands"][0]["cells"])
    lanes[{cell["row"], cell["col"]}] = cell["lane"];
  const std::string text =
      shown("COLUMNS=40", std::string("--color always layout ") + mma + " --operand a --picture");
  std::map<int, int> colour_of;  // from the legend
  const std::regex legend("\033\\[38;5;16;48;5;(\\d+)mT(\\d+)");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), legend);
       at != std::sregex_iterator(); ++at)
    colour_of[std::stoi((*at)[2])] = std::stoi((*at)[1]);
  ASSERT_EQ(colour_of.size(), 32u);
  int compared = 0;
  for (const std::string& line : lines_of(text)) {
    if (line.find("\u2580") == std::string::npos) continue;
    const int row = std::stoi(line);
    int upper = -1, lower = -1, col = 0;
    const std::regex part("\033\\[(38|48);5;(\\d+)m|\u2580");
    for (auto at = std::sregex_iterator(line.begin(), line.end(), part);
         at != std::sregex_iterator(); ++at) {
      if ((*at)[1].matched) {
        ((*at)[1] == "38" ? upper : lower) = std::stoi((*at)[2]);
        continue;
      }
      EXPECT_EQ(upper, colour_of[lanes.at({row, col})]) << row << " " << col;
      EXPECT_EQ(lower, colour_of[lanes.at({row + 1, col})]) << row + 1 << " " << col;
      ++col, ++compared;
    }
  }
  EXPECT_EQ(compared, 16 * 16 / 2);
}

TEST(LayoutDescriptors, SayWhatTheyMean) {
  const std::string product = "layout tcgen05.mma.cta_group::1.kind::f16 --idesc ";
  Ran ran = run(product + "0x8100490");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out,
            "instruction descriptor 0x08100490: M 128, N 64, A bf16 K-major, B bf16 K-major, D "
            "f32\n");
  // M 96.
  ran = run(product + "0x6100490");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("\nillegal: "), std::string::npos) << ran.out;
  ran = run("layout --descriptor 0x4000404000010000");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out,
            "descriptor of a tile 0x4000404000010000: start 0x0, leading offset 0x10, stride "
            "offset 0x400, 128-byte swizzle\n");
  // Without 001 in bits 46 to 48, as wgmma has it.
  ran = run("layout --descriptor 0x4000004000010000 --json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(json::parse(ran.out).at("illegal").get<std::string>().find("bits 46 to 48"),
            std::string::npos)
      << ran.out;
  for (const char* const wrong :
       {"layout tcgen05.mma.cta_group::1.kind::f16 --idesc 0x100000000", "layout --descriptor x",
        "layout mma.m16n8k16.row.col.f32.f16.f16.f32 --idesc 1", "layout"}) {
    ran = run(wrong, true);
    EXPECT_EQ(ran.code, 2) << wrong;
    EXPECT_NE(ran.out.find("[usage]"), std::string::npos) << wrong << "\n" << ran.out;
  }
}

}  // namespace
}  // namespace tartan::layout_test
