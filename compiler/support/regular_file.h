// SPDX-License-Identifier: Apache-2.0
// compiler/support/regular_file.h - files that an input names, which may name anything.
#pragma once

#include <string>

#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI::detail {

/// read_source() of a regular file; a FIFO, for which that would wait, is refused like a device.
Result<Source> read_regular_file(const std::string& path);

}  // namespace tartan::TARTAN_ABI::detail
