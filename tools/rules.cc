// SPDX-License-Identifier: Apache-2.0
#include "tools/rules.h"

#include <fmt/format.h>

#include <set>

#include "compiler/support/nearest.h"

namespace tartan::tools {
namespace {

std::string rule_hint(const std::string& id) {
  std::vector<std::string_view> ids;
  for (const Rule& rule : rules) ids.push_back(rule.id);
  return nearest_hint(id, ids);
}

// A range of rules in the table, who reports them, and where.
struct Section {
  const Rule& first;
  std::string_view title, reporters;
  std::string_view levels;  // why they are what they are
};

// clang-format off
constexpr Section sections[] = {
    {"syntax"_rule, "PTX text", "`tartan check`, at the line of the PTX text. What the parser finds, loading a module reports as well.", "Errors: the assembler refuses the text."},
    {"unknown-instruction"_rule, "Instructions", "`tartan check`; `Builder::instruction()`, at the C++ line; the emulator, of kernels that it decodes.", "Errors: the assembler refuses the text, or nobody says what it means."},
    {"branch-table"_rule, "Branches and calls", "`tartan check`.", "Errors: the assembler refuses the text."},
    {"fragment-provenance"_rule, "Legal PTX that is probably wrong", "`tartan check`. `proxy-fence` also by the emulator, where the text alone does not show it.", "Warnings: the assembler accepts the text, and it may be right. In `tartan run` they are errors, but those that the launch itself shows where they happen: `maybe-divergent`, `missing-wait`, `missing-barrier`, `register-bounds`."},
    {"kernel-name"_rule, "Kernel descriptions", "`compile()`, at the C++ line of the call.", "Errors: no kernel comes of it. Warnings: it is slow."},
    {"codegen"_rule, "Code generation", "`compile()`.", "Errors: no kernel comes of it."},
    {"no-driver"_rule, "Devices, modules, launches", "`Device`, `Module`, `Buffer` and `launch()` in their `Result` or `Status`; `tartan run`. `tensor-map` also by a kernel on the emulator.", "Errors: nothing runs."},
    {"unsupported-instruction"_rule, "Decoding", "the emulator, when a kernel is taken from its module. Nothing has run.", "Errors: nothing runs."},
    {"memory-fault"_rule, "Kernels that run", "the emulator, in `Device::findings()` with the PTX line, and in the `Status` of the next call that waits. A GPU reports only `memory-fault`, `misaligned-access` and `trap` (else `driver`), without a line.", "A finding is an error if the outcome can differ or hardware is known to misbehave, else a warning, which leaves the exit code as it is."},
    {"file"_rule, "Files and the command line", "the command; `out-of-memory` also the library.", "Errors: the command does nothing, or not all. `undecided` of `tartan run` exits with 4. `nothing-compared` is a warning: whether a kernel ends is a test, too."},
};
// clang-format on

}  // namespace

std::string rules_document() {
  std::string out =
      "# Diagnostics\n\n<!-- Written by `tartan check --rules` from "
      "include/tartan/support/rules.h: change it there. -->\n\nEvery diagnostic ends in the id of "
      "its rule. Ids are stable across releases. Change the level of a rule that\n`tartan check` "
      "or `tartan run` reports with `--error RULE`, `--warn RULE` or `--ignore RULE`, or of a "
      "check "
      "with\n`verify::Options::levels` in C++. What ends a launch stays an error.\n";
  const Section* next = std::begin(sections);
  bool reasons = false;
  for (const Rule& rule : rules) {
    if (next != std::end(sections) && &rule == &next->first) {
      reasons = !rule.why.empty();
      out += fmt::format(
          "\n## {}\n\nReported by {}\n\n{}\n\n| Rule | Level | Meaning |{}\n|---|---|---|{}\n",
          next->title, next->reporters, next->levels, reasons ? " Why |" : "",
          reasons ? "---|" : "");
      ++next;
    }
    out += fmt::format("| `{}` | {} | {} |", rule.id, level_name(rule.level), rule.meaning);
    out += reasons ? fmt::format(" {} |\n", rule.why) : "\n";
  }
  return out;
}

void add_levels(CLI::App& command, LevelWords& words) {
  const auto add = [&](const char* name, std::vector<std::string>& ids, const char* help) {
    command.add_option(name, ids, help)->allow_extra_args(false)->option_text("RULE ...");
  };
  add("--error", words.error, "Report the rule as an error; all: report every warning as an error");
  add("--warn", words.warn, "Report the rule as a warning");
  add("--ignore", words.ignore, "Do not report the rule");
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
        wrong.report("usage"_rule, {},
                     fmt::format("{} {}: unknown rule{}", option, id, rule_hint(id)));
      else if (!seen.insert(id).second)
        wrong.report("usage"_rule, {},
                     fmt::format("{} {}: the rule already has a level", option, id));
    }
  };
  for (const std::string& id : words.error)
    for (const Rule& rule : rules)
      if (id == "all" && rule.level != Level::Note) out.set(rule, Level::Error);
  set("--error", words.error, Level::Error);
  set("--warn", words.warn, Level::Warning);
  set("--ignore", words.ignore, std::nullopt);
  if (!wrong.ok()) return wrong;
  return out;
}

}  // namespace tartan::tools
