// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "compiler/isa/nearest_arch.h"
#include "library/kernels/registry.h"
#include "tartan/support/source.h"
#include "tools/commands.h"
#include "tools/emit_manifest.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

using builtins::BuiltinKernel;
using builtins::Described;
using builtins::KernelRegistry;

struct EmitWords {
  bool list = false, explain = false;
  std::string kernel, target = "sm_80", ptx, output, manifest;
};

// Errors of a built-in kernel: its C++ lines are not the user's, so they are left out.
Diags about_kernel(const std::string& kernel, const Diags& diags) {
  Diags out;
  for (Diag diag : diags) {
    diag.place = {};
    diag.source.clear();
    diag.message = fmt::format("{}: {}", kernel, diag.message);
    out.add(std::move(diag));
  }
  return out;
}

bool to_file(const EmitWords& words) { return !words.output.empty() && words.output != "-"; }

// The options that conflict with --manifest; empty: none.
std::string manifest_problem(const EmitWords& words, const Described& described) {
  if (words.manifest.empty()) return {};
  if (!described.grid)
    return fmt::format("--manifest: the grid of {} is unknown with these options", words.kernel);
  if (!to_file(words)) return "--manifest needs the name of a PTX file; add -o FILE";
  if (same_path(words.output, words.manifest))
    return fmt::format("-o and --manifest: expected two different files, found {} for both",
                       words.manifest);
  return {};
}

int list(const KernelRegistry& kernels) {
  for (const BuiltinKernel& each : kernels.all()) {
    fmt::print("{:<26}{}\n", each.name, each.summary);
    if (!each.options.empty()) fmt::print("{:<28}--{}\n", "", fmt::join(each.options, " --"));
  }
  return exit_ok;
}

Result<Target> read_target(const EmitWords& words) {
  auto target = Target::parse(words.target);
  if (!target)
    return {"usage"_rule, fmt::format("--target {}: unknown target; the nearest is {}",
                                      words.target, nearest_arch(words.target).text())};
  if (words.ptx.empty()) return *target;
  const auto version = Version::parse(words.ptx);
  if (!version)
    return {"usage"_rule, fmt::format("--ptx {}: expected a version such as 8.0", words.ptx)};
  return Target(target->arch, *version);
}

// The names of the options that the command line has, without the dashes.
std::vector<std::string> given_options(const CLI::App& command) {
  std::vector<std::string> out;
  for (const CLI::Option* option : command.get_options())
    if (option->count() && option->get_name().starts_with("--"))
      out.push_back(option->get_name().substr(2));
  return out;
}

Result<Described> describe(const KernelRegistry& kernels, const CLI::App& command,
                           const std::string& name, const Target& target) {
  const BuiltinKernel* kernel = kernels.find(name);
  if (!kernel)
    return {"usage"_rule, fmt::format("unknown kernel {}; `tartan emit --list` shows the built-in "
                                      "kernels",
                                      name)};
  const Diags refused = kernels.refused_options(*kernel, given_options(command), "--");
  if (!refused.ok()) return refused;
  return kernel->describe(target);
}

// Writes the PTX first: a manifest alone would name a missing file, or an old one.
int write_files(const EmitWords& words, const Described& described, const Compiled& compiled) {
  Result<std::string> manifest = std::string();
  if (!words.manifest.empty())
    manifest = launch_manifest(compiled, *described.grid, words.output, words.manifest);
  if (!manifest) return fail(exit_usage, manifest.diags());
  Status written = write_file(words.output, compiled.ptx);
  if (written && !words.manifest.empty()) written = write_file(words.manifest, *manifest);
  return written ? exit_ok : fail(exit_usage, written.diags());
}

int emit(const EmitWords& words, const CLI::App& command, const KernelRegistry& kernels) {
  if (words.list) return list(kernels);
  if (words.kernel.empty())
    return usage_error("emit: KERNEL is required; `tartan emit --list` shows the built-in kernels");
  const auto target = read_target(words);
  if (!target) return fail(exit_usage, target.diags());
  const auto described = describe(kernels, command, words.kernel, *target);
  if (!described) return fail(exit_usage, described.diags());
  if (const std::string problem = manifest_problem(words, *described); !problem.empty())
    return usage_error(problem);
  const auto compiled = words.ptx.empty() ? compile(described->kernel, target->arch)
                                          : compile(described->kernel, *target);
  if (!compiled) return fail(exit_failed, about_kernel(words.kernel, compiled.diags()));
  fmt::print(stderr, "{}", compiled->warnings.text());
  if (words.explain) fmt::print(stderr, "{}", explain(compiled->choices));
  if (!to_file(words)) {
    fmt::print("{}", compiled->ptx);
    return exit_ok;
  }
  return write_files(words, *described, *compiled);
}

void add_option(CLI::App& command, const detail::Option& of) {
  const std::string name = "--" + of.name;
  CLI::Option* option = std::visit(
      [&](auto* value) {
        using Value = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) return command.add_flag(name, *value, of.help);
        else return command.add_option(name, *value, of.help);
      },
      of.value);
  option->group(of.group);
  if (std::holds_alternative<std::vector<std::string>*>(of.value)) option->delimiter(',');
  if (!of.default_text.empty()) option->default_str(of.default_text);
  else if (of.shows_default) option->capture_default_str();
}

}  // namespace

void add_emit(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<EmitWords>();
  CLI::App* command = app.add_subcommand("emit", "Write the PTX of a built-in kernel");
  command->add_flag("--list", words->list, "List the built-in kernels");
  command->add_option("KERNEL", words->kernel, "Name of the kernel");
  command->add_option("--target", words->target, "Target architecture")->capture_default_str();
  command->add_option("--ptx", words->ptx,
                      "PTX version of the module (8.0); default: the first that supports "
                      "everything the kernel uses, at least 7.8");
  command->add_option("-o", words->output, "Output file; default: standard output");
  command->add_option("--manifest", words->manifest,
                      "Also write a `tartan run` manifest that launches the kernel, tensor maps "
                      "included, on zeroed buffers; those that it only writes are uninitialized");
  command->add_flag("--explain", words->explain,
                    "Print to standard error which instructions and layouts were chosen, and why");
  const auto kernels = std::make_shared<KernelRegistry>();
  for (const detail::Option& each : kernels->options()) add_option(*command, each);
  command->footer(
      "Exit codes: 0 written, 1 the kernel is unsupported on the target, 2 usage or I/O");
  command->callback([=, &exit_code] { exit_code = emit(*words, *command, *kernels); });
}

}  // namespace tartan::tools
