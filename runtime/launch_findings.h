// SPDX-License-Identifier: Apache-2.0
// runtime/launch_findings.h - the severity of a launch's findings.
#pragma once

#include <string_view>

#include "tartan/support/rules.h"

namespace tartan::inline TARTAN_ABI::detail {

/// A finding of a launch is an error, whatever level its rule has for PTX text. These only warn:
/// the results may be right, although the memory model calls them races, or differ by rounding
/// alone.
inline bool only_warns(std::string_view id) {
  return id == "same-value-race"_rule.id || id == "weak-cas-read"_rule.id ||
         id == "schedule-dependent"_rule.id || id == "undecided"_rule.id;
}

}  // namespace tartan::inline TARTAN_ABI::detail
