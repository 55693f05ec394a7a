// SPDX-License-Identifier: Apache-2.0
// dsl/state/names.h - names of kernels, parameters and shared matrices, which become PTX
// identifiers (PTX ISA 4.4). Not installed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

bool is_identifier(std::string_view name);
inline constexpr std::string_view identifier_rule =
    "expected letters, digits, _ and $, not starting with a digit, and not _, $ or WARP_SZ";

/// The names in use by a kernel's parameters and shared matrices.
class Names {
 public:
  bool take(const std::string& name);    // false: already in use
  std::string unused(std::string name);  // this one, or with _ appended

 private:
  std::vector<std::string> taken_;
};

}  // namespace tartan::TARTAN_ABI::detail
