// SPDX-License-Identifier: Apache-2.0
// dsl/kernels/arrival.h - how CTAs that have parts of a result find out which of them is the last:
// it adds the parts, and none waits for another. Not installed.
#pragma once

#include "tartan/dsl/builder.h"

namespace tartan::inline TARTAN_ABI::kernels::detail {

/// How many CTAs arrived at the counter before this one, u32, in all of its (consumer) threads. The
/// one of number `last` (u32) sees what all threads of the others wrote before they arrived, and
/// leaves the counter at 0. `ticket`: one u32.
inline Scalar arrive(Builder& k, const Shared& ticket, const Global& counters, const Scalar& row,
                     const Scalar& col, const Scalar& last) {
  k.barrier();
  k.when(k.thread() == 0, [&] {
    k.write(ticket, 0, 0,
            k.atomic(AtomicOp::inc, counters, row, col, last, {.order = MemoryOrder::acq_rel}));
  });
  k.barrier();
  return k.read(ticket, 0, 0);
}

}  // namespace tartan::inline TARTAN_ABI::kernels::detail
