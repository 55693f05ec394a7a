// SPDX-License-Identifier: Apache-2.0
// bench/gpu/library.h - entry points of optional libraries.
#pragma once

#include <dlfcn.h>

#include <initializer_list>

namespace gpu {

/// The first library of `names` that can be loaded; null: none.
inline void* load_library(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  return nullptr;
}

/// Calls the entry point; -1 if the library lacks it. Arguments must have its parameters' sizes.
template <typename... Params>
int call(void* library, const char* name, Params... params) {
  const auto entry = reinterpret_cast<int (*)(Params...)>(library ? dlsym(library, name) : nullptr);
  return entry ? entry(params...) : -1;
}

}  // namespace gpu
