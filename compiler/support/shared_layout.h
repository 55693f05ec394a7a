// SPDX-License-Identifier: Apache-2.0
// compiler/support/shared_layout.h - a comment in PTX that says which variables of the kernel are
// where in its dynamic shared memory, which has but one name. Not installed.
//
//   // gemm_shared: sA at 0, sB at 49152
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// Names with their first bytes.
using SharedLayout = std::vector<std::pair<std::string, std::uint64_t>>;

/// The comment, with its line break; empty if there are no variables.
std::string text(std::string_view memory, const SharedLayout& layout);
/// What the comment on `memory` says; nothing if the text has none.
SharedLayout read_shared_layout(std::string_view ptx, std::string_view memory);

}  // namespace tartan::TARTAN_ABI::detail
