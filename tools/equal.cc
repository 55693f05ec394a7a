// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "runtime/equal.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/progress.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct EqualWords {
  std::string a, b, reference;
  EqualOptions options;
  bool json = false;
};

Equality equality_of(const EqualWords& words) {
  Diags diags;
  if (words.b.empty() == words.reference.empty())
    diags.report("usage"_rule, {}, "expected a second manifest, or a formula behind --reference");
  if (!diags.ok()) return refused_equality(diags);
  const auto a = read_manifest(words.a);
  if (!a) diags.append(a.diags());
  if (!words.reference.empty())
    return diags.ok() ? equal(*a, words.reference, words.options) : refused_equality(diags);
  const auto b = read_manifest(words.b);
  if (!b) diags.append(b.diags());
  return diags.ok() ? equal(*a, *b, words.options) : refused_equality(diags);
}

int compare(const EqualWords& words) {
  exit_on_interrupt();
  const Equality equality = equality_of(words);
  if (words.json) {
    fmt::print("{}\n", equality.json());
  } else {
    complain(equality.complaints(colour(stderr)));
    fmt::print("{}", equality.text());
  }
  return equality.exit_code();
}

}  // namespace

void add_equal(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<EqualWords>();
  CLI::App* command = app.add_subcommand(
      "equal", "Decide whether two kernels compute the same function over the reals");
  command->add_option("A", words->a, "The first launch and its data (JSON)")->required();
  command->add_option("B", words->b, "The second; buffers match by name, else in order");
  command->add_option("--reference", words->reference,
                      "A formula in place of B, such as \"C = A * B'\" (docs/equal.md)");
  command->add_option("--seed", words->options.seed, "Of the inputs' random values")
      ->capture_default_str();
  command
      ->add_option("--exact", words->options.exact,
                   "A buffer whose elements are their bits, not variables; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--output", words->options.outputs,
                   "A buffer that is compared; default: all that both kernels have")
      ->allow_extra_args(false);
  add_step_limit(*command, words->options.max_steps,
                 "Stop after this many instructions of one warp");
  add_time_limit(*command, words->options.timeout,
                 "Stop each launch after this many seconds; 0: no limit");
  command
      ->add_option("--explain", words->options.explain,
                   "Seconds for finding the term that differs; 0: do not look")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command->add_flag("--json", words->json, "Print one JSON object on standard output");
  command->footer(
      "Exit codes: 0 the same, 1 different, 2 usage, manifest or I/O,\n3 a kernel that "
      "tartan run rejects, 4 undecided");
  command->callback([words, &exit_code] { exit_code = compare(*words); });
}

}  // namespace tartan::tools
