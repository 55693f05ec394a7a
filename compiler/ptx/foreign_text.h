// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/foreign_text.h - for messages: text that is not PTX but something else, such as a
// path or CUDA C.
#pragma once

#include <string>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::ptx {

/// What the text as a whole is in place of PTX, and what to do: "expected PTX, found the path
/// k.ptx;
/// ..."; empty if it may be PTX.
std::string foreign_text(std::string_view text);

/// What to write in place of a statement that begins with a word of C: "PTX has no 'for': ...";
/// empty for every other word.
std::string c_statement(std::string_view word);

/// Whether a declaration or statement of CUDA C begins with the word.
bool is_c_word(std::string_view word);

}  // namespace tartan::TARTAN_ABI::ptx
