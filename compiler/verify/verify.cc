// SPDX-License-Identifier: Apache-2.0
#include "tartan/verify/verify.h"

#include <fmt/format.h>

#include "compiler/isa/target_name.h"
#include "compiler/ptx/parse_all.h"
#include "compiler/support/messages.h"
#include "compiler/verify/first_errors.h"
#include "compiler/verify/pass.h"
#include "tartan/ptx/parser.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

constexpr void (*module_passes[])(Context&) = {
    check_target,        check_module_names, check_tensor_memory_groups, check_declarations,
    check_initializers,  check_directives,   check_debug_information,    check_externals,
    check_shared_memory,
};
constexpr void (*function_passes[])(Context&, const FunctionView&) = {
    check_instructions,    check_redefinitions, check_calls,          check_parameter_use,
    check_register_budget, check_narrow_stores, check_external_calls,
};
// Likely errors in legal code. For functions with warp-level instructions or asynchronous copies.
constexpr void (*sanity_passes[])(Context&, const FunctionView&) = {
    check_provenance,   check_convergence, check_asynchronous, check_warpgroups,
    check_proxies,      check_alignment,   check_performance,  check_tensor_descriptors,
    check_tensor_loads,
};

bool has_collectives(const ptx::Module& module, const ptx::Function& function) {
  for (const ptx::Statement& statement : function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const isa::Spelling& spelling = module.spelling(module.instructions[statement.index]);
    const isa::Convergence needs = spelling.row().convergence;
    if ((needs != isa::Convergence::None && needs != isa::Convergence::Mask) ||
        spelling.opcode == isa::Opcode::bar_warp || isa::is_asynchronous_copy(spelling.opcode) ||
        isa::is_tensor_memory(spelling.opcode))
      return true;
  }
  return false;
}

// What a later version or a later GPU may have is no error.
Options allowing_newer(const ptx::Module& module, Options options) {
  const auto target = options.arch ? std::nullopt : named_target(module.targets);
  const bool newer_target = target && target->newer;
  if (!newer_target && !is_newer(module.version)) return options;
  const auto warn = [&](const Rule& rule) {
    if (!options.levels.overridden(rule)) options.levels.set(rule, Level::Warning);
  };
  for (const Rule* each :
       {&"unknown-instruction"_rule, &"unknown-qualifier"_rule, &"unknown-form"_rule})
    warn(*each);
  if (newer_target) warn("target-support"_rule);
  return options;
}

Diags diags_of(const Options& options) { return Diags({options.levels, options.max_errors}); }

}  // namespace

// Where the number of errors is limited. Warnings of all passes do not come in the text's order.
constexpr std::size_t most_remarks = 1000;

Diag& Context::report(const Rule& rule, std::uint32_t offset, std::size_t width,
                      std::string message) {
  const auto level = options.levels.of(rule);
  const bool remark = level && *level != Level::Error;
  if (remark && ++remarks_ > most_remarks && options.max_errors > 0) return left_out_;
  Diag& diag = diags_.report(rule, module.source->place(offset), std::move(message));
  module.source->quote(diag, width);
  return diag;
}

void Context::finish() {
  if (options.max_errors <= 0 || remarks_ <= most_remarks) return;
  diags_.add({.level = Level::Note,
              .id = "usage"_rule.id,
              .place = {module.source->name(), 0, 0},
              .message = fmt::format("{} more warnings and notes are not shown",
                                     remarks_ - most_remarks)});
}

Diags verify(const ptx::Module& module, const Options& asked) {
  const Options options = allowing_newer(module, asked);
  Diags diags = diags_of(options);
  Context context(module, options, diags);
  for (const auto pass : module_passes) pass(context);
  const ModuleNames names(module);
  Readings readings(module);
  for (const ptx::Function& function : module.functions) {
    if (!function.body) continue;
    Scopes scopes(module, names, function);
    Definitions definitions(module, function);
    std::vector<const ptx::Instruction*> refused;
    const FunctionView view{function, scopes, readings, definitions, refused};
    for (const auto pass : function_passes) pass(context, view);
    if (!has_collectives(module, function)) continue;
    for (const auto pass : sanity_passes) pass(context, view);
  }
  context.finish();
  diags.sort();
  return diags;
}

Diags check(std::shared_ptr<const Source> source, const Options& options) {
  Diags diags = diags_of(options);
  const ptx::Module module = ptx::parse_all(std::move(source), diags);
  diags.append(verify(module, options));
  diags.sort();
  return diags;
}

Diags first_errors(std::shared_ptr<const Source> source, ptx::Module& module) {
  const Options options{.max_errors = detail::most_errors};
  Diags diags = diags_of(options);
  module = ptx::parse(std::move(source), diags);
  if (diags.count(Level::Error) >= static_cast<std::size_t>(detail::most_errors)) return diags;
  diags.append(verify(module, options));
  diags.sort();
  return diags;
}

}  // namespace tartan::TARTAN_ABI::verify
