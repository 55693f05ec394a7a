// SPDX-License-Identifier: Apache-2.0
// compiler/isa/nearest_arch.h - for messages: which architecture a misspelled name may have meant.
#pragma once

#include <string_view>

#include "tartan/isa/target.h"

namespace tartan::inline TARTAN_ABI {

/// The version that exists and is nearest to `version`: of the same number before the dot, if there
/// is one.
Version nearest_version(Version version);

/// The known architecture whose number, and then suffix, is nearest to what `text` says.
Arch nearest_arch(std::string_view text);

}  // namespace tartan::inline TARTAN_ABI
