// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/decode/spelled_out.h - what operands compute, as instructions of their own.
//
//   add.u32 y, x+4, 2;      ->   add.u32 (x+4), x, 4;   add.u32 y, (x+4), 2;
//   ld.shared.u32 y, t[r];  ->   instructions that compute the address of t[r], and a plain load
//
// Everything behind the parser then sees instructions that it knows. The new registers have names
// that no text has; the new instructions are at the place of the one that they serve.
#pragma once

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {

/// Rewrites the functions of a module. The assembler computes sums in the width of the register,
/// and an index in 32 bits.
void spell_out(ptx::Module& module);

}  // namespace tartan::TARTAN_ABI::emulator
