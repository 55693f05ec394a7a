// SPDX-License-Identifier: Apache-2.0
// compiler/support/svg.h - text in SVG pictures.
#pragma once

#include <string>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI::svg {

/// As the text of an element.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  }
  return out;
}

/// Letters are monospaced: so much of the font size wide.
inline constexpr double letter = 0.61;

/// Pixels that a line of text takes.
inline double width_of(std::string_view text, int font_size) {
  return static_cast<double>(text.size()) * letter * font_size;
}

}  // namespace tartan::inline TARTAN_ABI::svg
