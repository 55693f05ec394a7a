// SPDX-License-Identifier: Apache-2.0
// compiler/support/counted.h - a number and its noun in a message: "1 byte", "2 bytes".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// `noun`, with an s for the plural.
std::string counted(std::integral auto count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace tartan::TARTAN_ABI::detail
