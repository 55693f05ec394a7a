// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/ascii.h"

#include <fmt/format.h>

namespace tartan::TARTAN_ABI {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// \200 to \377: a file's name may have other backslashes.
bool is_escape(std::string_view text) {
  return text.size() >= 4 && text[0] == '\\' && (text[1] == '2' || text[1] == '3') &&
         is_octal(text[2]) && is_octal(text[3]);
}

}  // namespace

std::string ascii(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= ' ' && c <= '~') out += c;
    else out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string from_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool escape = is_escape(text);
    out += escape ? static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'))
                  : text[0];
    text.remove_prefix(escape ? 4 : 1);
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
