// SPDX-License-Identifier: Apache-2.0
// runtime/launch_findings.h - how severe a finding of a launch is.
#pragma once

#include <string_view>

#include "tartan/support/rules.h"

namespace tartan::inline TARTAN_ABI::detail {

/// A finding of a launch is an error, whatever level its rule has in a text: these are not, because
/// the results may be right and the memory model calls them races all the same.
inline bool only_warns(std::string_view id) {
  return id == "same-value-race"_rule.id || id == "weak-cas-read"_rule.id;
}

}  // namespace tartan::inline TARTAN_ABI::detail
