// SPDX-License-Identifier: Apache-2.0
// `tartan print`: canonical text of every recorded program, with the same machine code.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "tartan/ptx/parser.h"
#include "tests/paths.h"
#include "tests/support/machine_code.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> recorded() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(TEST_DATA))
    if (entry.path().extension() == ".ptx") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// The canonical text; empty for text that is invalid on purpose.
std::string printed(const std::string& text, const ptx::PrintOptions& options) {
  Diags diags;
  const auto module = ptx::parse(std::make_shared<const Source>("x.ptx", text), diags);
  return diags.ok() ? ptx::print(module, options) : "";
}

TEST(Print, RecordedProgramsAreFixedPoints) {
  int seen = 0;
  for (const fs::path& path : recorded()) {
    const std::string text = test::read_file(path.string());
    for (const bool strip : {false, true}) {
      const std::string once = printed(text, {strip});
      if (once.empty()) continue;
      ++seen;
      EXPECT_EQ(printed(once, {strip}), once) << path;
      EXPECT_EQ(printed(once, {true}), printed(text, {true})) << path;
    }
  }
  EXPECT_GE(seen, 100);
}

TEST(Print, RecordedProgramsKeepTheirMachineCode) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  const std::string at = (fs::temp_directory_path() / fmt::format("tartan_print_{}", getpid()));
  const auto code = [&](const std::string& text, const std::string& arch) {
    std::ofstream(at + ".ptx") << text;
    return test::assemble(at, arch);
  };
  int same = 0;
  for (const fs::path& path : recorded()) {
    // Invalid on purpose; spellings for the parser, which are not programs.
    const fs::path parent = path.parent_path();
    const std::string folder = parent.filename();
    if (path.filename().string().starts_with("bad-") || folder == "ptx" || folder == "sweep" ||
        parent.parent_path().filename() == "cases" || parent.parent_path().filename() == "hostile")
      continue;
    const std::string text = test::read_file(path.string());
    Diags diags;
    const auto module = ptx::parse(std::make_shared<const Source>("x.ptx", text), diags);
    ASSERT_TRUE(diags.ok()) << path;
    const std::string arch(module.targets.at(0));
    const auto before = code(text, arch);
    EXPECT_FALSE(before.empty()) << path;
    for (const bool strip : {false, true})
      EXPECT_EQ(before == code(ptx::print(module, {strip}), arch), true) << path << " " << strip;
    ++same;
  }
  fs::remove(at + ".ptx");
  EXPECT_GE(same, 30);
}

constexpr const char* debug_text = R"(
.version 8.0  // a comment
.target sm_90a, debug
.address_size 64
	.file	1 "kernel.cu"
.visible .entry k()
{
	.reg .b32 	%r<2>; .reg .pred %p;
	.loc	1 3 7
	mov.u32 	%r1,%tid.x; @ !%p bra $L;
	.loc	1 4 1, function_name $L__info_string0, inlined_at 1 3 7
$L: ret;
}
.section .debug_str
{
$L__info_string0:
.b8 107,0
}
)";

class PrintCommand : public testing::Test {
 protected:
  PrintCommand() : folder(fs::temp_directory_path() / fmt::format("tartan_printed_{}", getpid())) {
    fs::create_directories(folder);
    std::ofstream(folder / "debug.ptx") << debug_text;
  }
  ~PrintCommand() override { fs::remove_all(folder); }

  test::Ran print(const std::string& words) {
    return test::shell(
        fmt::format("cd {} && {} print {} 2>&1", folder.string(), TARTAN_COMMAND, words));
  }
  std::string read(const std::string& name) { return test::read_file((folder / name).string()); }

  fs::path folder;
};

constexpr const char* stripped_text = R"(.version 8.0
.target sm_90a
.address_size 64

.visible .entry k()
{
	.reg .b32 %r<2>;
	.reg .pred %p;
	mov.u32 %r1, %tid.x;
	@!%p bra $L;
$L:
	ret;
}
)";

TEST_F(PrintCommand, WritesCanonicalText) {
  const test::Ran whole = print("debug.ptx");
  EXPECT_EQ(whole.code, 0);
  for (const char* part : {".target sm_90a, debug\n", ".loc", ".file", ".section .debug_str"})
    EXPECT_NE(whole.out.find(part), std::string::npos) << part;
  EXPECT_EQ(whole.out.find("comment"), std::string::npos);
  const test::Ran stripped = print("--strip-debug - < debug.ptx");
  EXPECT_EQ(stripped.code, 0);
  EXPECT_EQ(stripped.out, stripped_text);
}

TEST_F(PrintCommand, WritesFiles) {
  EXPECT_EQ(print("debug.ptx --strip-debug -o out.ptx").out, "");
  EXPECT_EQ(read("out.ptx"), stripped_text);
  EXPECT_EQ(print("out.ptx -o out.ptx").code, 0);  // in place
  EXPECT_EQ(read("out.ptx"), stripped_text);
  EXPECT_EQ(print("out.ptx -o /no/such/folder/x").code, 2);
}

TEST_F(PrintCommand, RejectsInvalidPtx) {
  std::ofstream(folder / "wrong.ptx") << ".version 8.0\n.target sm_90a\nnonsense;\n";
  const test::Ran wrong = print("wrong.ptx -o out.ptx");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(wrong.out.starts_with("wrong.ptx:3:1: error: expected a directive")) << wrong.out;
  EXPECT_FALSE(fs::exists(folder / "out.ptx"));
  EXPECT_EQ(print("none.ptx").code, 2);
  EXPECT_EQ(print("").code, 2);
}

}  // namespace
}  // namespace tartan
