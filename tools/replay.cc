// SPDX-License-Identifier: Apache-2.0
// tools/replay.cc - tartan replay: compares the emulator with recorded hardware behaviour.
#include <fmt/format.h>

#include <memory>

#include "runtime/emulator/matrix/recording.h"
#include "tools/commands.h"
#include "tools/progress.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct Options {
  std::string index, data, hardware = "sm_90";
  bool json = false;
};

int run(const Options& options) {
  exit_on_interrupt();
  const auto arch = Arch::parse(options.hardware);
  const auto hardware = arch ? emulator::hardware_of(*arch) : std::nullopt;
  if (!hardware)
    return usage_error(
        fmt::format("--hardware: expected an architecture from sm_70 on, such as sm_90, found {}",
                    options.hardware),
        options.json);
  const auto recording = emulator::Recording::read(options.index, options.data);
  if (!recording) return fail(exit_usage, recording.diags(), options.json);
  if (recording->entries.empty())
    return fail(exit_usage,
                Diags::one("recording"_rule, {options.index, 0, 0},
                           "the index has no entries: there is nothing to compare"),
                options.json);
  const emulator::Replay replay = [&] {
    Progress progress("entries");
    return emulator::replay(
        *recording, *hardware, emulator::Path::best,
        [&](std::uint64_t done, std::uint64_t all) { progress.set(done, all); });
  }();
  fmt::print("{}", options.json ? replay.json() : replay.text());
  return replay.mismatched == 0 ? exit_ok : exit_failed;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "replay", "Compare recorded hardware behaviour with the emulator, bit for bit");
  command->add_option("INDEX", options->index, "The recording's index (JSON)")->required();
  command->add_option("DATA", options->data, "The recorded words")->required();
  command
      ->add_option("--hardware", options->hardware,
                   "Architecture whose arithmetic the emulator reproduces")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Exit codes: 0 all words equal, 1 some differ, 2 usage, or a file is damaged or missing");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tartan::tools
