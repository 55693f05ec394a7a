// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/accumulators.h - registers of wgmma's accumulators that LLVM does not see.
// Private to compiler/codegen.
#pragma once

#include <llvm/Pass.h>

#include <string>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::codegen {

/// A pass for SSA form. Where each accumulator stays in one place from product to product and wait
/// to wait, its register gets a name of its own, %acc0, %acc1, ..., in the text of these
/// statements: as tied operands, 128 accumulators take most of the back end's time. Constants move
/// in, results move out behind a wait; the checks of the text see all of that. Code whose products
/// start from other values, or whose results are used between them, stays as it is. `declaration`
/// receives the text that declares the registers; it stays empty if none is named.
[[gnu::visibility("hidden")]] llvm::FunctionPass* name_accumulators(std::string& declaration);

}  // namespace tartan::TARTAN_ABI::codegen
