// SPDX-License-Identifier: Apache-2.0
// tools/terminal.h - output of commands: colours, and errors.
#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/support/messages.h"
#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// The value of --color: "always", "never", or "auto".
void set_colour(const std::string& when);

/// Whether to write colours to the stream. "auto": on a terminal that has colours, unless NO_COLOR
/// is set.
bool colour(std::FILE* stream);

/// Columns of the stream's lines: the environment's COLUMNS, else the terminal's width; nothing
/// where it is not a terminal.
std::optional<std::size_t> columns(std::FILE* stream);

using detail::complain;

/// Text that somebody else has made, with what a terminal would obey escaped: printable(), line by
/// line.
std::string for_terminal(std::string_view text);

/// Writes a file, or standard output where `path` is "-".
Status write_output(const std::string& path, std::string_view text);

/// Writes the diagnostics to standard error, or as one JSON object to standard output; returns
/// `code`.
int fail(int code, const Diags& diags, bool json = false);

/// The same for one diagnostic of invalid arguments; returns their exit code.
int usage_error(const std::string& message, bool json = false);

}  // namespace tartan::tools
