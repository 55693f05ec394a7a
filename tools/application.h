// SPDX-License-Identifier: Apache-2.0
// tools/application.h - the command as a whole: its subcommands and their options, for main() and
// for the man page and completion (manual.h).
#pragma once

#include <CLI/CLI.hpp>

namespace tartan::tools {

/// Adds everything that `tartan` knows. The callback of the chosen subcommand sets the exit code.
void add_commands(CLI::App& app, int& exit_code);

}  // namespace tartan::tools
