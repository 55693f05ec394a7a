// SPDX-License-Identifier: Apache-2.0
// tools/terminal.h - how commands write: where colours go, and errors.
#pragma once

#include <cstdio>
#include <string>

#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// What --color says: "always", "never", or "auto".
void set_colour(const std::string& when);

/// Whether to write colours there. "auto": on a terminal that has them, and not where NO_COLOR asks
/// for none.
bool colour(std::FILE* stream);

/// Writes the diagnostics to standard error, or as one JSON object to standard output; gives
/// `code`.
int fail(int code, const Diags& diags, bool json = false);

/// The same for one of invalid arguments; gives their exit code.
int usage_error(const std::string& message, bool json = false);

}  // namespace tartan::tools
