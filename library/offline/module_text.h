// SPDX-License-Identifier: Apache-2.0
// library/offline/module_text.h - the kernels of a target as one PTX module. Not installed.
//
// Its text does not depend on the folder of the build: source files are named relative to a root,
// or by their file name alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tartan/dsl/kernel.h"

namespace tartan::TARTAN_ABI::offline {

/// A source file's name in what is written: relative to `root` if it is below it, else the file's
/// name alone.
std::string source_name(std::string_view file, std::string_view root);

/// The module of `kernels`, all of one target and with different names. Its PTX version is the
/// latest of theirs. It names Tartan's version and a hash of all that follows.
Result<std::string> module_text(const std::vector<Compiled>& kernels, std::string_view root);

}  // namespace tartan::TARTAN_ABI::offline
