// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <limits>
#include <memory>

#include "runtime/outcome.h"
#include "tools/commands.h"
#include "tools/progress.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct RunWords {
  std::string manifest, device = "auto", hardware, checks = "all";
  std::uint64_t max_steps = DeviceOptions{}.max_steps;
  double timeout = 0;
  bool report = false, json = false;
};

Outcome outcome_of(const RunWords& words) {
  Diags diags;
  if (!words.hardware.empty() && !Arch::parse(words.hardware))
    diags.report(
        "usage"_rule, {},
        fmt::format("--hardware {}: expected an architecture such as sm_90", words.hardware));
  const auto manifest = read_manifest(words.manifest);
  if (!manifest) diags.append(manifest.diags());
  if (!diags.ok()) return refused(diags);
  Progress progress("blocks");
  return run(*manifest, words.device,
             {.hardware = words.hardware,
              .max_steps = words.max_steps,
              .timeout = words.timeout,
              .checks = words.checks == "all" ? Checks::all : Checks::none,
              .progress = [&](std::uint64_t done, std::uint64_t all) { progress.set(done, all); }});
}

int run_manifest(const RunWords& words) {
  exit_on_interrupt();
  const Outcome outcome = outcome_of(words);
  if (words.json) {
    fmt::print("{}\n", outcome.json());
  } else {
    fmt::print(stderr, "{}", outcome.complaints(colour(stderr)));
    fmt::print("{}", outcome.text(words.report));
  }
  return outcome.exit_code();
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<RunWords>();
  CLI::App* command =
      app.add_subcommand("run", "Launch PTX as a manifest describes, and compare its results");
  command
      ->add_option("MANIFEST", words->manifest,
                   "The launch and its data (JSON); - reads standard input")
      ->required();
  command
      ->add_option("--device", words->device,
                   "auto (a GPU, else the emulator), emulator, cuda or cuda:N")
      ->capture_default_str();
  command->add_option(
      "--hardware", words->hardware,
      "Architecture whose arithmetic the emulator reproduces (sm_90); default: the manifest's");
  command
      ->add_option("--max-steps", words->max_steps,
                   "Stop the emulator after this many instructions of one warp")
      ->check(CLI::Range(std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  command
      ->add_option("--timeout", words->timeout,
                   "Stop the emulator after this many seconds; 0: no limit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command
      ->add_option("--checks", words->checks,
                   "all: also races between ordinary accesses, on the emulator; none")
      ->check(CLI::IsMember({"none", "all"}))
      ->capture_default_str();
  command->add_flag("--report", words->report, "Also print the emulator's counters");
  command->add_flag("--json", words->json, "Print one JSON object on standard output");
  command->footer(
      "Exit codes: 0 every expectation holds, 1 one does not, 2 usage, manifest or I/O,\n3 the "
      "kernel trapped or the emulator found a defect");
  command->callback([words, &exit_code] { exit_code = run_manifest(*words); });
}

}  // namespace tartan::tools
