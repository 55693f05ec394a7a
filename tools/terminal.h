// SPDX-License-Identifier: Apache-2.0
// tools/terminal.h - where colours go.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tartan::tools {

/// Colours on a terminal only, and not where NO_COLOR asks for none.
inline bool colour(std::FILE* stream) { return isatty(fileno(stream)) && !std::getenv("NO_COLOR"); }

}  // namespace tartan::tools
