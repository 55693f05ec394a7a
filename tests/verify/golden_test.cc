// SPDX-License-Identifier: Apache-2.0
// The exact output of `check` for wrong kernels: tests/data/check/bad-NAME.ptx and its expected
// bad-NAME.txt. TARTAN_REBASE=1 in the environment writes the expectations; then read the diff.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "tartan/verify/verify.h"
#include "tests/paths.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

using test::expect_file;
using test::read_file;

std::vector<fs::path> kernels(const std::string& prefix) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(TEST_DATA "/check"))
    if (entry.path().extension() == ".ptx" && entry.path().filename().string().starts_with(prefix))
      out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// The table lists rules for PTX first, then those for kernels in C++, and those of launches. Of
// these a text alone may break some.
bool is_of_ptx(const Rule& rule) {
  return &rule < &"kernel-name"_rule || &rule == &"matrix-descriptor"_rule ||
         &rule == &"instruction-descriptor"_rule || &rule == &"tensor-memory"_rule;
}

TEST(CheckGolden, WrongKernels) {
  const auto files = kernels("bad-");
  ASSERT_GE(files.size(), 10u);
  std::set<std::string_view> ids;
  for (const fs::path& path : files) {
    const Diags diags =
        verify::check(std::make_shared<const Source>(path.filename().string(), read_file(path)));
    EXPECT_FALSE(diags.empty()) << path;
    std::string text;
    for (const Diag& diag : diags) {
      ids.insert(diag.id);
      EXPECT_GT(diag.place.line, 0);
      EXPECT_GT(diag.place.column, 0);
      EXPECT_TRUE(find_rule(diag.id)) << diag.id;
      text += to_string(diag) + "\n";
    }
    fs::path expected = path;
    expect_file(expected.replace_extension(".txt"), text);
  }
  for (const Rule& rule : rules)
    EXPECT_EQ(ids.contains(rule.id), is_of_ptx(rule))
        << rule.id << ": expected an example in tests/data/check of each rule that PTX can break, "
        << "and of no other";
}

// tests/data/check/good-NAME.ptx: legal, without any diagnostic.
TEST(CheckGolden, RightKernels) {
  const auto files = kernels("good-");
  ASSERT_GE(files.size(), 3u);
  for (const fs::path& path : files) {
    const Diags diags =
        verify::check(std::make_shared<const Source>(path.filename().string(), read_file(path)));
    EXPECT_TRUE(diags.empty()) << diags.text();
  }
}

// Of a long line only the part around the place is shown, with the caret under it.
TEST(CheckGolden, LongLines) {
  std::string text = ".version 8.4 .target sm_80 .visible .entry k() { .reg .b32 %r<9>; ";
  for (int i = 0; i < 20000; ++i) text += "mov.u32 %r1, %x; ";
  verify::Options options;
  const auto source = std::make_shared<const Source>("long", text + "ret; }");
  const Diags all = verify::check(source, options);
  EXPECT_EQ(all.size(), 20000u);
  EXPECT_LT(all.text().size(), 20000u * 600);
  const Diag& last = all[all.size() - 1];
  EXPECT_EQ(last.source.substr(static_cast<std::size_t>(last.caret - 1), 2), "%x");
  options.max_errors = 3;
  EXPECT_EQ(verify::check(source, options).size(), 3u);
}

// Former exponential or quadratic time in the number of instructions.
TEST(CheckGolden, LongChains) {
  std::string text =
      ".version 8.4 .target sm_90a .shared .align 16 .b8 s[65536]; .shared .align 16 .b8 t[64];\n"
      ".visible .entry k(.param .u64 p) { .reg .b32 %r<200>; .reg .b64 %d; .reg .pred %p;\n"
      "mov.u32 %r0, %tid.x; mov.u32 %r100, s;\n";
  for (int i = 1; i < 90; ++i)
    text += fmt::format(
        "add.u32 %r{0}, %r{1}, %r{1}; mad.lo.u32 %r1{0:02}, %r1{1:02}, 1, %r1{1:02};", i, i - 1);
  text += "setp.eq.u32 %p, %r89, 1; @%p bar.sync 1, 32; ld.param.u64 %d, [p];\n";
  for (int i = 0; i < 20000; ++i)
    text += fmt::format(
        "st.shared.u32 [s+{}], %r1; cp.async.bulk.global.shared::cta.bulk_group [%d], [t], 64;\n",
        4 * (i % 16384));
  verify::check(std::make_shared<const Source>("chains", text + "ret; }"));
}

TEST(CheckGolden, UndocumentedAllowed) {
  verify::Options options;
  options.levels.set("undocumented-form"_rule, Level::Warning);
  const fs::path path = TEST_DATA "/check/bad-undocumented.ptx";
  const Diags diags =
      verify::check(std::make_shared<const Source>("bad", read_file(path)), options);
  EXPECT_TRUE(diags.ok());
  EXPECT_EQ(diags.count(Level::Warning), 3u);
}

TEST(CheckGolden, MaxErrors) {
  verify::Options options;
  options.max_errors = 2;
  const Diags diags = verify::check(
      std::make_shared<const Source>("bad", read_file(TEST_DATA "/check/bad-operands.ptx")),
      options);
  EXPECT_EQ(diags.count(Level::Error), 2u);
}

TEST(CheckGolden, ProgramsAreClean) {
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(TEST_DATA "/programs")) {
    if (entry.path().extension() != ".ptx") continue;
    ++seen;
    const Diags diags = verify::check(
        std::make_shared<const Source>(entry.path().string(), read_file(entry.path())));
    for (const Diag& diag : diags) EXPECT_EQ(diag.level, Level::Note) << to_string(diag);
  }
  EXPECT_GE(seen, 2);
}

// docs/diagnostics.md is what `tartan check --rules` prints.
TEST(CheckGolden, RulesDocumented) {
  const std::string output = ::testing::TempDir() + std::to_string(getpid()) + "_tartan_rules.md";
  ASSERT_EQ(std::system(fmt::format("{} check --rules > {}", TARTAN_COMMAND, output).c_str()), 0);
  const std::string text = read_file(output);
  std::remove(output.c_str());
  for (const Rule& rule : rules)
    EXPECT_NE(text.find(fmt::format("`{}`", rule.id)), std::string::npos) << rule.id;
  expect_file(SOURCE_ROOT "/docs/diagnostics.md", text);
}

}  // namespace
}  // namespace tartan
