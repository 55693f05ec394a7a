// SPDX-License-Identifier: Apache-2.0
// runtime/launch_findings.h - the levels of a launch's findings.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tartan/support/rules.h"

namespace tartan::TARTAN_ABI::detail {

/// A finding of a launch is an error, whatever level its rule has for PTX text. These only warn:
/// no hardware is known to give other results for them, or they may differ by rounding alone, or
/// the manual asks for what much code in use leaves out. Why is in tartan/support/rules.h.
inline bool only_warns(std::string_view id) {
  constexpr std::string_view ids[] = {
      "same-value-race"_rule.id,     "weak-cas-read"_rule.id,      "store-at-exit"_rule.id,
      "store-by-every-lane"_rule.id, "proxy-fence-read"_rule.id,   "mbarrier-init-fence"_rule.id,
      "mbarrier-wait-scope"_rule.id, "schedule-dependent"_rule.id, "undecided"_rule.id,
      "converged-exchange"_rule.id,  "repeated-init"_rule.id,      "unspecified-order"_rule.id,
      "unspecified-value"_rule.id,   "collector-use"_rule.id};
  return std::ranges::find(ids, id) != std::end(ids);
}

/// Of what `tartan check` warns about a text, this only warns of its launch too: the launch itself
/// shows whether it happens.
inline bool is_shown_by_launch(std::string_view id) {
  return id == "newer-than-known"_rule.id || id == "maybe-divergent"_rule.id ||
         id == "missing-wait"_rule.id || id == "missing-barrier"_rule.id ||
         id == "register-bounds"_rule.id || id == "instruction-descriptor"_rule.id ||
         id == "matrix-descriptor"_rule.id || id == "tensor-memory"_rule.id;
}

/// Whether a warning is about what a text newer than known has: a launch refuses it, if its kernel
/// has it.
inline bool is_of_newer_text(std::string_view id) {
  return id == "unknown-instruction"_rule.id || id == "unknown-qualifier"_rule.id ||
         id == "unknown-form"_rule.id || id == "target-support"_rule.id;
}

}  // namespace tartan::TARTAN_ABI::detail
