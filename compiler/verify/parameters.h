// SPDX-License-Identifier: Apache-2.0
// compiler/verify/parameters.h - the parameters and results of functions, and what goes with them.
#pragma once

#include <string>
#include <vector>

#include "tartan/ptx/tree.h"

namespace tartan::inline TARTAN_ABI::verify {

/// What a function or prototype takes and gives.
struct Signature {
  Signature(const ptx::Module& module, const ptx::Function& function);
  explicit Signature(const ptx::Prototype& prototype);

  std::vector<const ptx::Variable*> results, params;
};

/// Bytes: as declared, else that of an element.
std::uint32_t alignment_of(const ptx::Variable& variable);

/// Whether a value declared as `actual` goes where `formal` is expected: size, alignment and kind.
bool same_layout(const ptx::Variable& formal, const ptx::Variable& actual);

/// Whether a constant goes there.
bool takes_constant(const ptx::Variable& formal, bool floating);

/// One predicate, or one number of 8 or 16 bits by its kind (.u16): the assembler compiles no
/// function and no call that passes it.
bool unsupported(const ptx::Variable& variable);

/// What of two declarations of one function differs, in words; empty: nothing.
std::string difference(const Signature& x, const Signature& y);

/// Whether a kernel or function states the directive, such as .noreturn.
bool states(const ptx::Module& module, const ptx::Function& function, std::string_view directive);

/// ".align 16 .b8[64]", ".v2 .f32"
std::string describe(const ptx::Variable& variable);

}  // namespace tartan::inline TARTAN_ABI::verify
