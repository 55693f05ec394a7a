// SPDX-License-Identifier: Apache-2.0
// compiler/isa/target_hint.h - for messages: what to write in place of an unknown target or
// version.
#pragma once

#include <string>
#include <string_view>

#include "compiler/isa/target_name.h"

namespace tartan::TARTAN_ABI {

/// The existing version nearest to `version`, with the same major version if possible.
Version nearest_version(Version version);

/// What follows "unknown target sm_9O": "; the nearest is sm_90"; of a GPU's name "; the GPU H100
/// has sm_90a".
std::string target_hint(std::string_view text);

/// That a module's version or target is newer than known, and what it is judged as; else empty.
std::string newer_problem(std::optional<Version> version, const std::optional<TargetName>& target);

/// What is wrong with a module's .version, and with its .target; empty if nothing is.
std::string version_problem(Version version);
std::string target_problem(std::string_view text);

}  // namespace tartan::TARTAN_ABI
