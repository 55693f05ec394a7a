// SPDX-License-Identifier: Apache-2.0
#include "tools/built_in.h"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "compiler/isa/target_hint.h"
#include "compiler/support/nearest.h"
#include "dsl/compile/operations.h"

namespace tartan::tools {
namespace {

using builtins::about_kernel;
using builtins::BuiltinKernel;
using builtins::Described;
using kernels::Gpu;

// A GPU's name belongs to another option.
std::string gpu_hint(const std::string& target) {
  return Gpu::find(target) ? fmt::format("; say --gpu {}", target) : "";
}

// What to compile for: --target, else that of --gpu, else sm_80.
Result<Gpu> read_gpu(const BuiltInWords& words) {
  std::optional<Target> target;
  if (const auto parsed = Target::parse(words.target)) target = *parsed;
  else if (!words.target.empty())
    return {"usage"_rule, fmt::format("--target {}: unknown target{}{}", words.target,
                                      target_hint(words.target), gpu_hint(words.target))};
  const auto gpu = words.kernels.gpu(target);
  if (!gpu || words.ptx.empty()) return gpu;
  const auto version = Version::parse(words.ptx);
  if (!version)
    return {"usage"_rule, fmt::format("--ptx {}: expected a version such as 8.0", words.ptx)};
  return words.kernels.gpu(Target(gpu->target().arch, *version));
}

}  // namespace

void add_option(CLI::App& command, const builtins::Option& of) {
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

void add_built_in_options(CLI::App& command, BuiltInWords& words) {
  for (const builtins::Option& each : words.kernels.options()) add_option(command, each);
}

std::vector<std::string> given_options(const BuiltInWords& words, const CLI::App& command) {
  std::vector<std::string> names{"target", "ptx"}, out;
  for (const builtins::Option& each : words.kernels.options()) names.push_back(each.name);
  for (const std::string& name : names)
    if (command.count("--" + name)) out.push_back(name);
  return out;
}

Result<Described> describe(const BuiltInWords& words, const CLI::App& command) {
  const auto gpu = read_gpu(words);
  if (!gpu) return gpu.diags();
  const BuiltinKernel* kernel = words.kernels.find(words.kernel);
  if (!kernel) {
    std::vector<std::string_view> names;
    for (const BuiltinKernel& each : words.kernels.all()) names.push_back(each.name);
    return {"usage"_rule,
            fmt::format("unknown kernel {}{}; `tartan emit --list` shows the built-in kernels",
                        words.kernel, nearest_hint(words.kernel, names))};
  }
  return words.kernels.describe(*kernel, {*gpu, given_options(words, command)}, "--");
}

int multiprocessors_of(const BuiltInWords& words) {
  const auto gpu = read_gpu(words);
  return gpu ? gpu->multiprocessors() : 0;
}

Result<std::string> operations(const BuiltInWords& words, const Described& described) {
  const auto gpu = read_gpu(words);
  if (!gpu) return gpu.diags();
  auto text = words.ptx.empty() ? detail::operations(described.kernel, gpu->target().arch)
                                : detail::operations(described.kernel, gpu->target());
  if (!text) return about_kernel(words.kernel, text.diags());
  return text;
}

Result<Compiled> compile(const BuiltInWords& words, const Described& described) {
  const auto gpu = read_gpu(words);
  if (!gpu) return gpu.diags();
  auto compiled = words.ptx.empty() ? tartan::compile(described.kernel, gpu->target().arch)
                                    : tartan::compile(described.kernel, gpu->target());
  if (!compiled) return about_kernel(words.kernel, compiled.diags());
  return compiled;
}

}  // namespace tartan::tools
