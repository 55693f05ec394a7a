// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/kernel_directives.h - what a kernel's directives say about its launches.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::ptx {

/// The directive of that name, or null.
inline const Directive* find_directive(const Module& module, const Function& kernel,
                                       std::string_view name) {
  for (const std::uint32_t index : kernel.directives)
    if (module.directives[index].name == name) return &module.directives[index];
  return nullptr;
}

/// The three numbers of a directive; 1 where it says none.
using Extents = std::array<std::uint32_t, 3>;
inline Extents extents_of(const Module& module, const Function& kernel, std::string_view name) {
  Extents out{1, 1, 1};
  if (const Directive* found = find_directive(module, kernel, name))
    for (std::size_t i = 0; i < std::min<std::size_t>(found->count, out.size()); ++i)
      out[i] = static_cast<std::uint32_t>(module.operands_of(*found)[i].value);
  return out;
}

/// The blocks of what a launch's grid counts: a cluster with .blocksareclusters, else one block.
inline Extents grid_unit(const Module& module, const Function& kernel) {
  return find_directive(module, kernel, ".blocksareclusters")
             ? extents_of(module, kernel, ".reqnctapercluster")
             : Extents{1, 1, 1};
}

}  // namespace tartan::TARTAN_ABI::ptx
