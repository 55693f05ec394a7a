// SPDX-License-Identifier: Apache-2.0
// library/offline/assembler.h - NVIDIA's assembler, run as a program. Not installed.
#pragma once

#include <string>

#include "tartan/isa/target.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::offline {

/// The machine code of a PTX module, by `ptxas` (a path, or a program on PATH). What it refuses is
/// "module-load", with its messages; that it cannot be run is "file".
Result<std::string> assemble(const std::string& ptxas, const std::string& ptx, Arch arch);

}  // namespace tartan::TARTAN_ABI::offline
