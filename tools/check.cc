// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include "compiler/isa/target_hint.h"
#include "compiler/support/sarif.h"
#include "tartan/verify/verify.h"
#include "tartan/version.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/cuda_tools.h"
#include "tools/rules.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct CheckWords {
  std::vector<std::string> files;
  std::string target, ptx;
  bool json = false, sarif = false, allow_undocumented = false, rules = false;
  int max_errors = 100;
  LevelWords levels;
};

// The options, or diagnostics of invalid arguments.
Result<verify::Options> options(const CheckWords& words) {
  verify::Options out;
  out.max_errors = words.max_errors;
  if (words.files.empty()) return {"usage"_rule, "check: FILE is required"};
  if (std::ranges::count(words.files, "-") > 1)
    return {"usage"_rule, "check: '-' given twice; standard input can be read only once"};
  if (const auto arch = Arch::parse(words.target)) out.arch = *arch;
  else if (!words.target.empty())
    return {"usage"_rule,
            fmt::format("--target {}: unknown target{}", words.target, target_hint(words.target))};
  if (!words.ptx.empty() && !(out.ptx = Version::parse(words.ptx)))
    return {"usage"_rule, fmt::format("--ptx {}: expected a version such as 8.4", words.ptx)};
  if (out.ptx && !out.ptx->exists())
    return {"usage"_rule, fmt::format("--ptx {}: unknown PTX version; the nearest is {}", words.ptx,
                                      nearest_version(*out.ptx).text())};
  LevelWords level_words = words.levels;
  if (words.allow_undocumented) level_words.warn.emplace_back("undocumented-form");
  const auto levels = read_levels(level_words);
  if (!levels) return levels.diags();
  out.levels = *levels;
  return out;
}

// Writes a file's diagnostics: text immediately, other formats when all files are checked.
class Report {
 public:
  explicit Report(const CheckWords& words) : words_(words) {}

  void add(const std::string& file, Diags diags) {
    if (words_.json || words_.sarif) return all_.append(std::move(diags));
    ok_ &= diags.ok();
    std::string text;
    for (const Diag& each : diags) text += to_text(each, colour(stderr)) + '\n';
    if (const std::size_t more = diags.left_out(); more > 0)
      text += fmt::format("{}: note: {} more error{} not shown; --max-errors 0 shows all\n",
                          printable(file), more, more == 1 ? "" : "s");
    complain(text);
  }
  void unreadable(const std::string& file, Diags diags) {
    code_ = exit_usage;
    add(file, std::move(diags));
  }
  int finish() {
    const bool completed = code_ == exit_ok;
    if (words_.json) fmt::print("{}\n", all_.json());
    if (words_.sarif) fmt::print("{}\n", to_sarif(all_, version(), completed));
    return completed && !(ok_ && all_.ok()) ? exit_failed : code_;
  }

 private:
  const CheckWords& words_;
  Diags all_;
  bool ok_ = true;
  int code_ = exit_ok;
};

void check_file(const std::string& file, const verify::Options& options, Report& report) {
  try {
    auto source = is_cuda_source(file)
                      ? compile_cuda(file, options.arch ? options.arch->text() : "sm_90a", {})
                      : read_source(file);
    if (!source) return report.unreadable(file, source.diags());
    report.add(file, verify::check(std::make_shared<const Source>(std::move(*source)), options));
  } catch (const std::bad_alloc&) {
    report.unreadable(file, Diags::one("out-of-memory"_rule, {file, 0, 0},
                                       "out of host memory while checking this file"));
  }
}

int check(const CheckWords& words, const CLI::App& command) {
  if (words.rules) {
    if (const std::string other = given_beside(command, "rules"); !other.empty())
      return usage_error(
          fmt::format("--rules: it prints the page of all rules, and takes no {}", other),
          words.json);
    fmt::print("{}", rules_document());
    return exit_ok;
  }
  Report report(words);
  const auto checked = options(words);
  if (!checked) {
    report.unreadable("", checked.diags());
    return report.finish();
  }
  for (const std::string& file : words.files) check_file(file, *checked, report);
  return report.finish();
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<CheckWords>();
  CLI::App* command = app.add_subcommand("check",
                                         "Check PTX: is it legal for its target? Reports every "
                                         "error with the nearest legal alternative");
  command->add_option("--target", words->target,
                      "Check against this target instead of the file's .target (sm_90a)");
  command->add_option("--ptx", words->ptx,
                      "Check against this PTX version instead of the file's .version (8.4)");
  auto* json = command->add_flag("--json", words->json, "Print one JSON object on standard output");
  command->add_flag("--sarif", words->sarif, "Print a SARIF 2.1.0 log on standard output")
      ->excludes(json);
  command
      ->add_option(
          "--max-errors", words->max_errors,
          "Print only the first N errors of a file and the number of the others; 0: print all")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->capture_default_str();
  add_levels(*command, words->levels);
  command->add_flag("--allow-undocumented", words->allow_undocumented,
                    "Same as --warn undocumented-form: accept forms that the assembler takes but "
                    "no manual documents");
  command->add_flag("--rules", words->rules,
                    "Print every rule with its meaning (docs/diagnostics.md) and exit");
  command->add_option("FILE", words->files,
                      "PTX files, or CUDA C++ (.cu, which nvcc compiles); - reads standard input");
  command->footer("Exit codes: 0 legal, 1 an error was reported, 2 usage or I/O");
  command->callback([words, command, &exit_code] { exit_code = check(*words, *command); });
}

}  // namespace tartan::tools
