// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/scope.h - whom a strong operation, a fence or a wait reaches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// How far a strong operation or a fence reaches.
enum class Scope : std::uint8_t { cta, cluster, gpu };
inline constexpr std::size_t scopes = 3;

/// The scope that a wait for an mbarrier says; unsaid, it is that of the CTA.
enum class WaitScope : std::uint8_t { unsaid, cta, cluster };

}  // namespace tartan::TARTAN_ABI::emulator
