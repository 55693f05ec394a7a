// SPDX-License-Identifier: Apache-2.0
// runtime/schedules.h - a manifest under many schedules: `tartan run --schedules`.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/outcome.h"

namespace tartan::TARTAN_ABI {

/// Runs the manifest on the emulator in the usual order and under the seeds 0 to `count` - 1
/// (DeviceOptions::schedule), up to the first that has an error. That one's outcome is returned,
/// else that of the usual order; `schedules` says which it was. Where the usual order's results are
/// not those expected, seeds may show why; where they are, a seed's that are not end it, too. Where
/// two schedules leave different results there is a warning, schedule-dependent. options.timeout
/// bounds all of it: where it ends before the seeds do, the outcome is `undecided`.
Outcome run_seeds(const Manifest& manifest, const DeviceOptions& options, std::uint64_t count,
                  const RuleLevels& levels = {});

/// Decides whether every schedule of the launch is free of races and deadlocks: by one run in the
/// usual order, where that decides all of them (runtime/emulator/schedules/determinacy.h), else by
/// going through those that differ in what threads see of each other (explorer.h), at most `most`.
/// Where neither comes to an end, 20 seeds are run, too, and if they have no finding the outcome is
/// `undecided`, and names what stands in the way. options.timeout bounds all of it.
Outcome decide_schedules(const Manifest& manifest, const DeviceOptions& options, std::uint64_t most,
                         const RuleLevels& levels = {});

}  // namespace tartan::TARTAN_ABI
