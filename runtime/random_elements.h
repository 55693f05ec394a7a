// SPDX-License-Identifier: Apache-2.0
// runtime/random_elements.h - contents of buffers that a seed tells, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI {

/// Floating-point numbers evenly from (-1, 1), rounded to the type; integers from -8 to 7, without
/// a sign from 0 to 15; of a b type any bits. `bytes` is a multiple of the element's.
std::vector<std::byte> random_elements(Type type, std::size_t bytes, std::uint64_t seed);

}  // namespace tartan::TARTAN_ABI
