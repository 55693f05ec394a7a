// SPDX-License-Identifier: Apache-2.0
// runtime/profile_report.h - a profile as `tartan run --report` prints it, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tartan/runtime/profile.h"

namespace tartan::TARTAN_ABI {

/// Totals, the mix of instructions, the ten costliest, and every bank conflict.
std::string profile_text(std::span<const InstructionProfile> instructions);
/// A list of the instructions that ran, in the order of the text.
nlohmann::ordered_json profile_json(std::span<const InstructionProfile> instructions);

}  // namespace tartan::TARTAN_ABI
