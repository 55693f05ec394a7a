// SPDX-License-Identifier: Apache-2.0
// compiler/isa/nearest_arch.h - for messages: the architecture nearest to a misspelled name.
#pragma once

#include <string_view>

#include "tartan/isa/target.h"

namespace tartan::inline TARTAN_ABI {

/// The existing version nearest to `version`, with the same major version if possible.
Version nearest_version(Version version);

/// The known architecture nearest to `text`: first by number, then by suffix.
Arch nearest_arch(std::string_view text);

}  // namespace tartan::inline TARTAN_ABI
