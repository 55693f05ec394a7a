// SPDX-License-Identifier: Apache-2.0
// tools/emit_manifest.h - a manifest for `tartan run` that launches a compiled kernel.
#pragma once

#include <string>

#include "dsl/kernel.h"
#include "runtime/device.h"

namespace tartan::tools {

/// Buffers are filled with zeros, ready to be replaced by files; scalars are 1. `ptx` is the file's
/// name as the manifest has it. A kernel whose sizes only a launch knows is a diagnostic.
Result<std::string> manifest_of(const Compiled& compiled, Dim3 grid, const std::string& ptx);

}  // namespace tartan::tools
