// SPDX-License-Identifier: Apache-2.0
// bench/gpu/words.h - the parts of a configuration's word.
#pragma once

#include <charconv>
#include <optional>
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

/// "splits=4"; a name alone has the value 0.
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

}  // namespace gpu
