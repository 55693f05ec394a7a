// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "tartan/support/source.h"
#include "tools/built_in.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/emit_manifest.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

using builtins::BuiltinKernel;
using builtins::Described;
using builtins::KernelRegistry;

struct EmitWords : BuiltInWords {
  bool list = false, explain = false, ir = false;
  std::string output, manifest;
};

bool to_file(const EmitWords& words) { return !words.output.empty() && words.output != "-"; }

// The options that conflict with --manifest; empty: none.
std::string manifest_problem(const EmitWords& words) {
  if (words.manifest.empty()) return {};
  if (!to_file(words)) return "--manifest needs the name of a PTX file; add -o FILE";
  if (same_path(words.output, words.manifest))
    return fmt::format("-o and --manifest: expected two different files, found {} for both",
                       words.manifest);
  return {};
}

// In lines as wide as the terminal; elsewhere one for the options of a kernel.
std::string option_lines(const std::vector<std::string>& options, std::size_t width) {
  constexpr std::size_t indent = 30;
  std::string out, line;
  for (const std::string& each : options) {
    if (!line.empty() && indent + line.size() + each.size() + 3 > width) {
      out += fmt::format("{:<{}}{}\n", "", indent, line);
      line.clear();
    }
    line += fmt::format("{}--{}", line.empty() ? "" : " ", each);
  }
  return line.empty() ? out : out + fmt::format("{:<{}}{}\n", "", indent, line);
}

int list(const KernelRegistry& kernels) {
  const std::size_t width = isatty(STDOUT_FILENO) ? columns(stdout).value_or(80)
                                                  : std::numeric_limits<std::size_t>::max();
  for (const BuiltinKernel& each : kernels.all())
    fmt::print("{:<28}{}\n{}", each.name, each.summary, option_lines(each.options, width));
  return exit_ok;
}

// Writes the PTX first: a manifest alone would name a missing file, or an old one.
int write_files(const EmitWords& words, const Described& described, const Compiled& compiled) {
  Result<std::string> manifest = std::string();
  if (!words.manifest.empty()) {
    const builtins::LaunchExample example(words.kernels, words.kernel, described, compiled,
                                          multiprocessors_of(words));
    manifest = launch_manifest(compiled, example, words.output, words.manifest);
  }
  if (!manifest) return fail(exit_usage, manifest.diags());
  Status written = write_file(words.output, compiled.ptx);
  if (written && !words.manifest.empty()) written = write_output(words.manifest, *manifest);
  return written ? exit_ok : fail(exit_usage, written.diags());
}

int emit(const EmitWords& words, const CLI::App& command) {
  if (words.list) {
    if (const std::string other = given_beside(command, "list"); !other.empty())
      return usage_error(fmt::format("--list: it lists all kernels, and takes no {}", other));
    return list(words.kernels);
  }
  if (words.kernel.empty())
    return usage_error("emit: KERNEL is required; `tartan emit --list` shows the built-in kernels");
  const auto described = describe(words, command);
  if (!described) return fail(exit_usage, described.diags());
  if (const std::string problem = manifest_problem(words); !problem.empty())
    return usage_error(problem);
  if (words.ir) {
    const auto text = operations(words, *described);
    if (!text) return fail(exit_failed, text.diags());
    const Status written = write_output(words.output.empty() ? "-" : words.output, *text);
    return written ? exit_ok : fail(exit_usage, written.diags());
  }
  const auto compiled = compile(words, *described);
  if (!compiled) return fail(exit_failed, compiled.diags());
  complain(described->warnings.text() + compiled->warnings.text());
  if (words.explain) complain(explain(compiled->choices));
  if (!to_file(words)) {
    fmt::print("{}", compiled->ptx);
    return exit_ok;
  }
  return write_files(words, *described, *compiled);
}

// `emit KERNEL --help` shows the options of that kernel, where the command has those of all.
class KernelHelp : public CLI::Formatter {
 public:
  KernelHelp(CLI::App& command, std::shared_ptr<const EmitWords> words)
      : command_(command), words_(std::move(words)) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const auto given = command_.get_option("KERNEL")->results();
    const BuiltinKernel* const kernel = given.empty() ? nullptr : words_->kernels.find(given[0]);
    if (kernel) hide_others(*kernel);
    return CLI::Formatter::make_help(app, std::move(name), mode);
  }

 private:
  void hide_others(const BuiltinKernel& kernel) const {
    for (const builtins::Option& each : words_->kernels.options())
      if (std::ranges::find(kernel.options, each.name) == kernel.options.end())
        command_.get_option("--" + each.name)->group("");
  }

  CLI::App& command_;
  std::shared_ptr<const EmitWords> words_;
};

}  // namespace

void add_emit(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<EmitWords>();
  CLI::App* command = app.add_subcommand("emit", "Write the PTX of a built-in kernel");
  command->add_flag("--list", words->list, "List the built-in kernels");
  command->add_option("KERNEL", words->kernel, "Name of the kernel");
  command->add_option("--target", words->target,
                      "Target architecture; default: that of --gpu, else sm_80");
  command->add_option("--ptx", words->ptx,
                      "PTX version of the module (8.0); default: the first that supports "
                      "everything the kernel uses, at least 7.8");
  command->add_option("-o", words->output, "Output file; default: standard output");
  command->add_option("--manifest", words->manifest,
                      "Also write a `tartan run` manifest that launches the kernel, tensor maps "
                      "included, on zeroed buffers; those that it only writes are uninitialized. "
                      "Sizes that the options leave open are those of a small launch");
  command->add_flag("--explain", words->explain,
                    "Print to standard error which instructions and layouts were chosen, and why");
  command
      ->add_flag("--ir", words->ir,
                 "Write the operations that the kernel's description records instead of PTX; "
                 "their text may change with every version")
      ->excludes(command->get_option("--manifest"))
      ->excludes(command->get_option("--explain"));
  add_built_in_options(*command, *words);
  command->formatter(std::make_shared<KernelHelp>(*command, words));
  command->footer(
      "Exit codes: 0 written, 1 the kernel is unsupported on the target, 2 usage or I/O");
  command->callback([=, &exit_code] { exit_code = emit(*words, *command); });
}

}  // namespace tartan::tools
