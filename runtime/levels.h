// SPDX-License-Identifier: Apache-2.0
// runtime/levels.h - the levels of what a run on the emulator has found: does it change the
// outcome?
//
//   a load that races with a store    the same run again, in which what such loads bring counts as
//                                     undefined: a warning if that reaches no output, branch,
//                                     address or barrier
//   a value that nobody wrote         the same run with ones, NaNs and random bits in place of such
//                                     values, the first of which had zeros: a warning if all
//                                     buffers end the same
//
// What one other order of accesses gives says nothing of the next one, and is not asked for.
#pragma once

#include "runtime/outcome.h"

namespace tartan::TARTAN_ABI {

/// Settles the levels of `outcome`, a run under these options that ended, and says in the messages
/// what the further runs have shown. They take no longer together than `options.timeout`.
void settle_levels(const Manifest& manifest, const DeviceOptions& options, Outcome& outcome);

}  // namespace tartan::TARTAN_ABI
