// SPDX-License-Identifier: Apache-2.0
// compiler/isa/form_instruction.h - a matrix instruction as code generation sees it, of a spelling
// and the signature that it matches.
#pragma once

#include "tartan/isa/instruction.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {

/// `with_stride`: of wmma.load and wmma.store, whether the optional operand is there.
Instruction instruction(const Spelling& spelling, const Signature& signature, bool with_stride);

}  // namespace tartan::TARTAN_ABI::isa
