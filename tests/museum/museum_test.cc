// SPDX-License-Identifier: Apache-2.0
// The bug museum: mistakes that public projects shipped and later reported. Each folder here holds
// a small kernel with the mistake, its right twin, and a manifest for each. pieces.json says where
// the mistake was reported, which finding it should have (`expected`), what the emulator said
// before it had a race detector for all memory (`before`), and what it says now (`found`): the ids
// of the findings, "mismatch" where only the numbers are wrong, "silent" where nothing shows. A
// test fails where `found` is not true any more, also where it got better: TARTAN_REBASE=1 writes
// `found` and docs/museum.md anew; then read the difference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/outcome.h"
#include "tartan/verify/verify.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

const std::string museum = SOURCE_ROOT "/tests/museum/";
const std::string record = museum + "pieces.json";

const Json& pieces() {
  static const Json all = Json::parse(test::read_file(record));
  return all;
}

std::string text_of(const Json& piece, const char* field) {
  return piece.at(field).get<std::string>();
}

/// Of wrong.ptx or right.ptx.
std::string kernel_path(const Json& piece, const std::string& side) {
  return museum + text_of(piece, "name") + "/" + side + ".ptx";
}

Outcome run_side(const Json& piece, const std::string& side) {
  const auto manifest = read_manifest(museum + text_of(piece, "name") + "/" + side + ".json");
  if (!manifest) return refused(manifest.diags());
  return run(*manifest, "emulator", {.max_steps = 200'000, .threads = 1, .checks = Checks::all});
}

/// As `found` has it.
std::string verdict(const Outcome& outcome) {
  std::string ids;
  std::set<std::string> seen;
  for (const Finding& finding : outcome.findings)
    if (seen.insert(finding.id).second) ids += (ids.empty() ? "" : ", ") + finding.id;
  if (!ids.empty()) return ids;
  if (outcome.expectations.empty()) return "refused: " + outcome.complaints(false);
  return outcome.exit_code() == 0 ? "silent" : "mismatch";
}

const std::vector<Outcome>& wrong_outcomes() {
  static const std::vector<Outcome> all = [] {
    std::vector<Outcome> out;
    for (const Json& piece : pieces()) out.push_back(run_side(piece, "wrong"));
    return out;
  }();
  return all;
}

bool is_found(const std::string& expected, const std::string& found) {
  return (", " + found + ", ").find(", " + expected + ", ") != std::string::npos;
}

// ---- The texts: a comment of what is wrong or right, then the code.

Lines lines_of(const std::string& path) {
  std::istringstream in(test::read_file(path));
  Lines out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// The comment at the top without the licence, as lines.
Lines comment(const std::string& path) {
  Lines out;
  for (const std::string& line : lines_of(path)) {
    if (!line.starts_with("// ")) break;
    if (line.find("SPDX") == std::string::npos) out.push_back(line.substr(3));
  }
  return out;
}

std::string joined(const Lines& lines, const char* between) {
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : between) + line;
  return out;
}

/// What the two texts differ in: declarations of registers and the comment at the top aside.
Lines code(const std::string& path) {
  const Lines all = lines_of(path);
  Lines out;
  bool registers = false;
  for (std::size_t i = 1 + comment(path).size(); i < all.size(); ++i) {
    registers = registers || all[i].starts_with("\t.reg ");
    if (!registers) out.push_back(all[i].starts_with('\t') ? "  " + all[i].substr(1) : all[i]);
    if (registers && all[i].ends_with(';')) registers = false;
  }
  return out;
}

/// Both texts in one: ' ' before what they share, '-' and '+' before what only one of them has.
Lines merged(const Lines& was, const Lines& is) {
  const std::size_t rows = was.size(), columns = is.size();
  std::vector<std::vector<int>> common(rows + 1, std::vector<int>(columns + 1));
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      common[i][j] =
          was[i] == is[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  Lines out;
  for (std::size_t i = 0, j = 0; i < rows || j < columns;) {
    if (i < rows && j < columns && was[i] == is[j]) {
      out.push_back(" " + was[i++]);
      ++j;
    } else if (j == columns || (i < rows && common[i + 1][j] >= common[i][j + 1])) {
      out.push_back("-" + was[i++]);
    } else {
      out.push_back("+" + is[j++]);
    }
  }
  return out;
}

/// The changed lines, each with two lines around it.
std::string difference(const Json& piece) {
  constexpr std::size_t around = 2;
  const Lines both = merged(code(kernel_path(piece, "wrong")), code(kernel_path(piece, "right")));
  std::string out;
  std::size_t shown = 0;  // lines up to here are written or left out
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (both[i][0] == ' ') continue;
    const std::size_t from = std::max(shown, i < around ? 0 : i - around);
    if (from > shown && !out.empty()) out += " ...\n";
    for (shown = from; shown < both.size() && shown <= i + around; ++shown)
      out += both[shown].substr(0, both[shown].find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

// ---- docs/museum.md

constexpr const char* page_head = R"(<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by tests/museum/museum_test.cc: TARTAN_REBASE=1 writes it anew. -->
# The bug museum

{0} mistakes that public projects shipped and later reported, each as a small PTX kernel of our own
in [tests/museum](../tests/museum) beside its right twin. To see one:

```text
tartan run tests/museum/parity-restarts-per-tile/wrong.json --device emulator
```

`tartan run` checks the text, runs the kernel on the emulator and compares the results. *Expected*
is the finding that the mistake should have. *Before* is the verdict of the command before it had a
race detector for all memory, *now* is that of this version. A verdict is the ids of the findings
([diagnostics.md](diagnostics.md)), "mismatch" where only the numbers are wrong, and "silent" where
nothing shows. {1} of {0} have the expected finding now, {2} had it before.

*compute-sanitizer* names the tools of NVIDIA's checker that reported anything about the wrong
kernel on an H100 (CUDA 13.0: racecheck, synccheck, memcheck, initcheck): {3} of {0}. "hangs" means
that none of them ended within a minute. It also reported a hazard in two right twins,
arrive-for-an-empty-tile and arrive-by-every-lane. On that GPU every right twin computes the
expected numbers.

)";

std::string page_table() {
  std::string out =
      "| Mistake | Expected | Before | Now | compute-sanitizer |\n|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < pieces().size(); ++i) {
    const Json& piece = pieces()[i];
    out += fmt::format("| [{}](#{}) | `{}` | {} | {} | {} |\n", text_of(piece, "title"),
                       text_of(piece, "name"), text_of(piece, "expected"), text_of(piece, "before"),
                       verdict(wrong_outcomes()[i]), text_of(piece, "sanitizer"));
  }
  return out;
}

std::string url(const Json& thread) {
  const std::string where = text_of(thread, "thread");
  const std::size_t hash = where.find('#');
  return fmt::format("https://github.com/{}/{}/{}", where.substr(0, hash),
                     text_of(thread, "kind") == "pull" ? "pull" : "issues", where.substr(hash + 1));
}

/// Lines of at most 100 columns, where the words allow that; `indent` begins all but the first.
std::string wrapped(const std::string& text, const std::string& indent = "") {
  std::istringstream in(text);
  std::string out, word;
  std::size_t column = 0;
  while (in >> word) {
    const bool fits = column + 1 + word.size() <= 100;
    if (column > 0) out += fits ? " " : "\n" + indent;
    column = (column == 0 ? 0 : fits ? column + 1 : indent.size()) + word.size();
    out += word;
  }
  return out + "\n";
}

std::string reports(const Json& piece) {
  std::string out;
  for (const Json& thread : piece.at("reported"))
    out += wrapped(fmt::format("- [{}]({}), \"{}\"", text_of(thread, "thread"), url(thread),
                               text_of(thread, "title")),
                   "  ");
  return out;
}

std::string said(const Outcome& outcome) {
  if (outcome.findings.empty()) {
    std::string text = outcome.text(false);
    while (text.ends_with('\n')) text.pop_back();
    return outcome.exit_code() == 0 ? "nothing" : text;
  }
  const Finding& first = outcome.findings.front();
  return fmt::format("line {}: {} [{}]", first.line, first.message, first.id);
}

std::string section(const Json& piece, const Outcome& outcome) {
  Lines wrong = comment(kernel_path(piece, "wrong"));
  std::erase_if(wrong, [passed = false](const std::string& line) mutable {
    return passed = passed || line.starts_with("Reported:");
  });
  return fmt::format("### {}\n\n{}\n{}\n```diff\n{}```\n\n{}\n{}\n", text_of(piece, "name"),
                     wrapped(joined(wrong, " ")), reports(piece), difference(piece),
                     wrapped(joined(comment(kernel_path(piece, "right")), " ")),
                     wrapped(fmt::format("Expected `{}`. The command says: {}",
                                         text_of(piece, "expected"), said(outcome))));
}

std::string page() {
  std::size_t now = 0, before = 0, sanitizer = 0;
  for (std::size_t i = 0; i < pieces().size(); ++i) {
    const std::string expected = text_of(pieces()[i], "expected");
    now += is_found(expected, verdict(wrong_outcomes()[i]));
    before += is_found(expected, text_of(pieces()[i], "before"));
    const std::string tools = text_of(pieces()[i], "sanitizer");
    sanitizer += tools != "silent" && tools != "hangs";
  }
  std::string out = fmt::format(page_head, pieces().size(), now, before, sanitizer) + page_table() +
                    "\n",
              topic;
  for (std::size_t i = 0; i < pieces().size(); ++i) {
    const Json& piece = pieces()[i];
    if (text_of(piece, "topic") != topic)
      out += fmt::format("## {}\n\n", topic = text_of(piece, "topic"));
    out += section(piece, wrong_outcomes()[i]);
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

// ---- Tests.

TEST(Museum, EachRightTwinPassesWithTheRightNumbers) {
  for (const Json& piece : pieces()) {
    const Outcome outcome = run_side(piece, "right");
    EXPECT_EQ(verdict(outcome), "silent") << text_of(piece, "name") << "\n"
                                          << outcome.complaints(false) << outcome.text(false);
    EXPECT_TRUE(outcome.warnings.empty()) << text_of(piece, "name");
    const auto source =
        std::make_shared<const Source>("right.ptx", test::read_file(kernel_path(piece, "right")));
    EXPECT_EQ(verify::check(source).text(), "") << text_of(piece, "name");
  }
}

// Silent ones too: the record says what is not found yet.
TEST(Museum, EachMistakeIsJudgedAsRecorded) {
  Json now = pieces();
  for (std::size_t i = 0; i < now.size(); ++i) {
    now[i]["found"] = verdict(wrong_outcomes()[i]);
    if (test::rebases()) continue;
    EXPECT_EQ(text_of(now[i], "found"), text_of(pieces()[i], "found"))
        << text_of(now[i], "name") << ", expected is " << text_of(now[i], "expected") << "\n"
        << wrong_outcomes()[i].complaints(false) << "TARTAN_REBASE=1 writes the record anew";
  }
  if (test::rebases()) std::ofstream(record) << now.dump(1) << "\n";
}

TEST(Museum, TheRecordIsWhole) {
  ASSERT_GE(pieces().size(), 40u);
  std::set<std::string> names, folders;
  for (const Json& piece : pieces()) {
    const std::string name = text_of(piece, "name");
    EXPECT_TRUE(names.insert(name).second) << name;
    const std::string words = joined(comment(kernel_path(piece, "wrong")), " ");
    EXPECT_FALSE(piece.at("reported").empty()) << name;
    for (const Json& thread : piece.at("reported"))
      EXPECT_NE(words.find(text_of(thread, "thread")), std::string::npos)
          << name << " does not name " << text_of(thread, "thread");
    EXPECT_NE(difference(piece), "") << name;
  }
  for (const auto& entry : fs::directory_iterator(museum))
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  EXPECT_EQ(names, folders);
}

// Nothing here is illegal: each mistake is one that the assembler lets through.
TEST(Museum, TheAssemblerTakesEachText) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const Json& piece : pieces()) {
    for (const char* side : {"wrong", "right"}) {
      const std::string path = kernel_path(piece, side), text = test::read_file(path);
      const std::size_t at = text.find(".target ") + 8;
      const std::string command =
          fmt::format("ptxas -arch {} -o /dev/null {} > /dev/null 2>&1",
                      test::arch_of(text.substr(at, text.find('\n', at) - at)), path);
      EXPECT_EQ(std::system(command.c_str()), 0) << path;
    }
  }
}

TEST(Museum, ThePageIsFresh) { test::expect_file(SOURCE_ROOT "/docs/museum.md", page()); }

}  // namespace
}  // namespace tartan
