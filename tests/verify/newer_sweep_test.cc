// SPDX-License-Identifier: Apache-2.0
// `check` against the assembler of CUDA 13.5 on the forms of PTX 9.1 to 9.5: each statement on each
// pair of target and version (tests/data/isa/newer/README.md).
//
// One test per family, of a sample in tests/data/isa/newer; with TARTAN_SWEEP=all, of the whole
// record in $TARTAN_SHARED/facts/ptx95, and every pair. TARTAN_SWEEP_SHOW=20: so many examples of
// each kind of disagreement (else 3).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "compiler/ptx/parse_all.h"
#include "tartan/verify/verify.h"
#include "tests/support/text_files.h"
#include "tests/verify/newer_sweep.h"
#include "tests/verify/opcode_sweep.h"

namespace tartan::sweep {
namespace {

using newer::Statement;

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool whole() { return setting("TARTAN_SWEEP") == "all"; }

const std::string sample = TEST_DATA "/isa/newer/";

std::string folder() { return whole() ? setting("TARTAN_SHARED") + "/facts/ptx95/" : sample; }

verify::Options options(const std::string& target, int minor) {
  verify::Options out{.arch = *Arch::parse(target),
                      .ptx = Version{9, static_cast<std::uint8_t>(minor)}};
  out.levels.set("cta-group", std::nullopt);  // a function has statements of both groups
  return out;
}

struct Finding {
  std::string id, message;
  bool of_target() const { return id == "target-support" || id == "version-support"; }
};
using Findings = std::map<std::size_t, Finding>;  // by statement

// The statements in functions of two hundred, parsed once.
class Text {
 public:
  explicit Text(const std::vector<Statement>& statements, const std::vector<std::size_t>& which) {
    std::string text = newer::header("sm_107a", "9.5");
    std::size_t in_function = 0;
    for (const std::size_t each : which) {
      if (in_function++ % 200 == 0)
        text += (in_function > 1 ? "ret;\n}\n" : "") + newer::function(in_function);
      place_[1 + std::count(text.begin() + counted_, text.end(), '\n') + lines_] = each;
      lines_ += std::count(text.begin() + counted_, text.end(), '\n');
      counted_ = static_cast<long>(text.size());
      text += statements[each].text + "\n";
    }
    if (in_function > 0) text += "ret;\n}\n";
    module_ = ptx::parse_all(std::make_shared<const Source>("newer", text), diags_);
  }

  Findings judge(const std::string& target, int minor) const {
    Findings out;
    const auto take = [&](const Diag& diag) {
      if (diag.level != Level::Error) return;
      const auto at = place_.find(diag.place.line);
      ASSERT_NE(at, place_.end()) << target << " line " << diag.place.line << ": " << diag.message;
      out.try_emplace(at->second, Finding{std::string(diag.id), diag.message});
    };
    for (const Diag& diag : diags_) take(diag);
    for (const Diag& diag : verify::verify(module_, options(target, minor))) take(diag);
    return out;
  }

 private:
  std::map<long, std::size_t> place_;
  long lines_ = 0, counted_ = 0;
  Diags diags_;
  ptx::Module module_;
};

bool parses(const Statement& statement) {
  Diags diags;
  ptx::parse_all(
      std::make_shared<const Source>("one", newer::header("sm_107a", "9.5") + ".entry k() {\n" +
                                                statement.text + "\nret;\n}\n"),
      diags);
  return diags.count(Level::Error) == 0;
}

struct Score {
  std::size_t cells = 0, wrongly_taken = 0, wrongly_refused = 0, explained = 0;
  std::map<std::string, std::pair<std::size_t, std::vector<std::string>>> kinds;
};

class Comparison {
 public:
  Comparison(const std::string& family, const std::vector<Statement>& statements)
      : statements_(statements), explained_(newer::read_explained(sample, family)) {}

  void compare(const std::string& target, int minor, std::size_t index, const Finding* found) {
    const Statement& one = statements_[index];
    const newer::Verdict verdict = one.verdict(target, minor);
    if (verdict == newer::Verdict::Unknown) return;
    ++score.cells;
    const bool taken = verdict == newer::Verdict::Taken;
    if (taken == (found == nullptr)) return;
    const std::string kind = taken ? "refuses" : "takes";
    for (const newer::Explained& each : explained_)
      if (each.kind == kind && each.matches(fmt::format("{}/9.{}", target, minor), one.text)) {
        ++each.used, ++score.explained;
        return;
      }
    ++(taken ? score.wrongly_refused : score.wrongly_taken);
    const std::string name = one.text.substr(0, one.text.find('.', one.text.find('.') + 1));
    auto& [many, examples] = score.kinds[fmt::format("{} {}", name, kind)];
    ++many;
    const std::size_t show =
        setting("TARTAN_SWEEP_SHOW").empty() ? 3 : std::stoul(setting("TARTAN_SWEEP_SHOW"));
    if (examples.size() < show && shown_.insert(index).second)
      examples.push_back(
          fmt::format("{}/9.{} {}  {}", target, minor, one.text, found ? found->message : ""));
  }

  const std::vector<newer::Explained>& explained() const { return explained_; }
  Score score;

 private:
  const std::vector<Statement>& statements_;
  std::vector<newer::Explained> explained_;
  std::set<std::size_t> shown_;
};

class NewerSweep : public ::testing::TestWithParam<std::string> {};

TEST_P(NewerSweep, AgreesWithTheAssembler) {
  if (whole() && setting("TARTAN_SHARED").empty()) GTEST_SKIP() << "no TARTAN_SHARED";
  const std::vector<Statement> statements = newer::read_family(folder(), GetParam());
  ASSERT_FALSE(statements.empty());
  const Finding syntax{"syntax", "syntax"};
  Findings always;  // refused whatever the target
  std::vector<std::size_t> legible, depends;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    if (parses(statements[i])) legible.push_back(i);
    else always[i] = syntax;
  }
  const Findings widest = Text(statements, legible).judge("sm_107a", 5);
  for (const std::size_t i : legible) {
    const auto found = widest.find(i);
    if (found != widest.end() && !found->second.of_target()) always[i] = found->second;
    else depends.push_back(i);
  }
  const Text text(statements, depends);
  Comparison comparison(GetParam(), statements);
  for (const std::string_view target : newer::targets) {
    const bool rubin = target.starts_with("sm_107");
    for (int minor = rubin ? 4 : 0; minor <= 5; ++minor) {
      const Findings found = text.judge(std::string(target), minor);
      for (std::size_t i = 0; i < statements.size(); ++i) {
        const auto in = [&](const Findings& all) {
          const auto at = all.find(i);
          return at == all.end() ? nullptr : &at->second;
        };
        const Finding* one = in(always);
        comparison.compare(std::string(target), minor, i, one ? one : in(found));
      }
    }
  }
  const Score& score = comparison.score;
  fmt::print("{}: {} cells, {} wrongly taken, {} wrongly refused, {} explained\n", GetParam(),
             score.cells, score.wrongly_taken, score.wrongly_refused, score.explained);
  for (const auto& [kind, seen] : score.kinds) {
    fmt::print("  {}: {}\n", kind, seen.first);
    for (const std::string& example : seen.second) fmt::print("    {}\n", example);
  }
  EXPECT_GT(score.cells, 0u);
  EXPECT_EQ(score.wrongly_taken, 0u);
  EXPECT_EQ(score.wrongly_refused, 0u);
  if (!whole()) return;
  for (const newer::Explained& each : comparison.explained())
    EXPECT_GT(each.used, 0) << "explained.txt, but there is no such difference: " << each.pattern;
}

INSTANTIATE_TEST_SUITE_P(Family, NewerSweep, ::testing::ValuesIn(newer::families),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tartan::sweep
