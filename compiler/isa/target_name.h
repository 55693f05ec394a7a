// SPDX-License-Identifier: Apache-2.0
// compiler/isa/target_name.h - the names that .target may give an architecture: sm_90a and
// compute_90a, those of GPUs before the oldest one of the table, and those of GPUs to come.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI {

/// "sm_90a" of the table, without a reason why it is not there: Arch::parse() gives one.
std::optional<Arch> arch_named(std::string_view text);

/// What a word of .target names.
struct TargetName {
  std::string_view text;
  Arch arch;           // what the module is judged as
  Version first;       // the first PTX version that has the name
  int older = 0;       // the number of a GPU before archs[0], which is judged as archs[0]; or 0
  bool newer = false;  // a GPU that the table lacks, which is judged as the nearest older one
};

/// A version after the newest known one that PTX may have one day.
bool is_newer(Version version);

/// Nothing if no architecture has that name.
std::optional<TargetName> read_target_name(std::string_view text);

/// The architecture of a module, from the words of its .target: the last that they name. Nothing
/// unless the first one names one.
std::optional<TargetName> named_target(std::span<const std::string_view> words);

}  // namespace tartan::TARTAN_ABI
