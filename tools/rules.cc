// SPDX-License-Identifier: Apache-2.0
#include "tools/rules.h"

#include <fmt/format.h>

#include <set>

#include "compiler/support/nearest.h"

namespace tartan::tools {
namespace {

std::string_view nearest_rule(const std::string& id) {
  std::vector<std::string_view> ids;
  for (const Rule& rule : rules) ids.push_back(rule.id);
  return nearest_word(id, ids);
}

}  // namespace

std::string rules_document() {
  std::string out =
      "# Diagnostics\n\n<!-- Written by `tartan check --rules` from "
      "include/tartan/support/rules.h: change it there. -->\n\nEvery diagnostic ends in the id of "
      "its rule. Ids are stable across releases. Change a rule's level with\n`tartan check --error "
      "RULE`, `--warn RULE` or `--ignore RULE`, or `verify::Options::levels` in C++.\n\n| Rule | "
      "Level | Meaning |\n|---|---|---|\n";
  for (const Rule& rule : rules)
    out += fmt::format("| `{}` | {} | {} |\n", rule.id, level_name(rule.level), rule.meaning);
  return out;
}

Result<RuleLevels> read_levels(const LevelWords& words) {
  RuleLevels out;
  Diags wrong;
  std::set<std::string> seen;
  const auto set = [&](std::string_view option, const std::vector<std::string>& ids,
                       std::optional<Level> level) {
    for (const std::string& id : ids) {
      if (level == Level::Error && id == "all") continue;
      if (!out.set(id, level))
        wrong.report(
            "usage"_rule, {},
            fmt::format("{} {}: unknown rule; the nearest is {}", option, id, nearest_rule(id)));
      else if (!seen.insert(id).second)
        wrong.report("usage"_rule, {},
                     fmt::format("{} {}: the rule already has a level", option, id));
    }
  };
  for (const std::string& id : words.error)
    for (const Rule& rule : rules)
      if (id == "all" && rule.level == Level::Warning) out.set(rule, Level::Error);
  set("--error", words.error, Level::Error);
  set("--warn", words.warn, Level::Warning);
  set("--ignore", words.ignore, std::nullopt);
  if (!wrong.ok()) return wrong;
  return out;
}

}  // namespace tartan::tools
