// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/verify.h"

#include <algorithm>
#include <iterator>

#include "compiler/ptx/parser.h"
#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

constexpr void (*module_passes[])(Context&) = {
    check_target,
    check_module_names,
};
constexpr void (*function_passes[])(Context&, const FunctionView&) = {
    check_instructions,
    check_redefinitions,
    check_matrix_instructions,
    check_availability,
};
// Legal, but is it sane? For functions with instructions of whole warps or asynchronous copies.
constexpr void (*sanity_passes[])(Context&, const FunctionView&) = {
    check_provenance, check_convergence, check_asynchronous, check_warpgroups,
    check_proxies,    check_alignment,   check_performance,
};

bool has_collectives(const ptx::Module& module, const ptx::Function& function) {
  for (const ptx::Statement& statement : function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const std::string_view opcode = module.instructions[statement.index].opcode;
    if (opcode.starts_with("bar.") || opcode.starts_with("barrier.") ||
        opcode.starts_with("cp.async") || opcode.starts_with("cp.reduce.async") ||
        opcode.starts_with("wgmma.") || opcode.starts_with("setmaxnreg.") ||
        isa::matrix_opcode(opcode) != isa::Opcode::none)
      return true;
  }
  return false;
}

// Keeps the first `limit` errors and what is not an error before them.
Diags limited(Diags all, int limit) {
  if (limit <= 0) return all;
  Diags kept;
  int errors = 0;
  for (const Diag& diag : all) {
    if (diag.level == Level::Error && ++errors > limit) break;
    kept.add(diag);
  }
  return kept;
}

}  // namespace

Diag& Context::report(const Rule& rule, std::uint32_t offset, std::size_t width,
                      std::string message) {
  if (rule.level == Level::Error) {
    errors_.resize(std::max(errors_.size(), pass_ + 1));
    if (options.max_errors > 0 && errors_[pass_] >= options.max_errors) return unseen_;
    ++errors_[pass_];
  }
  Diag& diag = diags_.report(rule, module.source->place(offset), std::move(message));
  module.source->quote(diag, width);
  return diag;
}

void Context::lower(Diag& diag) {
  if (&diag != &unseen_) --errors_[pass_];
  diag.level = Level::Warning;
}

namespace {

template <typename Passes, typename... Arguments>
void run(std::size_t first, const Passes& passes, Context& context, Arguments&... arguments) {
  for (const auto pass : passes) {
    context.begin(first++);
    pass(context, arguments...);
  }
}

}  // namespace

Diags verify(const ptx::Module& module, const Options& options) {
  Diags diags;
  Context context(module, options, diags);
  run(0, module_passes, context);
  const ModuleNames names(module);
  Readings readings;
  for (const ptx::Function& function : module.functions) {
    if (!function.body) continue;
    Scopes scopes(module, names, function);
    Definitions definitions(module, function);
    const FunctionView view{function, scopes, readings, definitions};
    constexpr std::size_t first = std::size(module_passes);
    run(first, function_passes, context, view);
    if (has_collectives(module, function))
      run(first + std::size(function_passes), sanity_passes, context, view);
  }
  diags.sort();
  return limited(std::move(diags), options.max_errors);
}

Diags check(std::shared_ptr<const Source> source, const Options& options) {
  Diags diags;
  const ptx::Module module = ptx::parse(std::move(source), diags, options.max_errors);
  diags.append(verify(module, options));
  diags.sort();
  return limited(std::move(diags), options.max_errors);
}

}  // namespace tartan::verify
