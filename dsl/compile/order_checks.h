// SPDX-License-Identifier: Apache-2.0
// dsl/compile/order_checks.h - accesses to shared memory that no barrier orders, and barriers that
// some of their threads do not reach, found over the recorded description. Not installed.
#pragma once

#include "dsl/state/state.h"

namespace tartan::TARTAN_ABI::detail {

void check_order(KernelState& state);

}  // namespace tartan::TARTAN_ABI::detail
