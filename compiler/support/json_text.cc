// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/json_text.h"

namespace tartan::TARTAN_ABI {
namespace {

// The quote that ends the string at `begin`, or the end of the text.
std::size_t string_end(std::string_view json, std::size_t begin) {
  std::size_t at = begin + 1;
  while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
  return at;
}

}  // namespace

std::optional<std::size_t> nested_too_deep(std::string_view json) {
  int depth = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') at = string_end(json, at);
    else if (c == ']' || c == '}') --depth;
    else if ((c == '[' || c == '{') && ++depth > most_json_nesting) return at;
  }
  return std::nullopt;
}

}  // namespace tartan::TARTAN_ABI
