// SPDX-License-Identifier: Apache-2.0
// compiler/support/build_id.h - tells builds of the library apart: what one of them compiled is not
// taken for another's.
#pragma once

#include <string>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// The linker's build id of the shared library (or program) that contains this code, in hexadecimal
/// digits; where it has none, its file's size and time.
const std::string& build_id();

}  // namespace tartan::TARTAN_ABI::detail
