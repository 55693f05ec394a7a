// SPDX-License-Identifier: Apache-2.0
// runtime/summary.h - the outcome of a run in one line, and whether it compared anything.
#pragma once

#include <string>

#include "runtime/outcome.h"

namespace tartan::TARTAN_ABI {

/// "gemm: emulator (sm_90), 128 CTAs, 0.08 s, no findings, C equals the reference (65,536
/// elements)"; empty where nothing ran.
std::string summary(const Outcome& outcome, double seconds);

/// Whether every launch ended, and no buffer was compared with anything.
bool compared_nothing(const Outcome& outcome);

/// Says so, at the level of rule nothing-compared: an error lets the outcome fail (exit code 1).
void report_nothing_compared(Outcome& outcome);

}  // namespace tartan::TARTAN_ABI
