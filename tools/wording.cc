// SPDX-License-Identifier: Apache-2.0
#include "tools/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace tartan::tools {
namespace {

// "0.000000" is 0.
std::string trimmed(std::string number) {
  if (number.find('.') == number.npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

// "a,b,c": "a, b or c"
std::string alternatives(const std::string& words) {
  std::string out;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t comma = std::min(words.find(',', at), words.size());
    const bool last = comma == words.size();
    if (!out.empty()) out += last ? " or " : ", ";
    out += words.substr(at, comma - at);
    at = comma + 1;
  }
  return out;
}

bool is_number(const std::string& word) {
  static const std::regex number("[+-]?[0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+)?");
  return std::regex_match(word, number);
}

std::string out_of_range(const std::smatch& parts) {
  const bool whole = parts[3].str().find('.') == std::string::npos;
  return fmt::format("{} {}: expected a {} from {} to {}", parts[1].str(), parts[2].str(),
                     whole ? "whole number" : "number", trimmed(parts[3]), trimmed(parts[4]));
}

}  // namespace

std::string reworded(const std::string& text) {
  static const std::regex conversion("Could not convert: (\\S+) = ([^]*)"),
      range("(\\S+): Value ([^]*) not in range \\[?(\\S+) (?:to|-) ([^\\]\\s]+)\\]?"),
      member("(\\S+): ([^]*) not in \\{([^]*)\\}"), missing("(\\S+): \\d+ required (\\S+) missing"),
      often("(\\S+): At Most (\\d+) required but received (\\d+)");
  std::smatch parts;
  if (std::regex_match(text, parts, conversion))
    return fmt::format("{} {}: expected a {}", parts[1].str(), parts[2].str(),
                       is_number(parts[2]) ? "whole number of at most 32 bits" : "number");
  if (std::regex_match(text, parts, range)) return out_of_range(parts);
  if (std::regex_match(text, parts, member))
    return fmt::format("{} {}: expected {}", parts[1].str(), parts[2].str(),
                       alternatives(parts[3]));
  if (std::regex_match(text, parts, missing))
    return fmt::format("{}: expected a value behind it", parts[1].str());
  if (std::regex_match(text, parts, often))
    return fmt::format("{}: expected once, found {} times", parts[1].str(), parts[3].str());
  return text;
}

}  // namespace tartan::tools
