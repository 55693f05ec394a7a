// SPDX-License-Identifier: Apache-2.0
// tools/command_line.h - parses the command line, with diagnostics for invalid arguments.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace tartan::tools {

/// Parses and runs the command. None: it ran. Otherwise the exit code, after printing help or a
/// diagnostic of rule "usage" in the usual form, as JSON if --json is among the arguments.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

/// An argument that the command was given beside this option, as the help calls it: for options
/// that exclude all others. Empty: none.
std::string given_beside(const CLI::App& command, const std::string& option);

/// `--max-steps` and `--timeout` (0: no limit) of a command that runs kernels on the emulator, as
/// `text` describes them.
void add_step_limit(CLI::App& command, std::uint64_t& steps, const std::string& text);
void add_time_limit(CLI::App& command, double& seconds, const std::string& text);

}  // namespace tartan::tools
