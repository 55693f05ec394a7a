// SPDX-License-Identifier: Apache-2.0
// dsl/compiled_json.h - a Compiled as JSON and back, for files: the cache, and bundles.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tartan/dsl/kernel.h"

namespace tartan::inline TARTAN_ABI::detail {

nlohmann::json to_json(const Compiled& compiled);
/// Throws nlohmann::json::exception where `json` is not what to_json() makes.
Compiled compiled_from(const nlohmann::json& json);

nlohmann::json to_json(const Diags& diags);
/// A diagnostic of a rule that this version does not have is omitted.
Diags diags_from(const nlohmann::json& json);

}  // namespace tartan::inline TARTAN_ABI::detail
