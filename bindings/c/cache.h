// SPDX-License-Identifier: Apache-2.0
// bindings/c/cache.h - the cache of this process's C interface, if it uses one.
#pragma once

#include <optional>

#include "tartan/cache.h"

namespace tartan::TARTAN_ABI::c {

std::optional<Cache> used_cache();

}  // namespace tartan::TARTAN_ABI::c
