// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

KernelState::KernelState(const Kernel& kernel, const Target& target)
    : config(kernel.options(target), target),
      log(target, kernel.place()),
      function(std::make_unique<ir::FunctionBuilder>(kernel.name(), target, config.bounds())) {}

void KernelState::at(const std::source_location& here) {
  log.at(here);
  if (is_described()) return function->at(here);
  // The current kernel lacks what was intended for it.
  if (function) log.report("foreign-value"_rule, "this call belongs to another kernel");
  KernelState* const other = Description::current();
  if (!other) return;
  other->log.resume(here);
  other->log.report("foreign-value"_rule, "this call belongs to another kernel");
}

}  // namespace tartan::TARTAN_ABI::detail
