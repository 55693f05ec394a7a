// SPDX-License-Identifier: Apache-2.0
// tartan/version.h - the version of Tartan.
//
// The macros of tartan/config.h give the version that a program was compiled against; version() the
// version that it runs with.
#pragma once

#include <string_view>

#include "tartan/abi.h"
#include "tartan/config.h"

namespace tartan::TARTAN_ABI {

/// The library's version: "0.1.0".
std::string_view version();

/// The code generator: "LLVM 22.1.0"; empty in a build without LLVM.
std::string_view code_generator();

}  // namespace tartan::TARTAN_ABI
