// SPDX-License-Identifier: Apache-2.0
// dsl/register_budget.h - whether accumulators fit into a thread's registers. Not installed.
#pragma once

#include <algorithm>

#include "dsl/configuration.h"
#include "tartan/support/diagnostic.h"

namespace tartan::inline TARTAN_ABI::detail {

class RegisterBudget {
 public:
  /// One tile's accumulators: 32-bit registers of each thread, all of which live at once.
  void hold(int registers, const Place& at) {
    if (registers <= most_) return;
    most_ = registers, at_ = at;
  }
  /// A warning where they and what every kernel needs beside exceed the share of a thread.
  Diags warnings(const Configuration& config) const;

 private:
  int most_ = 0;
  Place at_;
};

}  // namespace tartan::inline TARTAN_ABI::detail
