// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/verify.h"

#include "compiler/ptx/parser.h"
#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

constexpr void (*module_passes[])(Context&) = {
    check_target,
};
constexpr void (*function_passes[])(Context&, const FunctionView&) = {
    check_names,
    check_matrix_instructions,
};

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

Diag& Context::report(const Rule& rule, std::uint32_t offset, std::size_t width, std::string message) {
  Diag& diag = diags_.report(rule, module.source->place(offset), std::move(message));
  diag.source = module.source->line_text(diag.place.line);
  diag.width = static_cast<int>(width);
  return diag;
}

Diags verify(const ptx::Module& module, const Options& options) {
  Diags diags;
  Context context(module, options, diags);
  for (const auto pass : module_passes) pass(context);
  const ModuleNames names(module);
  for (const ptx::Function& function : module.functions) {
    if (!function.body) continue;
    Scopes scopes(module, names, function);
    for (const auto pass : function_passes) pass(context, {function, scopes});
  }
  diags.sort();
  return limited(std::move(diags), options.max_errors);
}

Diags check(std::shared_ptr<const Source> source, const Options& options) {
  Diags diags;
  const ptx::Module module = ptx::parse(std::move(source), diags);
  diags.append(verify(module, {options.arch, options.ptx, 0}));
  diags.sort();
  return limited(std::move(diags), options.max_errors);
}

}  // namespace tartan::verify
