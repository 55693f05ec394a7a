// SPDX-License-Identifier: Apache-2.0
// The generated pages under docs/: fresh, and with nothing lost of what they sum up. (The pictures:
// tests/layout_test.cc; the diagnostics: tests/check_golden_test.cc.)
#include <algorithm>

#include "tests/layout_command.h"

namespace tartan::layout_test {
namespace {

std::string page(const std::string& name) {
  return read(std::filesystem::path(SOURCE_ROOT) / "docs" / name);
}

TEST(Docs, InstructionsAreFresh) {
  const Ran ran = run("isa --markdown");
  ASSERT_EQ(ran.code, 0);
  EXPECT_GT(ran.out.size(), 20000u);
  EXPECT_EQ(ran.out, page("isa.md")) << "stale: run docs/generate";
}

// ---- docs/isa.md written out is `tartan isa --csv`.

Words cells(const std::string& line) {
  Words out;
  for (std::size_t from = 2; from < line.size();) {
    const std::size_t end = line.find(" |", from);
    out.push_back(line.substr(from, end - from));
    from = end + 3;
  }
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// Every spelling of "mma[.satfinite].{s8,u8}".
Words expand(const std::string& pattern) {
  const std::size_t open = pattern.find_first_of("{[");
  if (open == std::string::npos) return {pattern};
  const bool optional = pattern[open] == '[';
  const std::size_t close = pattern.find(optional ? ']' : '}', open);
  const std::string inside = pattern.substr(open + 1, close - open - 1);
  Words choices;
  if (optional) {
    choices = {"", inside};
  } else {
    std::istringstream list(inside);
    for (std::string word; std::getline(list, word, ',');) choices.push_back(word);
  }
  Words out;
  for (const std::string& choice : choices)
    for (std::string& text : expand(pattern.substr(0, open) + choice + pattern.substr(close + 1)))
      out.push_back(std::move(text));
  return out;
}

std::vector<int> columns(const std::string& text) {
  std::vector<int> out;
  if (text.empty()) return {0};
  const bool all = text == "; N: 8 to 256 in steps of 8";
  EXPECT_TRUE(all || text == "; N: 8, 16, 24, then 32 to 256 in steps of 16") << text;
  for (int n = 8; n <= 256; n += all || n < 32 ? 8 : 16) out.push_back(n);
  return out;
}

// The rows of the CSV that a line of the page stands for.
void write_out(const std::string& family, const Words& line,
               const std::map<std::string, std::string>& targets,
               std::multiset<std::string>& rows) {
  const std::string form = replaced(line[0], "`", "");
  const std::size_t tick = line[1].rfind('`');
  const std::string operands = replaced(line[1].substr(1, tick - 1), "\\|", "|");
  const std::string stride = "[; stride=.b32]";
  const bool optional = operands.ends_with(stride);
  const std::string plain =
      optional ? operands.substr(0, operands.size() - stride.size()) : operands;
  for (const int n : columns(line[1].substr(tick + 1)))
    for (const std::string& spelling : expand(form))
      for (const bool with_stride : {false, true}) {
        if (with_stride && !optional) continue;
        std::string given = plain + (with_stride ? "; stride=.b32" : "");
        if (n) {
          given = replaced(given, "N/2x", std::to_string(n / 2) + "x");
          given = replaced(given, "N/4x", std::to_string(n / 4) + "x");
        }
        const bool cta = spelling.find("::cta") != std::string::npos;
        const std::string version = cta ? std::max<std::string>(line[2], "7.8") : line[2];
        if (given.find(',') != std::string::npos) given = '"' + given + '"';
        rows.insert(family + "," + replaced(spelling, "nN", "n" + std::to_string(n)) + "," + given +
                    "," + version + "," + targets.at(line[3]));
      }
}

TEST(Docs, InstructionsHaveEveryForm) {
  std::map<std::string, std::string> targets;
  std::multiset<std::string> written, listed;
  std::string family;
  for (const std::string& line : lines_of(page("isa.md"))) {
    if (line.starts_with("## ")) family = line.substr(3);
    if (!line.starts_with("| ") || line.starts_with("| Form") || line.starts_with("| Targets"))
      continue;
    const Words fields = cells(line);
    if (family.empty()) targets[fields.at(0)] = fields.at(1);
    else write_out(family, fields, targets, written);
  }
  for (const std::string words : {"isa --csv", "isa wgmma --csv"}) {
    const Words rows = lines_of(run(words).out);
    listed.insert(rows.begin() + 1, rows.end());
  }
  EXPECT_EQ(listed.size(), 1542u + 2148u);
  EXPECT_EQ(written.size(), listed.size());
  std::vector<std::string> missing, extra;
  std::ranges::set_difference(listed, written, std::back_inserter(missing));
  std::ranges::set_difference(written, listed, std::back_inserter(extra));
  EXPECT_TRUE(missing.empty()) << missing.size() << ", first: " << missing.front();
  EXPECT_TRUE(extra.empty()) << extra.size() << ", first: " << extra.front();
}

// ---- The words of `tartan isa`.

TEST(Docs, IsaFiltersByFamilyAndTarget) {
  const auto rows = [](const std::string& words) {
    return lines_of(run("isa " + words).out).size() - 1;
  };
  EXPECT_EQ(rows("ldmatrix --csv"), 54u);
  EXPECT_EQ(rows("mma.sp.block_scale --csv --target sm_121a"), 54u);
  EXPECT_EQ(rows("mma.sp.block_scale --csv --target sm_121f"), 50u);
  EXPECT_EQ(rows("mma.block_scale --csv --target sm_90a"), 0u);
  EXPECT_EQ(rows("wgmma --csv --target sm_90"), 0u);
  EXPECT_EQ(rows("wgmma --csv --target sm_90a"), 2148u);
  const json table = json::parse(run("isa stmatrix --target sm_90 --json").out)["instructions"];
  EXPECT_EQ(table.size(), 18u);
  for (const json& row : table)
    EXPECT_TRUE(row["targets"].get<std::string>().starts_with("sm_90 "));
  EXPECT_EQ(lines_of(run("isa --target sm_75").out).back(),
            std::to_string(rows("--csv --target sm_75")) + " forms");
}

TEST(Docs, IsaWrongWords) {
  const Ran family = run("isa ldmatrx", true);
  EXPECT_EQ(family.code, 2);
  EXPECT_EQ(
      family.out,
      "error: there is no family ldmatrx; there are ldmatrix, stmatrix, movmatrix, wmma.load, "
      "wmma.store, wmma.mma, mma, mma.block_scale, mma.sp, mma.sp.block_scale, wgmma [usage]\n");
  const Ran target = run("isa --target sm_91a", true);
  EXPECT_EQ(target.code, 2);
  EXPECT_EQ(target.out,
            "error: --target sm_91a: there is no such target; the nearest is sm_90a [usage]\n");
  EXPECT_EQ(run("isa mma --markdown", true).code, 2);
}

}  // namespace
}  // namespace tartan::layout_test
