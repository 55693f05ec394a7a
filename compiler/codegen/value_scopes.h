// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/value_scopes.h - values that are used where they may not exist.
#pragma once

#include <llvm/IR/Function.h>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::codegen {

/// A value of the body of a loop or condition that is used after that body: one diagnostic for each
/// pair of C++ places. LLVM's verifier would speak of dominance, at no place.
[[gnu::visibility("hidden")]] Diags values_out_of_scope(llvm::Function& function);

}  // namespace tartan::TARTAN_ABI::codegen
