// SPDX-License-Identifier: Apache-2.0
// compiler/isa/matching.h - parts of matches(), for the messages of mismatch(). For this folder
// only.
#pragma once

#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {

bool types_match(const Signature& signature, const Spelling& spelling);

/// Shapes and layouts: of matrix instructions; others have none.
bool shape_matches(const Signature& signature, const Spelling& spelling);
bool majors_match(const Signature& signature, const Spelling& spelling);

/// The word that must directly follow the opcode, but does not; empty if all do.
std::string_view misplaced(const Spelling& spelling);

/// All that the spelling requires of a target: of the signature, and of its words and types.
std::vector<Since> requirements(const Signature& signature, const Spelling& spelling);

}  // namespace tartan::TARTAN_ABI::isa
