// SPDX-License-Identifier: Apache-2.0
// compiler/support/json_text.h - checks of JSON text before it is parsed.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// Limit of nested brackets and braces in JSON that Tartan reads; its own files have at most six.
inline constexpr int most_json_nesting = 100;

/// Where `json` exceeds that: the offset of the first bracket or brace too many. Parsers copy and
/// destroy values recursively, so such a text could overflow their stack.
std::optional<std::size_t> nested_too_deep(std::string_view json);

}  // namespace tartan::TARTAN_ABI
