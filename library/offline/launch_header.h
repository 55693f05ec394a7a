// SPDX-License-Identifier: Apache-2.0
// library/offline/launch_header.h - a C++17 header of its own with PTX, and with functions that
// prepare launches of its kernels. Not installed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tartan/dsl/kernel.h"

namespace tartan::TARTAN_ABI::offline {

/// A target's module, and its kernels.
struct TargetModule {
  Arch arch;
  std::string ptx;
  std::vector<Compiled> kernels;
};

/// The header, with everything in namespace `name`. All modules have the same kernels, in the same
/// order. A kernel whose parameters depend on the target has no C++ function: a mistake.
Result<std::string> launch_header(const std::string& name, const std::vector<TargetModule>& modules,
                                  std::string_view root);

}  // namespace tartan::TARTAN_ABI::offline
