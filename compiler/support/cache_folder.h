// SPDX-License-Identifier: Apache-2.0
// compiler/support/cache_folder.h - where a cache is, and what is in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// The folder where CacheOptions name none; empty: the environment names no place for it.
std::string standard_cache_folder();

/// The entries of one kind, such as "kernel", "text" and "cubin".
struct CacheKind {
  std::string name;
  std::uint64_t entries = 0, bytes = 0;
};
/// Of the folder's entries, by name.
std::vector<CacheKind> kinds_of(const std::string& folder);

}  // namespace tartan::TARTAN_ABI::detail
