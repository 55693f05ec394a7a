// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/isa/target_hint.h"
#include "runtime/outcome.h"
#include "runtime/references.h"
#include "runtime/results.h"
#include "runtime/schedules.h"
#include "runtime/summary.h"
#include "tartan/runtime/timeline.h"
#include "tartan/support/source.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/cuda_tools.h"
#include "tools/launch_words.h"
#include "tools/progress.h"
#include "tools/rules.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct RunWords {
  LaunchWords launch;
  std::string device = "auto", hardware, checks = "all", schedules, schedule, timeline;
  std::uint64_t max_steps = DeviceOptions{}.max_steps, most_schedules = 10'000;
  double timeout = 0;
  bool report = false, json = false, verbose = false, require_expectations = false;
  LevelWords levels;
};

std::optional<std::uint64_t> seed_count(const std::string& text) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count == 0) return std::nullopt;
  return count;
}

Checks checks_of(std::string_view word) {
  return word == "all" ? Checks::all : word == "memory" ? Checks::memory : Checks::none;
}

// Those that a GPU would ignore. --hardware of another GPU makes auto the emulator by itself.
constexpr const char* of_emulator[] = {"--checks",   "--max-steps", "--report",
                                       "--schedule", "--schedules", "--timeout"};

bool on_gpu(const RunWords& words) { return words.device.starts_with("cuda"); }

Diags ignored_options(const RunWords& words, const CLI::App& command) {
  Diags out;
  const auto refuse = [&](const char* option) {
    if (on_gpu(words) && command.count(option) > 0)
      out.report("usage"_rule, {},
                 fmt::format("{}: an option of the emulator; expected --device emulator, found "
                             "--device {}",
                             option, words.device));
  };
  for (const char* each : of_emulator) refuse(each);
  refuse("--hardware");
  if (words.timeline == "-")
    out.report("usage"_rule, {},
               "--timeline -: expected the name of a file: standard output has the results");
  if (command.count("--most-schedules") > 0 && words.schedules != "all")
    out.report("usage"_rule, {},
               fmt::format("--most-schedules: an option of --schedules all, found {}",
                           words.schedules.empty() ? "none" : "--schedules " + words.schedules));
  return out;
}

bool wants_emulator(const CLI::App& command) {
  return std::ranges::any_of(of_emulator,
                             [&](const char* each) { return command.count(each) > 0; });
}

// What kernels print: it goes to standard output as it comes, escaped on a terminal, or is kept
// for the JSON object.
class Output {
 public:
  explicit Output(bool kept) : kept_(kept), escaped_(isatty(STDOUT_FILENO)) {}

  void add(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    const std::string shown = !kept_ && escaped_ ? for_terminal(text) : std::string(text);
    if (!kept_) {
      std::fwrite(shown.data(), 1, shown.size(), stdout);
      return;
    }
    const std::size_t taken = std::min(shown.size(), most - text_.size());
    text_.append(shown, 0, taken);
    left_out_ += shown.size() - taken;
  }
  void move_to(Outcome& outcome) {
    outcome.output = std::move(text_);
    outcome.output_left_out = left_out_;
  }

 private:
  static constexpr std::size_t most = 1 << 20;  // as much as CUDA keeps of a launch

  std::mutex mutex_;
  const bool kept_, escaped_;
  std::string text_;
  std::size_t left_out_ = 0;
};

// What nvcc compiles for: the device's own architecture.
std::string target_of(const RunWords& words) {
  if (!is_cuda_source(words.launch.file)) return {};
  const auto device = Device::open(words.device, {.hardware = words.hardware});
  return device ? device->arch().text() : std::string();
}

Outcome run_manifest(const RunWords& words, const Manifest& manifest, bool emulated,
                     const DeviceOptions& options, const RuleLevels& levels) {
  if (words.schedules.empty())
    return run(manifest, emulated ? "emulator" : words.device, options, levels);
  if (words.schedules == "all")
    return decide_schedules(manifest, options, words.most_schedules, levels);
  return run_seeds(manifest, options, seed_count(words.schedules).value_or(1), levels);
}

// The files and the text that the manifest wants.
Outcome with_results(const Manifest& manifest, Outcome outcome) {
  outcome.refused.append(save_results(manifest, outcome));
  outcome.printed = printed_results(manifest, outcome);
  return outcome;
}

Outcome outcome_of(const RunWords& words, const CLI::App& command,
                   const std::shared_ptr<Timeline>& timeline,
                   const std::shared_ptr<detail::Watch>& watch, Output& output) {
  Diags diags = ignored_options(words, command);
  if (!words.hardware.empty() && !Arch::parse(words.hardware))
    diags.report("usage"_rule, {},
                 fmt::format("--hardware {}: unknown target{}", words.hardware,
                             target_hint(words.hardware)));
  const std::string target = diags.ok() ? target_of(words) : std::string();
  auto manifest = read_launch(words.launch, {.target = target});
  if (!manifest) diags.append(manifest.diags());
  // Where nobody asks for a GPU, a timeline is the emulator's, and the same everywhere.
  const bool emulated = words.device == "auto" && (timeline || wants_emulator(command));
  if (!words.schedules.empty() && words.schedules != "all" && !seed_count(words.schedules))
    diags.report(
        "usage"_rule, {},
        fmt::format("--schedules {}: expected all, or a number from 1 on", words.schedules));
  auto levels = read_levels(words.levels);
  if (!levels) diags.append(levels.diags());
  if (diags.ok()) diags.append(expect_references(*manifest));
  if (!diags.ok()) return refused(diags);
  if (words.require_expectations) levels->set("nothing-compared"_rule, Level::Error);
  Progress progress("CTA", watch);
  const DeviceOptions options{
      .hardware = words.hardware,
      .max_steps = words.max_steps,
      .timeout = words.timeout,
      .schedule = words.schedule,
      .checks = checks_of(words.checks),
      .profile = words.report,
      .timeline = timeline,
      .progress = [&](std::uint64_t done, std::uint64_t all) { progress.set(done, all); },
      .print = [&](std::string_view text) { output.add(text); },
      .watch = watch};
  return with_results(*manifest, run_manifest(words, *manifest, emulated, options, *levels));
}

// The exit code: that of the run, unless the file cannot be written.
int write_timeline(const RunWords& words, const Timeline& timeline, int code) {
  if (timeline.launches().empty()) return code;  // nothing ran, and complaints say why
  if (const Status written = write_file(words.timeline, timeline.json()); !written)
    return fail(exit_usage, written.diags());
  if (!words.json) fmt::print("timeline in {}: {}", words.timeline, timeline.summary());
  return code;
}

int run_launch(const RunWords& words, const CLI::App& command) {
  const auto begin = std::chrono::steady_clock::now();
  const auto watch = std::make_shared<detail::Watch>();
  stop_on_interrupt(watch);
  const auto timeline = words.timeline.empty() ? nullptr : std::make_shared<Timeline>();
  Output output(words.json);
  Outcome outcome = outcome_of(words, command, timeline, watch, output);
  output.move_to(outcome);
  report_nothing_compared(outcome);
  if (words.json) {
    fmt::print("{}\n", outcome.json());
  } else {
    complain(outcome.complaints(colour(stderr)));
    fmt::print("{}", outcome.text(words.report));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (words.verbose || isatty(STDERR_FILENO)) complain(summary(outcome, took.count()));
  const int code =
      timeline ? write_timeline(words, *timeline, outcome.exit_code()) : outcome.exit_code();
  return watch->stopped() ? exit_interrupted : code;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<RunWords>();
  CLI::App* command =
      app.add_subcommand("run", "Launch a kernel, and look at its results or compare them");
  add_launch_options(*command, words->launch,
                     "PTX, CUDA C++ (.cu, which nvcc compiles), or a manifest: the launch and its "
                     "data as JSON (docs/manifest.md); - reads standard input");
  command
      ->add_option(
          "--device", words->device,
          "auto (a GPU, else the emulator; with an option of the emulator, that), emulator, "
          "cuda or cuda:N")
      ->capture_default_str();
  command->add_option(
      "--hardware", words->hardware,
      "Architecture whose arithmetic the emulator reproduces (sm_90); default: the manifest's");
  add_step_limit(*command, words->max_steps,
                 "Stop the emulator after this many instructions of one warp");
  add_time_limit(*command, words->timeout,
                 "Stop the emulator after this many seconds, all launches and schedules together; "
                 "0: no limit");
  command
      ->add_option("--checks", words->checks,
                   "What the emulator looks for: memory: all races; all: also undefined values; "
                   "none: only races of bulk copies and wgmma in shared memory")
      ->check(CLI::IsMember({"none", "memory", "all"}))
      ->capture_default_str();
  auto* const many =
      command
          ->add_option("--schedules", words->schedules,
                       "all: decide for every schedule whether it is free of races and deadlocks; "
                       "a number: also run so many, each drawn from a seed, 0 and up")
          ->type_name("all|N");
  command
      ->add_option("--most-schedules", words->most_schedules,
                   "--schedules all: explore no more than so many")
      ->check(CLI::Range(std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  command
      ->add_option("--schedule", words->schedule,
                   "Run in that order of warps, CTAs and asynchronous operations: a seed")
      ->excludes(many);
  command
      ->add_flag("--report", words->report,
                 "Also print what instructions did and cost, on the emulator: bank conflicts, "
                 "sectors, mix")
      ->excludes(many);
  command
      ->add_option(
          "--timeline", words->timeline,
          "Also write copies, products, barriers and waits in their order to this file, for "
          "ui.perfetto.dev: in steps of the emulator; with --device cuda in nanoseconds, by "
          "timestamps that are added to the kernel")
      ->type_name("FILE")
      ->excludes(many);
  command->add_flag("--require-expectations", words->require_expectations,
                    "Exit with 1 where nothing is compared (--error nothing-compared)");
  add_levels(*command, words->levels);
  command->add_flag("-v,--verbose", words->verbose,
                    "Sum up the run in one line on standard error, as on a terminal");
  command->add_flag("--json", words->json, "Print one JSON object on standard output");
  command->footer(
      "Exit codes: 0 every expectation holds, 1 one does not, 2 usage, manifest, I/O, or PTX that "
      "is\nwrong or unsupported, 3 the kernel trapped or the emulator found a defect (warnings "
      "leave "
      "the\ncode as it is), 4 --schedules came to no decision");
  command->callback([words, command, &exit_code] { exit_code = run_launch(*words, *command); });
}

}  // namespace tartan::tools
