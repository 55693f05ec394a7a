// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/races/equal_stores.h"

#include <algorithm>

namespace tartan::inline TARTAN_ABI::emulator {

bool EqualStores::Store::agrees(const Store& other) const {
  const std::uint64_t from = std::max(first, other.first),
                      to = std::min(first + bytes, other.first + other.bytes);
  if (from >= to) return true;
  if (value.empty() || other.value.empty()) return false;
  const auto part = [&](const Store& of) {
    return std::span(of.value).subspan(from - of.first, to - from);
  };
  return std::ranges::equal(part(*this), part(other));
}

void EqualStores::watch(std::uint64_t space, std::uint64_t first, std::uint64_t bytes) {
  for (std::uint64_t at = first / chunk; at <= (first + bytes - 1) / chunk; ++at)
    grew_ |= places_.try_emplace({space, at}).second;
}

void EqualStores::begin() {
  grew_ = false;
  for (auto& [place, stores] : places_) stores.clear();
}

}  // namespace tartan::inline TARTAN_ABI::emulator
