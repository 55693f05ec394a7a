// SPDX-License-Identifier: Apache-2.0
// `tartan layout` of a matrix in shared memory: known costs of row strides (32, 64 and 128 bytes
// cost 2, 4 and 8 passes, 144 bytes or a 128-byte swizzle one), and rejected layouts.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/tools/layout_command.h"

namespace tartan {
namespace {

std::string last_lines(const std::string& tile, const std::string& more = "") {
  const auto outcome = layout_test::run("layout \"" + tile + "\" " + more, true);
  const auto at = outcome.out.find("ldmatrix");
  return at == std::string::npos ? outcome.out : outcome.out.substr(at);
}

TEST(SharedTile, KnownCosts) {
  const std::string free =
      "ldmatrix, 8 rows of 16 bytes: no bank conflicts\n16-byte copies, 8 lanes: no bank "
      "conflicts\n";
  EXPECT_EQ(last_lines("64x16:(16,1)").substr(0, 49),
            "ldmatrix, 8 rows of 16 bytes: 2 passes instead of");
  EXPECT_EQ(last_lines("64x32:(32,1)").substr(0, 49),
            "ldmatrix, 8 rows of 16 bytes: 4 passes instead of");
  EXPECT_EQ(last_lines("64x64:(64,1)").substr(0, 49),
            "ldmatrix, 8 rows of 16 bytes: 8 passes instead of");
  EXPECT_EQ(last_lines("64x64:(72,1)"), free);
  EXPECT_EQ(last_lines("64x64:(64,1) swizzle<3,3,3>"), free);
  EXPECT_EQ(last_lines("64x32:(32,1) swizzle<2,3,3>"), free);
  EXPECT_EQ(last_lines("64x16:(16,1) swizzle<1,3,3>"), free);
  EXPECT_EQ(last_lines("64x128:(128,1) swizzle<3,3,4>"), free);
  EXPECT_EQ(last_lines("64x64:(64,1) swizzle<2,4,3>", "--type s8"), free);
  EXPECT_EQ(last_lines("64x64:(64,1)", "--type s8").substr(0, 46),
            "ldmatrix, 8 rows of 16 bytes: 4 passes instead");
}

TEST(SharedTile, BankGroups) {
  const auto outcome = layout_test::run("layout \"8x32:(32,1) swizzle<2,3,3>\"");
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find("ldmatrix")),
            "8x32:(32,1) swizzle<2,3,3> of f16: bank group of each 16-byte chunk (8 elements)\n  "
            "row 0 1 2 3\n    0 0 1 2 3\n    1 4 5 6 7\n    2 1 0 3 2\n    3 5 4 7 6\n    4 2 3 0 "
            "1\n    5 6 7 4 5\n    6 3 2 1 0\n    7 7 6 5 4\n");
}

// Core matrices of eight rows of 16 bytes: ldmatrix reads one without conflicts, and a copy of a
// whole row hits the same banks in each of them.
TEST(SharedTile, NestedRowsAndColumns) {
  const auto outcome = layout_test::run("layout \"((8,2),(8,4)):((8,256),(1,64))\"");
  EXPECT_EQ(
      outcome.out,
      "((8,2),(8,4)):((8,256),(1,64)) of f16: bank group of each 16-byte chunk (8 elements)\n  row "
      "0 1 2 3\n    0 0 0 0 0\n    1 1 1 1 1\n    2 2 2 2 2\n    3 3 3 3 3\n    4 4 4 4 4\n    5 5 "
      "5 5 5\n    6 6 6 6 6\n    7 7 7 7 7\n    8 0 0 0 0\n    9 1 1 1 1\n   10 2 2 2 2\n   11 3 3 "
      "3 3\n   12 4 4 4 4\n   13 5 5 5 5\n   14 6 6 6 6\n   15 7 7 7 7\nldmatrix, 8 rows of 16 "
      "bytes: no bank conflicts\n16-byte copies, 8 lanes: 4 passes instead of 1\n");
  const auto json = layout_test::layout_json("\"((8,2),(8,4)):((8,256),(1,64))\"");
  EXPECT_EQ(json["layout"], "((8,2),(8,4)):((8,256),(1,64))");
  EXPECT_EQ(json["copy_passes"], 4);
  EXPECT_EQ(json["groups"][9], (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(last_lines("((8,8),(8,8)):((1,64),(8,512))").substr(0, 20), "ldmatrix, 8 cols of ");
  // The same tile in both notations.
  EXPECT_EQ(last_lines("(64,(16,2)):(32,(1,16)) swizzle<2,3,3>"),
            last_lines("64x32:(32,1) swizzle<2,3,3>"));
}

TEST(SharedTile, Picture) {
  const std::string path = testing::TempDir() + "/shared_tile_picture.svg";
  const auto outcome = layout_test::run("layout \"8x64:(64,1) swizzle<3,3,3>\" --svg " + path);
  EXPECT_EQ(outcome.code, 0);
  std::ifstream in(path);
  const std::string svg(std::istreambuf_iterator<char>(in), {});
  std::remove(path.c_str());
  const auto count = [&](const std::string& what) {
    int out = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1))
      ++out;
    return out;
  };
  EXPECT_TRUE(svg.starts_with("<svg")) << svg.substr(0, 100);
  EXPECT_NE(svg.find("swizzle&lt;3,3,3&gt;"), std::string::npos);
  for (int group = 0; group < 8; ++group)  // eight of each, in eight colours
    EXPECT_EQ(count("hsl(" + std::to_string(45 * group) + ","), 8) << group;
}

TEST(SharedTile, RejectsInvalidTiles) {
  for (const char* tile :
       {"((8,8),(4,16)):((4,512),(1,32))", "((8,8),(8,8)):((8,512),(1,64)", "(8,8,8):(64,8,1)",
        "64x64:(68,1)", "8x64:(64,1) swizzle<3,2,3>", "64x", "64x32", "64x32:(33,2)", "0x8:(8,1)",
        "8x12:(12,1)", "8x32:(32,1) swizzle<3,3,1>", "99999x8:(8,1)", "8x32:(32,1) more"}) {
    const auto outcome = layout_test::run(std::string("layout \"") + tile + "\"", true);
    EXPECT_EQ(outcome.code, 2) << tile;
    EXPECT_NE(outcome.out.find("[usage]"), std::string::npos) << tile << outcome.out;
  }
}

}  // namespace
}  // namespace tartan
