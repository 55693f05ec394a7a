// SPDX-License-Identifier: Apache-2.0
// runtime/timeline_roles.h - what the warps of a CTA are called in timelines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// How often a warp copied into shared memory, and multiplied.
struct WarpWork {
  std::uint64_t loads = 0, products = 0;
};

/// By warp. A warp that only copies is a producer where those that multiply do not copy.
inline std::vector<std::string> timeline_roles(const std::vector<WarpWork>& work) {
  const auto loads = [](const WarpWork& each) { return each.loads > 0; };
  const auto multiplies = [](const WarpWork& each) { return each.products > 0; };
  const bool divided = std::ranges::any_of(work, loads) && std::ranges::any_of(work, multiplies) &&
                       std::ranges::none_of(work, [&](const WarpWork& each) {
                         return loads(each) && multiplies(each);
                       });
  std::vector<std::string> roles(work.size());
  for (std::size_t i = 0; divided && i < work.size(); ++i)
    roles[i] = loads(work[i]) ? "producer" : multiplies(work[i]) ? "consumer" : "";
  return roles;
}

}  // namespace tartan::TARTAN_ABI::detail
