// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/kernel.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bindings/c/load.h"
#include "bindings/c/read_json.h"
#include "bindings/c/times.h"
#include "compiler/support/messages.h"
#include "compiler/support/nearest.h"
#include "tartan/support/source.h"
#include "tartan/verify/verify.h"

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;

Result<Arch> arch_of(const char* function, const char* target) {
  const auto arch = Arch::parse(target);
  if (arch) return *arch;
  return {"usage"_rule, fmt::format("{}: {}", function, arch.diags()[0].message)};
}

#ifdef TARTAN_LLVM

using builtins::about_kernel;
using builtins::BuiltinKernel;
using builtins::Described;
using builtins::KernelRegistry;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The type of an option, and its default.
struct Shown {
  std::string type;
  Json value;
};
Shown shown(const builtins::Option& option) {
  struct Visit {
    const std::string& text;
    bool shows_default;  // otherwise kernels choose
    Shown operator()(const int* value) const {
      return {"integer", shows_default ? Json(*value) : Json()};
    }
    Shown operator()(const double* value) const { return {"number", *value}; }
    Shown operator()(const bool* value) const { return {"boolean", *value}; }
    Shown operator()(const std::vector<std::string>* value) const { return {"strings", *value}; }
    Shown operator()(const std::string* value) const {
      const std::string& word = value->empty() ? text : *value;
      return {"string", word.empty() ? Json() : Json(word)};
    }
  };
  return std::visit(
      [&](auto* value) {
        return Visit{option.default_text, option.shows_default}(value);
      },
      option.value);
}

Json list_of(const KernelRegistry& registry) {
  Json out = Json::array();
  for (const BuiltinKernel& kernel : registry.all()) {
    Json options = Json::array();
    for (const builtins::Option& each : registry.options()) {
      if (std::ranges::find(kernel.options, each.name) == kernel.options.end()) continue;
      const auto [type, value] = shown(each);
      options.push_back(
          {{"name", each.name}, {"type", type}, {"default", value}, {"help", each.help}});
    }
    out.push_back(
        {{"name", kernel.name}, {"summary", kernel.summary}, {"options", std::move(options)}});
  }
  return out;
}

Json info_of(const Compiled& compiled, const Described& described, const StepTimes& times) {
  Json parameters = Json::array(), variants = Json::array();
  for (const CompiledParam& each : compiled.params)
    parameters.push_back({{"name", each.name},
                          {"type", name(each.type)},
                          {"pointer", each.pointer},
                          {"elements", each.elements},
                          {"reads", each.reads},
                          {"writes", each.writes},
                          {"multiple_of", each.multiple_of}});
  for (const builtins::Variant& each : described.variants) variants.push_back(each.option);
  Diags warnings = described.warnings;
  warnings.append(compiled.warnings);
  return {{"name", compiled.name},
          {"target", compiled.target.arch.text()},
          {"ptx_version", compiled.target.ptx.text()},
          {"block", compiled.block},
          {"dynamic_shared", compiled.dynamic_shared},
          {"cluster", compiled.cluster},
          {"parameters", std::move(parameters)},
          {"variants", std::move(variants)},
          {"warnings", Json::parse(warnings.json())["diagnostics"]},
          {"microseconds", c::to_json(times)}};
}

Result<Described> describe(const std::string& name, Arch arch, const char* options) {
  const KernelRegistry registry;
  const BuiltinKernel* kernel = registry.find(name);
  if (!kernel) {
    std::vector<std::string_view> names;
    for (const BuiltinKernel& each : registry.all()) names.push_back(each.name);
    return {"usage"_rule, fmt::format("unknown kernel {}{}", name, nearest_hint(name, names))};
  }
  const auto given = read_json(registry.options(), options ? options : "", name);
  if (!given) return given.diags();
  const auto gpu = registry.gpu(Target::of(arch));
  if (!gpu) return gpu.diags();
  return registry.describe(*kernel, {*gpu, *given}, "option ");
}

Result<std::shared_ptr<const tartan_kernel::State>> compiled_kernel(const char* name,
                                                                    const char* target,
                                                                    const char* options) {
  const auto arch = arch_of("tartan_compile", target);
  if (!arch) return arch.diags();
  const auto described = describe(name, *arch, options);
  if (!described) return described.diags();
  StepTimes times;
  const auto compiled = [&] {
    const StepClock clock(times);
    return c::compiled(described->kernel, *arch);
  }();
  if (!compiled) return about_kernel(name, compiled.diags());
  return std::make_shared<const tartan_kernel::State>(*compiled, *described,
                                                      dumped(info_of(*compiled, *described, times)),
                                                      explain_json(compiled->choices));
}

}  // namespace

tartan_error* tartan_list_kernels(char** json) {
  return c::guarded("tartan_list_kernels", {{"json", json}}, [&]() -> Status {
    *json = nullptr;
    *json = c::copy_of(dumped(list_of(KernelRegistry())));
    return Done{};
  });
}

tartan_error* tartan_compile(const char* name, const char* target, const char* options,
                             tartan_kernel** out) {
  if (out) *out = nullptr;
  return c::guarded("tartan_compile", {{"name", name}, {"target", target}, {"out", out}},
                    [&]() -> Status {
                      auto state = compiled_kernel(name, target, options);
                      if (!state) return state.diags();
                      *out = new tartan_kernel{*state};
                      return Done{};
                    });
}

const char* tartan_kernel_name(const tartan_kernel* kernel) {
  return kernel ? kernel->state->compiled.name.c_str() : "";
}
const char* tartan_kernel_ptx(const tartan_kernel* kernel) {
  return kernel ? kernel->state->compiled.ptx.c_str() : "";
}
const char* tartan_kernel_info(const tartan_kernel* kernel) {
  return kernel ? kernel->state->info.c_str() : "";
}
const char* tartan_kernel_explain(const tartan_kernel* kernel) {
  return kernel ? kernel->state->explained.c_str() : "";
}
void tartan_kernel_free(tartan_kernel* kernel) { delete kernel; }

#else  // without code generation there are no kernels

Status no_kernels() {
  return {"usage"_rule, "this build of Tartan has no code generation (TARTAN_LLVM=OFF)"};
}

}  // namespace

tartan_error* tartan_list_kernels(char** json) {
  return c::guarded("tartan_list_kernels", {{"json", json}}, [&]() -> Status {
    *json = nullptr;
    *json = c::copy_of("[]");
    return Done{};
  });
}

tartan_error* tartan_compile(const char* name, const char* target, const char*,
                             tartan_kernel** out) {
  if (out) *out = nullptr;
  return c::guarded("tartan_compile", {{"name", name}, {"target", target}, {"out", out}},
                    no_kernels);
}

const char* tartan_kernel_name(const tartan_kernel*) { return ""; }
const char* tartan_kernel_ptx(const tartan_kernel*) { return ""; }
const char* tartan_kernel_info(const tartan_kernel*) { return ""; }
const char* tartan_kernel_explain(const tartan_kernel*) { return ""; }
void tartan_kernel_free(tartan_kernel*) {}

#endif

tartan_error* tartan_check(const char* ptx, const char* target, char** json, size_t* errors) {
  if (json) *json = nullptr;
  return c::guarded("tartan_check", {{"ptx", ptx}, {"json", json}}, [&]() -> Status {
    verify::Options options{.max_errors = detail::most_errors};
    if (target) {
      const auto arch = arch_of("tartan_check", target);
      if (!arch) return arch.diags();
      options.arch = *arch;
    }
    const Diags found = verify::check(std::make_shared<const Source>("<ptx>", ptx), options);
    *json = c::copy_of(found.json());
    if (errors) *errors = found.count(Level::Error) + found.left_out();
    return Done{};
  });
}
