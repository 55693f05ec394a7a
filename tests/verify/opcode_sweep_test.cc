// SPDX-License-Identifier: Apache-2.0
// `check` against the assembler, statement by statement: the whole language, right and wrong, on
// pairs of target and PTX version (tests/data/isa/sweep/README.md).
//
// One test per family. The environment sets how much of it runs, and what is shown:
//   TARTAN_SWEEP=all           every statement on every pair, not one pair in some
//   TARTAN_SWEEP_SHOW=20       so many examples of each kind of disagreement (else 3)
//   TARTAN_SWEEP_BLOCK=mul     only blocks whose names begin so
//   TARTAN_SWEEP_PAIR=sm_90/8.0  only this pair
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "tartan/verify/verify.h"
#include "tests/verify/newer_sweep.h"
#include "tests/verify/opcode_sweep.h"

namespace tartan::sweep {
namespace {

const std::string folder = TEST_DATA "/isa/sweep/";

std::string setting(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

const Common& common() {
  static const Common all = read_common();
  return all;
}

struct Case {
  const Block* block = nullptr;
  std::string text;
  bool taken = false;  // by the assembler
};

// One of them: nothing, or what `check` found.
struct Finding {
  std::string id, message;
};

// Statements with both groups of CTAs share a function: neither is wrong by itself.
verify::Options options() {
  verify::Options out;
  out.levels.set("cta-group", std::nullopt);
  return out;
}

// The first error in each of the modules.
std::vector<Finding> judge_alone(const Pair& pair, const std::vector<Case>& cases) {
  std::vector<Finding> found(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto source =
        std::make_shared<const Source>(cases[i].text, module_alone(pair, cases[i].text));
    for (const Diag& diag : verify::check(source, options()))
      if (diag.level == Level::Error && found[i].id.empty())
        found[i] = {std::string(diag.id), diag.message};
  }
  return found;
}

// The verdict of `check` on each statement.
std::vector<Finding> judge(const Pair& pair, const std::vector<Case>& cases) {
  if (!cases.empty() && cases[0].block->alone) return judge_alone(pair, cases);
  std::vector<std::pair<std::string, bool>> statements;
  for (const Case& each : cases) statements.emplace_back(each.text, each.block->apart);
  const Text module = module_text(pair, statements);
  const auto source = std::make_shared<const Source>(pair.target + "-" + pair.ptx, module.text);
  std::vector<Finding> found(cases.size());
  for (const Diag& diag : verify::check(source, options())) {
    if (diag.level != Level::Error) continue;
    const auto at = module.places.find(diag.place.line);
    if (at == module.places.end()) {
      ADD_FAILURE() << pair.target << "/" << pair.ptx << ": outside of the statements, line "
                    << diag.place.line << " (" << source->line_text(diag.place.line)
                    << "): " << diag.message;
      continue;
    }
    Finding& one = found[at->second];
    if (one.id.empty()) one = {std::string(diag.id), diag.message};
  }
  return found;
}

// A difference between manual and assembler: its statements, and which of the two `check` follows.
struct Explained {
  std::string kind, family, pattern, pairs;
  mutable int used = 0;
};

// `*` stands for anything.
bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  if (rest.empty()) return true;
  for (std::size_t at = star; at <= text.size(); ++at)
    if (matches(rest, text.substr(at))) return true;
  return false;
}

// explained.txt: KIND FAMILY PAIRS : PATTERN, below a comment with the reason.
std::vector<Explained> read_explained(const std::string& family) {
  std::vector<Explained> out;
  std::ifstream in(folder + "explained.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(" : ");
    const auto words = split(line.substr(0, colon));
    if (words.at(1) == family)
      out.push_back({words.at(0), words.at(1), line.substr(colon + 3), words.at(2)});
  }
  return out;
}

struct Score {
  std::size_t cases = 0, wrongly_taken = 0, wrongly_refused = 0, explained = 0;
  std::map<std::string, std::pair<std::size_t, std::vector<std::string>>> kinds;  // with examples
};

// The opcode with its qualifiers.
std::string mnemonic_of(const std::string& text) {
  const std::size_t start = text[0] == '@' ? text.find(' ') + 1 : 0;
  return text.substr(start, std::min(text.find_first_of(" ;", start), text.size()) - start);
}

std::string opcode_of(const std::string& text) {
  const std::string mnemonic = mnemonic_of(text);
  return mnemonic.substr(0, mnemonic.find('.'));
}

void compare(const std::string& pair_name, const std::vector<Case>& cases,
             const std::vector<Explained>& explained, Score& score) {
  static const std::size_t show = std::stoul(setting("TARTAN_SWEEP_SHOW", "3"));
  const std::vector<Finding> found = judge(Pair(pair_name), cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    ++score.cases;
    if (found[i].id.empty() == one.taken) continue;
    const std::string kind = one.taken ? "refuses" : "takes";
    const auto why = std::find_if(explained.begin(), explained.end(), [&](const Explained& each) {
      return each.kind == kind && matches(each.pairs, pair_name) && matches(each.pattern, one.text);
    });
    if (why != explained.end()) {
      ++why->used, ++score.explained;
      continue;
    }
    ++(one.taken ? score.wrongly_refused : score.wrongly_taken);
    auto& [many, examples] =
        score.kinds[fmt::format("{} {} {}", one.block->name, opcode_of(one.text), kind)];
    ++many;
    const std::string example = one.text + (one.taken ? "  " + found[i].message : "");
    const bool known = std::any_of(examples.begin(), examples.end(), [&](const std::string& each) {
      return each.find("  " + one.text) != std::string::npos;
    });
    if (examples.size() < show && !known)
      examples.push_back(fmt::format("{}  {}", pair_name, example));
  }
}

std::vector<std::string> families() {
  std::vector<std::string> out;
  std::ifstream in(folder + "families.txt");
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') out.push_back(line);
  return out;
}

class OpcodeSweep : public ::testing::TestWithParam<std::string> {};

// Every pair with the statements that run on it: all of them, or one pair in `share` for each.
std::map<std::string, std::vector<Case>> cases_of(const std::string& family, std::size_t share) {
  static std::map<std::string, std::vector<Block>> kept;  // cases point at their blocks
  const std::vector<Block>& blocks = kept[family] = read_family(common(), family);
  const std::map<std::string, Recorded> verdicts = read_verdicts(family);
  const std::string only = setting("TARTAN_SWEEP_BLOCK"), pair = setting("TARTAN_SWEEP_PAIR");
  std::map<std::string, std::vector<Case>> out;
  for (const Block& block : blocks) {
    const std::vector<std::string> statements = block.statements(common());
    const Recorded& recorded = verdicts.at(block.name);
    EXPECT_EQ(statements.size(), recorded.count) << block.name;
    EXPECT_EQ(recorded.verdicts.size(), recorded.count) << block.name;
    EXPECT_EQ(checksum(statements), recorded.checksum) << block.name << ": record.py " << family;
    if (::testing::Test::HasFailure()) return out;
    if (!block.name.starts_with(only)) continue;
    const std::vector<std::string>& pairs = common().pairs.at(block.pairs);
    for (std::size_t i = 0; i < statements.size(); ++i)
      for (std::size_t j = 0; j < pairs.size(); ++j)
        if ((i + j) % share == 0 && !recorded.crashes.contains(i) &&
            (pair.empty() || pair == pairs[j]))
          out[pairs[j]].push_back(
              {&block, statements[i], (recorded.verdicts[i] >> (pairs.size() - 1 - j) & 1) != 0});
  }
  return out;
}

TEST_P(OpcodeSweep, AgreesWithTheAssembler) {
  const std::string family = GetParam();
  const bool whole = setting("TARTAN_SWEEP") == "all";
  const bool all =
      whole && setting("TARTAN_SWEEP_BLOCK").empty() && setting("TARTAN_SWEEP_PAIR").empty();
  const std::vector<Explained> explained = read_explained(family);
  Score score;
  for (const auto& [pair, cases] : cases_of(family, whole ? 1 : 13))
    compare(pair, cases, explained, score);
  const std::string summary =
      fmt::format("{}: {} cases, {} wrongly taken, {} wrongly refused, {} explained", family,
                  score.cases, score.wrongly_taken, score.wrongly_refused, score.explained);
  fmt::print("{}\n", summary);
  for (const auto& [kind, seen] : score.kinds) {
    fmt::print("  {}: {}\n", kind, seen.first);
    for (const std::string& example : seen.second) fmt::print("    {}\n", example);
  }
  EXPECT_GT(score.cases, 0u);
  if (all) {
    for (const Explained& each : explained)
      EXPECT_GT(each.used, 0) << "explained.txt, but there is no such difference: " << each.pattern;
  }
  if (is_unfinished(family)) {
    EXPECT_TRUE(!all || !score.kinds.empty()) << "no disagreement: take it off unfinished.txt";
    GTEST_SKIP() << "unfinished: " << summary;
  }
  EXPECT_EQ(score.wrongly_taken, 0u);
  EXPECT_EQ(score.wrongly_refused, 0u);
}

// Every instruction has a block in the sweep. (Matrix forms: sweep_test.cc.)
TEST(OpcodeSweep, EveryInstructionIsSwept) {
  std::set<isa::Opcode> seen;
  for (const std::string& family : families())
    for (const Block& block : read_family(common(), family))
      for (const std::string& statement : block.statements(common()))
        seen.insert(isa::find_opcode(mnemonic_of(statement)));
  // Those of PTX 9.1 and later, which the assembler of the recording (13.0) does not know.
  for (const std::string& family : newer::families)
    for (const newer::Statement& each : newer::read_family(TEST_DATA "/isa/newer/", family))
      seen.insert(isa::find_opcode(mnemonic_of(each.text)));
  for (std::uint16_t i = 1; i < static_cast<std::uint16_t>(isa::Opcode::count); ++i) {
    const auto opcode = static_cast<isa::Opcode>(i);
    if (isa::is_matrix(opcode)) continue;
    EXPECT_TRUE(seen.contains(opcode)) << isa::name(opcode);
  }
}

INSTANTIATE_TEST_SUITE_P(Family, OpcodeSweep, ::testing::ValuesIn(families()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tartan::sweep
