// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/names.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::detail {

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto legal = [&](char c) { return letter(c) || digit(c) || c == '_' || c == '$'; };
  return std::all_of(name.begin(), name.end(), legal) && !name.empty() && !digit(name[0]) &&
         (name.size() > 1 || letter(name[0])) && name != "WARP_SZ";
}

bool Names::take(const std::string& name) {
  if (std::find(taken_.begin(), taken_.end(), name) != taken_.end()) return false;
  taken_.push_back(name);
  return true;
}

std::string Names::unused(std::string name) {
  while (!take(name)) name += '_';
  return name;
}

}  // namespace tartan::TARTAN_ABI::detail
