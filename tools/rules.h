// SPDX-License-Identifier: Apache-2.0
// tools/rules.h - the page of the diagnostics' rules, and their levels on the command line.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// docs/diagnostics.md.
std::string rules_document();

/// Ids as given to --error, --warn and --ignore.
struct LevelWords {
  std::vector<std::string> error, warn, ignore;
};

/// --error, --warn and --ignore, as often as they are given.
void add_levels(CLI::App& command, LevelWords& words);

/// The requested levels; "all" among the errors: every rule that warns. An unknown or repeated id
/// gives a diagnostic.
Result<RuleLevels> read_levels(const LevelWords& words);

}  // namespace tartan::tools
