// SPDX-License-Identifier: Apache-2.0
// tartan/version.h - which Tartan this is.
//
// The macros of tartan/config.h say what a program was compiled against; version() says what it
// runs with.
#pragma once

#include <string_view>

#include "tartan/abi.h"
#include "tartan/config.h"

namespace tartan::inline TARTAN_ABI {

/// The library's version: "0.1.0".
std::string_view version();

/// What it generates code with: "LLVM 22.1.0"; empty where it was built without.
std::string_view code_generator();

}  // namespace tartan::inline TARTAN_ABI
