// SPDX-License-Identifier: Apache-2.0
// compiler/support/messages.h - messages that fit: their size, and where they go.
#pragma once

#include <string>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// Readers that need all of a text report so many errors of it, and then stop.
inline constexpr int most_errors = 100;

/// The message with its long words (names of the text, which may have megabytes) cut to 60 bytes
/// and what is behind 4000 bytes of a line left out.
std::string shortened(std::string message);

/// Writes to standard error. Where it is closed or full, the text is lost: the exit code tells.
void complain(std::string_view text) noexcept;

/// Opens standard input, output and error where they are closed, such that using them fails: a
/// file that is opened later would take their place.
void hold_standard_streams() noexcept;

}  // namespace tartan::TARTAN_ABI::detail
