// SPDX-License-Identifier: Apache-2.0
// library/call_checks.h - what run(), launch() and Function compare before the driver sees a call:
// arguments with the parameters of a description.
#pragma once

#include <cstdint>
#include <string_view>

#include "tartan/dsl/kernel.h"
#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI::detail {

/// Whether memory of elements `given` may be passed where a kernel has elements `param`: the same
/// type, bytes (b8) for any, and any of the same size where the kernel's are untyped.
bool elements_fit(Type param, Type given);

/// An integer argument, of 4 or 8 bytes; an address as its bits.
std::int64_t number(const Compiled& compiled, const Arguments& arguments, std::size_t param);

/// What a launch computes from its integer arguments. Saturates.
std::int64_t computed(const Compiled& compiled, const Arguments& arguments, const MapNumber& of);

/// Adds a diagnostic that names parameter `i`.
void report_argument(const Compiled& compiled, std::size_t i, std::string_view what, Diags& diags);

/// Reports each pointer that is not a multiple of 16, and each whose memory, where it is known, is
/// smaller than what the parameter's layout spans. Arguments have the parameters' number and sizes.
void check_memory(const Compiled& compiled, const Arguments& arguments, Diags& diags);

}  // namespace tartan::TARTAN_ABI::detail
