// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/absent_results.h - results of statements that were muted: threads that do not
// execute a statement have no result of it, and must not need one.
#pragma once

#include <llvm/IR/Function.h>

#include <string>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::codegen {

/// A call that stands for such a result until the function is complete; `why` is what to report if
/// an effect depends on it. `reasons` belong to the module.
[[gnu::visibility("hidden")]] llvm::FunctionCallee absent_result(llvm::Module& module,
                                                                 llvm::Type* type,
                                                                 std::vector<std::string>& reasons,
                                                                 const std::string& why);

/// Replaces these calls by zeros, and reports each that a store, a copy or another effect depends
/// on: by its operands, or by a condition that decides whether it happens. Removes blocks that are
/// never reached and promotes variables to registers before.
[[gnu::visibility("hidden")]] Diags settle_absent_results(llvm::Function& function,
                                                          const std::vector<std::string>& reasons);

}  // namespace tartan::TARTAN_ABI::codegen
