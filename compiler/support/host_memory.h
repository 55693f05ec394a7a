// SPDX-License-Identifier: Apache-2.0
// compiler/support/host_memory.h - whether the host has room for what an input asks for. An
// allocation alone does not say: the system promises more than it has, and kills who uses it.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// Whether so many bytes more can be used now, as far as the host and the control group of this
/// process tell. Of what is small it is not asked.
bool fits_in_memory(std::uint64_t bytes);

}  // namespace tartan::TARTAN_ABI::detail
