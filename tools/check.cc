// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "compiler/isa/nearest_arch.h"
#include "compiler/verify/verify.h"
#include "tools/commands.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct CheckWords {
  std::vector<std::string> files;
  std::string target, ptx;
  bool json = false, allow_undocumented = false, rules = false;
  int max_errors = 0;
};

// The options, or diagnostics about the words.
Result<verify::Options> options(const CheckWords& words) {
  verify::Options out;
  out.max_errors = words.max_errors;
  out.allow_undocumented = words.allow_undocumented;
  if (words.files.empty()) return {"usage"_rule, "check: FILE is required"};
  if (std::ranges::count(words.files, "-") > 1)
    return {"usage"_rule, "check: - stands twice, standard input can be read once"};
  if (!words.target.empty() && !(out.arch = Arch::parse(words.target)))
    return {"usage"_rule, fmt::format("--target {}: there is no such target; the nearest is {}",
                                      words.target, nearest_arch(words.target).text())};
  if (!words.ptx.empty() && !(out.ptx = Version::parse(words.ptx)))
    return {"usage"_rule, fmt::format("--ptx {}: a version such as 8.4 is expected", words.ptx)};
  if (out.ptx && !out.ptx->exists())
    return {"usage"_rule, fmt::format("--ptx {}: there is no such version; the nearest is {}",
                                      words.ptx, nearest_version(*out.ptx).text())};
  return out;
}

// docs/diagnostics.md.
void print_rules() {
  fmt::print(
      "# Diagnostics\n\n<!-- Written by `tartan check --rules` from compiler/support/rules.h: "
      "change it there. -->\n\n"
      "A diagnostic ends in the id of its rule. Ids are stable across releases.\n\n| Rule | Level "
      "| Meaning |\n|---|---|---|\n");
  constexpr std::string_view levels[] = {"error", "warning", "note"};
  for (const Rule& rule : rules)
    fmt::print("| `{}` | {} | {} |\n", rule.id, levels[static_cast<int>(rule.level)], rule.meaning);
}

void print(const Diags& diags, bool json) {
  if (json) fmt::print("{}\n", diags.json());
  else fmt::print(stderr, "{}", diags.text(colour(stderr)));
}

int check(const CheckWords& words) {
  if (words.rules) {
    print_rules();
    return exit_ok;
  }
  Diags all;
  int code = exit_ok;
  const auto checked = options(words);
  if (!checked) {
    print(checked.diags(), words.json);
    return exit_usage;
  }
  for (const std::string& file : words.files) {
    auto source = read_source(file);
    if (!source) {
      all.append(source.diags());
      code = exit_usage;
      continue;
    }
    all.append(verify::check(std::make_shared<const Source>(std::move(*source)), *checked));
  }
  print(all, words.json);
  return code != exit_ok ? code : all.ok() ? exit_ok : exit_failed;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<CheckWords>();
  CLI::App* command = app.add_subcommand(
      "check", "Is this PTX legal for its target? All errors, each with what would be legal");
  command->add_option("--target", words->target,
                      "Check against this target instead of the file's .target (sm_90a)");
  command->add_option("--ptx", words->ptx,
                      "Check against this PTX version instead of the file's .version (8.4)");
  command->add_flag("--json", words->json, "Print one JSON object on standard output");
  command
      ->add_option("--max-errors", words->max_errors, "Report at most N errors of a file; 0: all")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  command->add_flag("--allow-undocumented", words->allow_undocumented,
                    "Forms that the assembler takes but no manual has are warnings, not errors");
  command->add_flag("--rules", words->rules,
                    "Print every rule with its meaning (docs/diagnostics.md), check nothing");
  command->add_option("FILE", words->files, "PTX files; - is standard input");
  command->footer("Exit codes: 0 legal, 1 an error was reported, 2 usage or I/O");
  command->callback([words, &exit_code] { exit_code = check(*words); });
}

}  // namespace tartan::tools
