// SPDX-License-Identifier: Apache-2.0
// compiler/support/names.h - maps by name, fast enough to look up every operand of a text.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// A hash of names, which are short: eight bytes at a time, inline.
struct NameHash {
  // Not noexcept: the standard library's maps then store each name's hash and compare fewer names.
  std::size_t operator()(std::string_view name) const {
    const char* at = name.data();
    std::size_t left = name.size();
    std::uint64_t hash = left;
    for (; left >= 8; at += 8, left -= 8) hash = mix(hash ^ load<std::uint64_t>(at));
    if (left >= 4)  // two loads that overlap
      return mix(hash ^ load<std::uint32_t>(at) ^
                 std::uint64_t{load<std::uint32_t>(at + left - 4)} << 32);
    for (; left > 0; ++at, --left) hash = hash << 8 ^ static_cast<unsigned char>(*at);
    return mix(hash);
  }

 private:
  template <class T>
  static T load(const char* from) {
    T out;
    std::memcpy(&out, from, sizeof out);
    return out;
  }
  static std::uint64_t mix(std::uint64_t value) {
    value *= 0x9e3779b97f4a7c15;
    return value ^ value >> 32;
  }
};

template <class T>
using NameMap = std::unordered_map<std::string_view, T, NameHash>;
using NameSet = std::unordered_set<std::string_view, NameHash>;

}  // namespace tartan::TARTAN_ABI
