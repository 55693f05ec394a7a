// SPDX-License-Identifier: Apache-2.0
// compiler/support/sarif.h - diagnostics as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange
// Format), which code hosts and editors show beside the source.
#pragma once

#include <string>
#include <string_view>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// One run of the tool `tartan`, of that version. `completed`: every requested file could be read
/// and checked.
std::string to_sarif(const Diags& diags, std::string_view version, bool completed);

}  // namespace tartan::TARTAN_ABI
