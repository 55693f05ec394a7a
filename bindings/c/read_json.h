// SPDX-License-Identifier: Apache-2.0
// bindings/c/read_json.h - options of the C interface, as members of a JSON object.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry/option.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::builtins {

/// Stores the members of a JSON object in the options of their names: {"m": 0, "type": "bf16",
/// "causal": true, "epilogue": ["bias", "gelu"]}; "" is an empty object. Returns the names, or a
/// usage error for each member that is unknown, of another type or an empty string, which would
/// mean the same as no member. It begins with `what`.
Result<std::vector<std::string>> read_json(std::span<const Option> options, std::string_view json,
                                           std::string_view what);

}  // namespace tartan::TARTAN_ABI::builtins
