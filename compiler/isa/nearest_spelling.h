// SPDX-License-Identifier: Apache-2.0
// compiler/isa/nearest_spelling.h - the legal spelling nearest to one that is not: what it and the
// messages of mismatch() share. For this folder only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {

using Words = std::vector<std::string>;

/// "mbarrier.init.shared" -> "mbarrier", ".init", ".shared"
Words split(std::string_view text);
std::string joined(const Words& words);

/// Whether the text is a documented spelling, on any target if none is given.
bool is_legal(std::string_view text, const Target& target = {});

/// Four bytes in a register, which few mean.
bool holds_bytes(const TypeInfo& type);

/// Whether a reader may have meant `type`: it has the kind of the one that he wrote, or its size
/// and no kind.
bool alike(const TypeInfo& written, const TypeInfo& type);

/// The row with the fewest objections to the spelling, of those that the target has if one is
/// given; null if the target has no row.
const Signature* nearest_row(const Spelling& spelling, const Target& target);

}  // namespace tartan::TARTAN_ABI::isa
