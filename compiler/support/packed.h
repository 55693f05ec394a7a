// SPDX-License-Identifier: Apache-2.0
// compiler/support/packed.h - an entry of the cache: a long text or machine code as it is, and JSON
// of the rest. A parser of JSON takes 10 ns for each of its bytes, a copy takes none.
//
//   const std::string entry = pack(compiled.ptx, json);
//   const Unpacked parts = unpack(entry);   // parts.bulk points into `entry`
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI::detail {

struct Unpacked {
  std::string_view bulk;
  nlohmann::json rest;
};

std::string pack(std::string_view bulk, const nlohmann::json& rest);
/// Throws nlohmann::json::exception where `entry` is not what pack() makes.
Unpacked unpack(std::string_view entry);

}  // namespace tartan::inline TARTAN_ABI::detail
