// SPDX-License-Identifier: Apache-2.0
// tools/manual.h - the man page and the completion of shells, made from what the command knows of
// its options. None of them is written by hand: what --help shows is in them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tartan::tools {

/// tartan(1), in the macros of man(7).
std::string man_page(CLI::App& app);

/// A function of bash that completes commands, options, and the values of options that have a list
/// of them.
std::string bash_completion(CLI::App& app);

/// The same for zsh, with descriptions.
std::string zsh_completion(CLI::App& app);

}  // namespace tartan::tools
