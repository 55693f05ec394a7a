// SPDX-License-Identifier: Apache-2.0
// tartan/cache_value.h - entries of a cache that are plain values, such as what was measured to be
// fastest.
//
//   const auto key = CacheKey("tile").add("gpu", device.name()).add("revision", "1");
//   std::optional<Tile> best = find_value<Tile>(cache, key);
//   if (!best) store_value(cache, key, *(best = measure()));
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

#include "tartan/cache.h"

namespace tartan::TARTAN_ABI {

/// The value under the key; an entry of another size is deleted. The key says all that the value
/// depends on, the members of T included: they are kept as their bytes.
template <typename T>
requires std::is_trivially_copyable_v<T> std::optional<T> find_value(const Cache& cache,
                                                                     const CacheKey& key) {
  const std::optional<std::string> contents = cache.find(key);
  if (!contents) return std::nullopt;
  if (contents->size() != sizeof(T)) {
    cache.remove(key);
    return std::nullopt;
  }
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), contents->data(), sizeof(T));
  return std::bit_cast<T>(bytes);
}

/// Adds or replaces the value. A failure is also in Cache::problems().
template <typename T>
requires std::is_trivially_copyable_v<T> Status store_value(const Cache& cache, const CacheKey& key,
                                                            const T& value) {
  return cache.store(key, {reinterpret_cast<const char*>(&value), sizeof value});
}

}  // namespace tartan::TARTAN_ABI
