// SPDX-License-Identifier: Apache-2.0
// tools/command_line.h - the command line against the commands that are declared, and what is said
// of a wrong one.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

namespace tartan::tools {

/// Parses and runs the command. None: it ran. Otherwise the exit code, with help printed or a
/// diagnostic of rule "usage" in the usual form, as JSON where --json is among the words.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace tartan::tools
