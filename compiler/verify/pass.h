// SPDX-License-Identifier: Apache-2.0
// compiler/verify/pass.h - the context of a verifier pass.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/support/names.h"
#include "compiler/verify/definitions.h"
#include "compiler/verify/reading.h"
#include "compiler/verify/scopes.h"
#include "tartan/ptx/tree.h"
#include "tartan/verify/verify.h"

namespace tartan::TARTAN_ABI::verify {

/// One function of the module, with its names resolved.
struct FunctionView {
  const ptx::Function& function;
  Scopes& scopes;  // passes restart() it, then walk
  Readings& readings;
  Definitions& definitions;
  std::vector<const ptx::Instruction*>& refused;  // that check_instructions() reported
};

class Context {
 public:
  Context(const ptx::Module& module, const Options& options, Diags& diags)
      : module(module), options(options), diags_(diags) {}

  const ptx::Module& module;
  const Options& options;
  Target target;  // what the module is checked against; set by the target pass
  // Some function has several results: all calls then pass registers as they are, whatever their
  // width. Set by the declarations pass.
  bool passes_registers = false;
  // .extern functions that the module does not define. Set by the pass over externals.
  NameSet undefined_functions;

  /// Reports `rule` at a place of the text, `width` columns wide, with the source line.
  Diag& report(const Rule& rule, std::uint32_t offset, std::size_t width, std::string message);
  Diag& report(const Rule& rule, std::string_view text, std::string message) {
    return report(rule, module.offset_of(text), text.size(), std::move(message));
  }
  /// Says how many warnings and notes were left out.
  void finish();

 private:
  Diags& diags_;
  std::size_t remarks_ = 0;  // warnings and notes
  Diag left_out_;            // stands for those that are not kept
};

/// Whether only a label can reach the next statement: an unguarded branch, return or exit.
inline bool ends_way(const ptx::Module& module, const ptx::Instruction& instruction) {
  if (!instruction.guard.empty()) return false;
  const isa::Control control = module.spelling(instruction).row().control;
  return control != isa::Control::FallsThrough && control != isa::Control::Calls;
}

// The passes. Module passes run once, function passes once for each function with a body.
void check_target(Context& context);
void check_module_names(Context& context);
void check_tensor_memory_groups(Context& context);
void check_declarations(Context& context);
void check_initializers(Context& context);
void check_directives(Context& context);
void check_debug_information(Context& context);
void check_externals(Context& context);
void check_shared_memory(Context& context);
void check_parameter_use(Context& context, const FunctionView& view);
void check_redefinitions(Context& context, const FunctionView& view);
void check_instructions(Context& context, const FunctionView& view);
void check_calls(Context& context, const FunctionView& view);
void check_external_calls(Context& context, const FunctionView& view);
void check_register_budget(Context& context, const FunctionView& view);
void check_narrow_stores(Context& context, const FunctionView& view);
void check_provenance(Context& context, const FunctionView& view);
void check_convergence(Context& context, const FunctionView& view);
/// A part of it. `reported`: the instructions of which it has said so.
void check_divergent_loops(Context& context, const FunctionView& view,
                           std::unordered_set<const ptx::Instruction*>& reported);
void check_asynchronous(Context& context, const FunctionView& view);
void check_warpgroups(Context& context, const FunctionView& view);
void check_proxies(Context& context, const FunctionView& view);
void check_alignment(Context& context, const FunctionView& view);
void check_performance(Context& context, const FunctionView& view);
void check_tensor_descriptors(Context& context, const FunctionView& view);
void check_tensor_loads(Context& context, const FunctionView& view);

}  // namespace tartan::TARTAN_ABI::verify
