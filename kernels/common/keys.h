// SPDX-License-Identifier: Apache-2.0
// kernels/common/keys.h - the keys of built-in kernels (Kernel::keyed): all of their options.
#pragma once

#include <string>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::kernels {

/// The numbers of all members: in the order of the rows of options.h, Tile and Epilogue last.
template <typename Options>
std::string key_of(const Options& options);

}  // namespace tartan::TARTAN_ABI::kernels
