// SPDX-License-Identifier: Apache-2.0
// runtime/equal_explain.h - on which input element two results depend differently.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/equal_compare.h"

namespace tartan::TARTAN_ABI::detail {

/// Both sides once more, with other variables.
using RunBoth = std::function<std::pair<EqualRun, EqualRun>(const Replaced&)>;

/// Gives some input elements new variables, and halves the set while the two results change by
/// different amounts; within about `seconds`.
std::optional<UnequalTerm> find_term(EqualRun& a, EqualRun& b,
                                     const std::vector<EqualBuffer>& buffers,
                                     const ComparedElement& where, const RunBoth& run,
                                     double seconds);

}  // namespace tartan::TARTAN_ABI::detail
