// SPDX-License-Identifier: Apache-2.0
// bench/gpu/words.h - parses the parts of a configuration.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpu {

inline std::vector<std::string_view> split(std::string_view word, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t end; (end = word.find(separator)) != word.npos; word.remove_prefix(end + 1))
    out.push_back(word.substr(0, end));
  out.push_back(word);
  return out;
}

inline bool read_number(std::string_view word, int& out) {
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, out);
  return error == std::errc() && stop == end && out >= 0;
}

/// "splits=4"; a name without a number has the value 0.
struct Named {
  std::string_view name;
  int value = 0;
};

inline std::optional<Named> read_named(std::string_view word) {
  const std::size_t equals = word.find('=');
  Named out{word.substr(0, equals)};
  if (equals != word.npos && !read_number(word.substr(equals + 1), out.value)) return {};
  return out;
}

/// Exits with an error: an argument is invalid.
[[noreturn]] inline void refuse(std::string_view option, std::string_view word,
                                std::string_view expected) {
  std::cerr << fmt::format("{} {}: expected {}\n", option, word, expected);
  std::exit(2);
}

/// Each of an option's values, parsed by `read`.
template <typename Read>
auto read_all(std::string_view option, const std::vector<std::string>& words, Read read,
              std::string_view expected) {
  std::vector<typename decltype(read(std::string()))::value_type> out;
  for (const std::string& word : words) {
    const auto one = read(word);
    if (!one) refuse(option, word, expected);
    out.push_back(*one);
  }
  return out;
}

}  // namespace gpu
