// SPDX-License-Identifier: Apache-2.0
// runtime/equal_judge.h - the runs of `tartan equal` and what they say, once buffers are matched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/equal_launch.h"
#include "runtime/formula.h"

namespace tartan::TARTAN_ABI::detail {

/// A kernel, and another one or a formula.
struct EqualSides {
  const Manifest& a;
  const Manifest* b = nullptr;
  std::optional<Formula> formula;
  std::vector<EqualBuffer> buffers;
  std::vector<std::string> names_a, names_b;  // of the buffers in the two manifests
};

/// Runs both on several draws of the inputs. "Same" takes all of them.
void judge(EqualSides& sides, const EqualOptions& options, Equality& out);

}  // namespace tartan::TARTAN_ABI::detail
