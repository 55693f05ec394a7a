// SPDX-License-Identifier: Apache-2.0
// tools/manifest.cc - tartan manifest: the launch of a kernel as JSON.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "compiler/isa/target_hint.h"
#include "tools/commands.h"
#include "tools/cuda_tools.h"
#include "tools/launch_words.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

namespace fs = std::filesystem;

struct ManifestWords {
  LaunchWords launch;
  std::string hardware, output = "-";
};

// The PTX that nvcc makes, beside the manifest.
std::string compiled_name(const ManifestWords& words) {
  return fs::path(words.output).replace_extension(".ptx").string();
}

Result<LaunchPlace> place_of(const ManifestWords& words) {
  LaunchPlace out{.hardware = words.hardware, .blanks = true};
  if (!words.hardware.empty() && !Arch::parse(words.hardware))
    return {"usage"_rule, fmt::format("--hardware {}: unknown target{}", words.hardware,
                                      target_hint(words.hardware))};
  if (words.launch.file == "-")
    return {"usage"_rule, "the manifest names its PTX: expected a file, found standard input"};
  const bool compiles = is_cuda_source(words.launch.file);
  if (compiles && words.output == "-")
    return {"usage"_rule,
            "the PTX of CUDA C++ is written beside the manifest: expected -o FILE.json"};
  out.target = words.hardware.empty() ? "sm_90a" : words.hardware;
  if (words.output == "-") return out;
  out.folder = fs::path(words.output).parent_path().string();
  if (out.folder.empty()) out.folder = ".";
  std::error_code none;
  const std::string ptx = compiles ? compiled_name(words) : words.launch.file;
  out.ptx =
      fs::path(ptx).is_absolute()
          ? ptx
          : fs::absolute(ptx, none).lexically_proximate(fs::absolute(out.folder, none)).string();
  return out;
}

int write(const ManifestWords& words) {
  const auto place = place_of(words);
  if (!place) return fail(exit_usage, place.diags());
  const auto launch = launch_text(words.launch, *place);
  if (!launch) return fail(exit_usage, launch.diags());
  if (!launch->ptx)
    return usage_error(
        fmt::format("{} is a manifest already: expected PTX or CUDA C++", words.launch.file));
  if (words.output == "-") {
    fmt::print("{}", launch->manifest);
    return exit_ok;
  }
  if (launch->compiled)
    if (const Status written = write_file(compiled_name(words), launch->ptx->text()); !written)
      return fail(exit_usage, written.diags());
  const Status written = write_file(words.output, launch->manifest);
  return written ? exit_ok : fail(exit_usage, written.diags());
}

}  // namespace

void add_manifest(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ManifestWords>();
  CLI::App* command = app.add_subcommand(
      "manifest",
      "Write the launch of a kernel as a manifest; without --arg, one to edit, with the names and "
      "types of the kernel's parameters");
  add_launch_options(*command, words->launch, "PTX, or CUDA C++ (.cu, which nvcc compiles)");
  command->add_option("--hardware", words->hardware,
                      "Architecture whose arithmetic the emulator reproduces (sm_90)");
  command->add_option("-o", words->output, "Output file; - is standard output")
      ->capture_default_str();
  command->footer("Exit codes: 0 written, 2 usage, I/O, or a text that is not PTX");
  command->callback([words, &exit_code] { exit_code = write(*words); });
}

}  // namespace tartan::tools
