// SPDX-License-Identifier: Apache-2.0
// tools/emit_manifest.h - writes a manifest for `tartan run` that launches a compiled kernel.
#pragma once

#include <string>

#include "tartan/dsl/kernel.h"
#include "tartan/runtime/device.h"

namespace tartan::tools {

/// The manifest of a launch with this grid, for a file `manifest` that names the PTX file `output`.
/// Buffers are filled with zeros, to be replaced by files; scalars are 1. A kernel whose sizes only
/// a launch knows gives a diagnostic.
Result<std::string> launch_manifest(const Compiled& compiled, Dim3 grid, const std::string& output,
                                    const std::string& manifest);

/// Whether both paths refer to the same file.
bool same_path(const std::string& x, const std::string& y);

}  // namespace tartan::tools
