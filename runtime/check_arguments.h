// SPDX-License-Identifier: Apache-2.0
// runtime/check_arguments.h - whether arguments are those that a kernel takes.
#pragma once

#include <span>
#include <string_view>

#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI::detail {

/// Reports a wrong number of arguments, then each of a wrong size. `hint` follows a wrong number.
void check_arguments(std::string_view kernel, std::span<const KernelParam> params,
                     const Arguments& arguments, std::string_view hint, Diags& diags);

}  // namespace tartan::TARTAN_ABI::detail
