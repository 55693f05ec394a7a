// SPDX-License-Identifier: Apache-2.0
// tools/commands.h - the subcommands of `tartan`, one thin file each. Each function adds its
// subcommand; the callback sets the exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace tartan::tools {

// Exit codes shared by all commands.
inline constexpr int exit_ok = 0;
inline constexpr int exit_failed =
    1;  // what was asked does not hold: an error in the text, an expectation that fails
inline constexpr int exit_usage = 2;    // invalid arguments, an unreadable file, a missing device
inline constexpr int exit_trapped = 3;  // run: the kernel trapped, or a check found a defect

void add_check(CLI::App& app, int& exit_code);
void add_isa(CLI::App& app, int& exit_code);
void add_print(CLI::App& app, int& exit_code);
void add_layout(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_manifest(CLI::App& app, int& exit_code);
void add_equal(CLI::App& app, int& exit_code);
void add_explore(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_cache(CLI::App& app, int& exit_code);
// If code generation is built in:
void add_emit(CLI::App& app, int& exit_code);
void add_tune(CLI::App& app, int& exit_code);

}  // namespace tartan::tools
