// SPDX-License-Identifier: Apache-2.0
// tools/wording.h - says in Tartan's words what CLI11 says of a wrong value.
#pragma once

#include <string>

namespace tartan::tools {

/// "--m 1.5: expected a whole number", for "Could not convert: --m = 1.5". Other text comes
/// back as it is.
std::string reworded(const std::string& text);

}  // namespace tartan::tools
