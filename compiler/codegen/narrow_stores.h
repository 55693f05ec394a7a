// SPDX-License-Identifier: Apache-2.0
// compiler/codegen/narrow_stores.h - stores of a part of a floating-point number's bits. Private to
// compiler/codegen.
#pragma once

#include <llvm/Pass.h>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::codegen {

/// A pass for SSA form. Where an instruction of floating-point numbers wrote the register that a
/// narrower st takes, ptxas (as of CUDA 13.0) stores the number converted to an integer, and not
/// its low bits, whatever types the registers and st have. So such bits are moved before.
[[gnu::visibility("hidden")]] llvm::FunctionPass* move_before_narrow_stores();

}  // namespace tartan::TARTAN_ABI::codegen
