// SPDX-License-Identifier: Apache-2.0
// tools/kernel_options.h - which built-in kernel takes which of the options that describe kernels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// The options that a kernel takes, in the order of the help text: "--m", ...
std::vector<std::string_view> options_of(std::string_view kernel);

/// A usage error for each option of `given` that describes kernels, but not this one.
Diags refused_options(std::string_view kernel, const std::vector<std::string>& given);

}  // namespace tartan::tools
