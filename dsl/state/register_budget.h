// SPDX-License-Identifier: Apache-2.0
// dsl/state/register_budget.h - whether a kernel fits into its threads' registers. Not installed.
//
// What the assembler does is predicted from the text: a wgmma whose registers a thread does not
// have is refused (an error), more values than registers are spilled (a warning). The prediction of
// spills is made to miss some rather than to warn of one that does not happen; tests compare it
// with the assembler's own report on hundreds of kernels.
#pragma once

#include <string>

#include "compiler/verify/live_registers.h"
#include "dsl/state/configuration.h"
#include "tartan/dsl/tiled_mma.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

class RegisterBudget {
 public:
  /// A tile's accumulators: 32-bit registers of each thread, all of which live at once.
  void hold(int registers, const Tile& tile, const Place& at);
  /// `need`: of the kernel's text `ptx`.
  Diags check(const Configuration& config, const verify::LiveRegisters& need,
              const std::string& ptx) const;

 private:
  std::string refused(const verify::LiveRegisters& need, int share) const;
  std::string smaller(int most, int share) const;

  int most_ = 0;     // of one tile's accumulators
  Tile tile_;        // that tile
  bool one_ = true;  // no other tile has another shape
  Place at_;
};

}  // namespace tartan::TARTAN_ABI::detail
