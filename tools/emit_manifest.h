// SPDX-License-Identifier: Apache-2.0
// tools/emit_manifest.h - writes a manifest for `tartan run` that launches a compiled kernel.
#pragma once

#include <string>

#include "kernels/registry/launch_example.h"

namespace tartan::tools {

/// The manifest of that launch, for a file `manifest` that names the PTX file `output`. Buffers are
/// filled with zeros, to be replaced by files; scalars that are no size are 1. A buffer whose size
/// nobody can tell gives a diagnostic.
Result<std::string> launch_manifest(const Compiled& compiled,
                                    const builtins::LaunchExample& example,
                                    const std::string& output, const std::string& manifest);

/// Whether both paths refer to the same file.
bool same_path(const std::string& x, const std::string& y);

}  // namespace tartan::tools
