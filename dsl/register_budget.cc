// SPDX-License-Identifier: Apache-2.0
#include "dsl/register_budget.h"

#include <fmt/format.h>

namespace tartan::inline TARTAN_ABI::detail {
namespace {

// Addresses, counters and the operands of one instruction, as measured on GEMMs: no kernel that
// holds more was assembled without spills.
constexpr int beside_copies = 16, beside_waits = 20;  // threads that copy; consumers of producers

}  // namespace

Diags RegisterBudget::warnings(const Configuration& config) const {
  Diags out;
  const int share = config.registers(),
            most = share - (config.options.producers ? beside_waits : beside_copies);
  if (most_ > most)
    out.report("register-pressure"_rule, at_,
               fmt::format("the tile's accumulators take {} registers of each thread: expected at "
                           "most {} of the {} that a thread of this CTA has, or the assembler "
                           "spills them; use a smaller tile or more warps",
                           most_, most, share));
  return out;
}

}  // namespace tartan::inline TARTAN_ABI::detail
