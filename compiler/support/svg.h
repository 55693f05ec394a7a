// SPDX-License-Identifier: Apache-2.0
// compiler/support/svg.h - text in SVG pictures.
#pragma once

#include <string>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::svg {

/// Escapes text for an element.
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

/// Letters are monospaced: their width as a fraction of the font size.
inline constexpr double letter = 0.61;

/// The width of a line of text in pixels.
inline double width_of(std::string_view text, int font_size) {
  return static_cast<double>(text.size()) * letter * font_size;
}

}  // namespace tartan::TARTAN_ABI::svg
