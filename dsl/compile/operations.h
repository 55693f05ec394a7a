// SPDX-License-Identifier: Apache-2.0
// dsl/compile/operations.h - what a kernel's description records, as text (`tartan emit --ir`).
#pragma once

#include <string>

#include "tartan/dsl/kernel.h"

namespace tartan::TARTAN_ABI::detail {

/// The kernel's operations before any of them is LLVM's, or the description's mistakes. `asked`: an
/// Arch or a Target, as for compile(). The form of the text may change with every version.
template <typename Asked>
Result<std::string> operations(const Kernel& kernel, const Asked& asked);

}  // namespace tartan::TARTAN_ABI::detail
