// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/assemble.h - the driver's linker as an assembler: PTX text to a cubin.
#pragma once

#include "runtime/cuda/context.h"

namespace tartan::TARTAN_ABI::cuda {

/// Assembles `ptx` for the context's GPU. Text with syntax errors never reaches the driver; a
/// rejection by the driver comes with its log.
Result<Assembled> assemble(Context& context, const std::string& ptx, const std::string& name);

}  // namespace tartan::TARTAN_ABI::cuda
