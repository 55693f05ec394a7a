// SPDX-License-Identifier: Apache-2.0
// tools/rules.h - the rules of diagnostics in words: their page, and levels that are set for them.
#pragma once

#include <string>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// docs/diagnostics.md.
std::string rules_document();

/// Ids as --error, --warn and --ignore take them.
struct LevelWords {
  std::vector<std::string> error, warn, ignore;
};

/// The levels that they ask for; "all" among the errors: every rule that warns. An unknown id and
/// one that is asked for twice are diagnostics.
Result<RuleLevels> read_levels(const LevelWords& words);

}  // namespace tartan::tools
