// SPDX-License-Identifier: Apache-2.0
// The generated pages under docs/: up to date and complete. (The pictures:
// tests/isa/layout_test.cc; the diagnostics: tests/verify/golden_test.cc.)
#include <algorithm>

#include "tests/tools/layout_command.h"

namespace tartan::layout_test {
namespace {

std::string page(const std::string& name) {
  return read_file(std::filesystem::path(SOURCE_ROOT) / "docs" / name);
}

TEST(Docs, InstructionsAreFresh) {
  const Ran ran = run("isa --markdown");
  ASSERT_EQ(ran.code, 0);
  EXPECT_GT(ran.out.size(), 20000u);
  EXPECT_EQ(ran.out, page("isa.md")) << "stale: run docs/generate";
}

TEST(Docs, OpcodesAreFresh) {
  const Ran ran = run("isa --opcodes --markdown");
  ASSERT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, page("opcodes.md")) << "stale: run docs/generate";
}

// ---- docs/isa.md, expanded, is `tartan isa --csv`.

Words cells(const std::string& line) {
  Words out;
  for (std::size_t from = 2; from < line.size();) {
    const std::size_t end = line.find(" |", from);
    out.push_back(line.substr(from, end - from));
    from = end + 3;
  }
  return out;
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

// The rows of the CSV that a line of the page represents.
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
  EXPECT_EQ(listed.size(), 1553u + 2148u);
  EXPECT_EQ(written.size(), listed.size());
  std::vector<std::string> missing, extra;
  std::ranges::set_difference(listed, written, std::back_inserter(missing));
  std::ranges::set_difference(written, listed, std::back_inserter(extra));
  EXPECT_TRUE(missing.empty()) << missing.size() << ", first: " << missing.front();
  EXPECT_TRUE(extra.empty()) << extra.size() << ", first: " << extra.front();
}

// ---- The arguments of `tartan isa`.

TEST(Docs, IsaFiltersByFamilyAndTarget) {
  const auto rows = [](const std::string& words) {
    return lines_of(run("isa " + words).out).size() - 1;
  };
  EXPECT_EQ(rows("ldmatrix --csv"), 63u);
  EXPECT_EQ(rows("mma.sp.block_scale --csv --target sm_121a"), 55u);
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

TEST(Docs, IsaInvalidArguments) {
  const Ran family = run("isa ldmatrx", true);
  EXPECT_EQ(family.code, 2);
  EXPECT_EQ(family.out, "error: unknown instruction ldmatrx; the nearest is ldmatrix [usage]\n");
  const Ran target = run("isa --target sm_91a", true);
  EXPECT_EQ(target.code, 2);
  EXPECT_EQ(target.out, "error: --target sm_91a: unknown target; the nearest is sm_90a [usage]\n");
  EXPECT_EQ(run("isa mma --markdown", true).code, 2);
}

// The memory effects of cp.async.bulk, from the table alone.
TEST(Docs, IsaShowsTheEffectsOfAnInstruction) {
  const std::string text = run("isa cp.async.bulk").out;
  for (const std::string_view line :
       {"cp.async.bulk: 10 forms\n",
        "\ncp.async.bulk.global.shared::cta.bulk_group{.weak}{.L2::cache_hint}{.cp_mask} [dst], "
        "[src], size{, policy}{, byte_mask}\n  since      PTX 8.0, sm_90 on\n"
        "             .weak: PTX 9.3, sm_90 on\n"
        "             .cp_mask: PTX 8.6, sm_100 on\n",
        "\n  dst        address; in .shared; written\n",
        "\n  size       register or integer; .u32; 0 to 1048560; a multiple of 16\n",
        "\n  memory     writes [dst], size bytes, through the async proxy, complete with a phase "
        "of "
        "the mbarrier, by complete_tx\n",
        "             reads [src], size bytes, through the async proxy, complete after "
        "cp.async.bulk.wait_group\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  const json all = json::parse(run("isa cp.async.bulk --json").out);
  EXPECT_EQ(all["opcode"], "cp.async.bulk");
  EXPECT_EQ(all["control"], "falls_through");
  ASSERT_EQ(all["forms"].size(), 10u);
  const json& effect = all["forms"][0]["memory"][0];
  EXPECT_EQ(effect["access"], "write");
  EXPECT_EQ(effect["operand"], "dst");
  EXPECT_EQ(effect["bytes"], "size");
  EXPECT_EQ(effect["proxy"], "async");
  EXPECT_EQ(effect["completion"], "mbarrier");
  EXPECT_TRUE(all["forms"][0]["targets"].get<std::string>().starts_with("sm_90 sm_90a "));
}

TEST(Docs, IsaShowsFormsOfEveryInstruction) {
  EXPECT_EQ(lines_of(run("isa add.f32 --target sm_90").out).front(), "add: 1 form");
  EXPECT_EQ(lines_of(run("isa ret").out).front(), "ret: 1 form; returns from the function");
  EXPECT_EQ(run("isa cp.async.bulk --target sm_80").out, "cp.async.bulk: 0 forms\n");
  const Words all = lines_of(run("isa --opcodes").out);
  EXPECT_EQ(all.back(), std::to_string(all.size() - 1) + " instructions");
  EXPECT_GT(all.size(), 213u);
  const auto ends = [&](std::string_view name, std::string_view with) {
    return std::ranges::any_of(all, [&](const std::string& line) {
      return line.starts_with(std::string(name) + ' ') && line.ends_with(with);
    });
  };
  EXPECT_TRUE(ends("ldmatrix", "; reads"));
  EXPECT_TRUE(ends("stmatrix", "; writes"));
  EXPECT_TRUE(
      ends("wgmma.mma_async", "; reads through the async proxy, complete after wgmma.wait_group"));
  EXPECT_TRUE(ends("exit", "ends the thread"));
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const std::string name = all[i].substr(0, all[i].find(' '));
    EXPECT_EQ(run("isa " + (name == "wgmma.mma_async" ? "wgmma" : name)).code, 0) << name;
  }
}

TEST(Docs, HelpIsACommandToo) {
  EXPECT_EQ(run("help").out, run("--help").out);
  EXPECT_EQ(run("help check").out, run("check --help").out);
  EXPECT_EQ(run("version", true).out,
            "error: unknown command version; the option is --version [usage]\n");
}

TEST(Docs, IsaRejectsUnknownQualifiers) {
  const auto complaint = [](const std::string& words) { return run("isa " + words, true).out; };
  EXPECT_EQ(complaint("cp.asynk"),
            "error: unknown instruction cp.asynk; the nearest is cp.async [usage]\n");
  EXPECT_EQ(complaint("add.foo"), "error: add does not accept .foo [usage]\n");
  EXPECT_EQ(complaint("add.lo.f32").substr(0, 28), "error: add does not accept .");
  EXPECT_EQ(complaint("add --csv"), "error: isa: --csv lists matrix forms only [usage]\n");
  EXPECT_EQ(run("isa add --opcodes", true).code, 2);
}

}  // namespace
}  // namespace tartan::layout_test
