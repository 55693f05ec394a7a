// SPDX-License-Identifier: Apache-2.0
// compiler/support/ascii.h - names of files in PTX text, which is ASCII: bytes outside it as
// \303\266, as LLVM writes them into .file.
#pragma once

#include <string>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// `text` on one line of printable ASCII: every other byte as a backslash and three octal digits.
std::string ascii(std::string_view text);

/// The bytes outside ASCII that ascii() replaced.
std::string from_ascii(std::string_view text);

}  // namespace tartan::TARTAN_ABI
